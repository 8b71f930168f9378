# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""CPU against accelerator: the speed-up of each implementation and device over NumPy, and published speed-ups."""

from __future__ import annotations

from collections.abc import Sequence

from jaxbench.analysis import paired_ratio
from jaxbench.analysis.case_rows import CaseRow
from jaxbench.catalog import published
from jaxbench.report.case_findings import CaseFindings
from jaxbench.report.drawing import marks, notes, series
from jaxbench.report.drawing.kit import Axes, Figure, Mark, Sheet, entitle, log_axis, plain, short

VIEWS = ("cases/versus",)
ORDER = -1
CAPTION = (
    "Speed-up over NumPy on one core. Left: the time of a call with the smallest batch (latency). Right: rows per "
    "second with the largest batch (throughput). Below, hollow: published speed-ups of an accelerator over CPUs with "
    "the same kind of model, from other machines and drawn unscaled."
)
BASE = "numpy"
# By operation: (the published job of the same kind, its source).
PUBLISHED = {"gbdt": ("boosted trees", "XGBoost's notes"), "resnet164": ("ResNet-164", "DAWNBench, 2017")}


def draw(run: CaseFindings) -> Figure | None:
    """Draws two panels. None unless something was measured in addition to NumPy on one core."""
    rows = [row for row in run.rows if row.point.elements and row.timing.step_s.known and not _repeats(row)]
    names = series.naming(rows, ("impl", "platform", "cores"))
    lines: dict[str, list[list[Mark]]] = {}  # by label: (marks of the smallest batch, marks of the largest)
    for style, op in enumerate(series.operations(rows)):
        of_op = [row for row in rows if row.point.op == op]
        for column, size in enumerate((min(map(series.elements, of_op)), max(map(series.elements, of_op)))):
            here = [row for row in of_op if row.point.elements == size]
            base = next((row for row in here if row.point.impl == BASE and row.point.cores == 1), None)
            for row in here:
                if base is not None and row is not base:
                    label = short(f"{op}: {names[row.point.point]}")
                    at = list(lines).index(label) if label in lines else len(lines)
                    lines.setdefault(label, [[], []])[column] += _marks(at, row, base, style)
    if not lines:
        return None
    sources = dict(PUBLISHED[op] for op in series.operations(rows) if op in PUBLISHED)
    pairs = [pair for pair in published.processor_and_accelerator() if pair.job.startswith(tuple(sources))]
    sheet = Sheet(1, 2)
    labels = [*lines, *(short(f"{pair.job}, {pair.hardware}") for pair in pairs)]
    for column, title in enumerate(("smallest batch: latency", "largest batch: throughput")):
        axes = sheet.panels[0, column]
        marks.dots(axes, [mark for line in lines.values() for mark in line[column]])
        log_axis(axes, "x", show=plain, max_ticks=5, span=[0.0005, 2000.0])
        marks.unity(axes)
        entitle(axes, title, x="speed-up over NumPy on one core")
        sheet.names(axes, labels, shown=not column)
    _published(sheet.panels[0, 1], pairs, start=len(lines))
    cited = [notes.cited("; ".join(sources.values()))] if pairs else []
    return sheet.finish(f"{run.experiment}: the processor against the accelerator", [], [*notes.of_marks(rows), *cited])


def _repeats(row: CaseRow) -> bool:
    """Python uses one core, however many it is given."""
    return row.point.impl == "python" and row.point.cores != 1


def _marks(at: int, row: CaseRow, base: CaseRow, style: int) -> list[Mark]:
    ratio = paired_ratio.ratio(base, row)
    mark = Mark(at=at, value=ratio, state=marks.state(row), style=style, text=f"{ratio.value:.2g} x")
    return [mark] if ratio.known else []


def _published(axes: Axes, pairs: Sequence[published.PublishedSpeedup], *, start: int) -> None:
    places = range(start, start + len(pairs))
    marks.published(axes, [pair.speedup for pair in pairs], list(places), shape="D", joined=False)
    for place, pair in zip(places, pairs, strict=True):
        marks.write(axes, pair.speedup, place, f"{pair.speedup:.2g} x")
