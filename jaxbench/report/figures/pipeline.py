# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Pipeline parallelism: idle share of the schedule, throughput, and memory of the stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jaxbench.analysis import paired_ratio
from jaxbench.analysis.bubble import CHUNKS, idle
from jaxbench.analysis.intervals import UNKNOWN, Estimate
from jaxbench.analysis.scaling import Row
from jaxbench.catalog import published
from jaxbench.levers import ACCUMULATE, SCHEDULE
from jaxbench.report.drawing import families, marks, notes
from jaxbench.report.drawing.axes import bytes_tick, devices_axis, empty, entitle, log_axis, plain
from jaxbench.report.drawing.families import fact
from jaxbench.report.drawing.kit import GREY, Axes, Figure, Line2D, Sheet, exact
from jaxbench.report.findings import Findings

VIEWS = ("training/pipeline", "levers/pipeline")
CAPTION = (
    "K stages, M micro-batches of one global batch. Left: the share of slots without work in the executed schedule "
    "(the bubble), with the theoretical line. Middle: throughput relative to gpipe at K = 2, M = 1, with published "
    "values and the limit set by idle slots alone. Right: scratch memory of the compiled step at the largest K. More "
    "micro-batches are smaller ones, so memory need not grow with M; it depends on how many a stage keeps."
)
GPIPE = "gpipe_table2_tpu"
_BETWEEN: Any = {"gpipe": "-", "1f1b": (0, (4, 1.5)), "interleaved": ":"}
_THEORY: Any = dict(color=GREY, linewidth=0.6, zorder=1)
_FIRST = 4  # first style index of schedules; lower ones are for numbers of micro-batches, so none is shared
_UNMATCHED = "*"  # marker of published values for a number of micro-batches that was not measured here


def draw(run: Findings) -> Figure | None:
    """Draws three panels. None when no pipeline was compiled."""
    rows = [row for row in families.compiled(run.rows) if row.point.strategy == "pipeline"]
    if not rows:
        return None
    styles = {m: i for i, m in enumerate(sorted({micro_batches(row) for row in rows}))}
    schedules = [name for name in _BETWEEN if any(schedule(row) == name for row in rows)]
    sheet = Sheet(1, 3, heights=2.2)
    left, middle, right = sheet.panels[0]
    _idle(left, rows, styles)
    over = _throughput(middle, rows, styles)
    _memory(right, rows, schedules)
    remarks = [
        *families.remarks(rows, rows),
        "idle share and scratch memory are exact, so their marks are filled even when oversubscribed",
        "line style: schedule; colour and marker: M (in the right panel: schedule)",
    ]
    if {"gpipe", "1f1b"} <= set(schedules):
        remarks.append("gpipe and 1f1b have the same idle slots, so their idle shares are equal")
    if over:
        remarks.append(notes.cited(f"{published.read(GPIPE).project}, Table 2, Transformer on TPUs"))
    title = f"{run.experiment}: pipelines and their idle share"
    return sheet.finish(title, _handles(styles, schedules, compared=over), remarks)


def schedule(row: Row) -> str:
    """The pipeline's schedule; gpipe for runs recorded before the setting existed."""
    return SCHEDULE.of(row.point.levers)


def micro_batches(row: Row) -> int:
    """M, the number of micro-batches."""
    return ACCUMULATE.of(row.point.levers)


def relative(rows: Sequence[Row]) -> dict[str, Estimate]:
    """Throughput by point, divided by that of gpipe at K = 2, M = 1; {} if that was not measured."""
    timed = [row for row in rows if row.timing.step_s.known]
    at = ("gpipe", 2, 1)
    bases = [row for row in timed if (schedule(row), row.point.devices, micro_batches(row)) == at and row.believed]
    if not bases:
        return {}
    base, ratios = bases[0], {}
    for row in timed:
        work = row.point.global_batch / base.point.global_batch
        value = paired_ratio.ratio(base, row).times(work)
        ratios[row.point.point] = value.alone() if row is base else value
    return ratios


def _idle(axes: Axes, rows: Sequence[Row], styles: Mapping[int, int]) -> None:
    counts = families.counts(rows)
    span = _between(min(counts), max(counts))
    for parts, chunks in _shapes(rows):
        axes.plot(span, [100 * idle(k, parts, chunks) for k in span], **_THEORY)
    for (parts, name), members in _families(rows).items():
        families.line(axes, members, _idle_share, place=styles[parts], between=_BETWEEN[name], exact=True)
    axes.set_ylim(-4, 104)
    devices_axis(axes, counts, label="stages K")
    entitle(axes, "idle share of the schedule, %")


def _throughput(axes: Axes, rows: Sequence[Row], styles: Mapping[int, int]) -> bool:
    """Draws the throughput panel. Returns whether K = 2, M = 1 was timed, so that there is a reference."""
    counts, values = families.counts(rows), relative(rows)
    entitle(axes, "throughput, K = 2, M = 1 is 1")
    if not values:
        devices_axis(axes, counts, label="stages K")
        empty(axes, "K = 2, M = 1\nwas not timed")
        return False
    span = _between(2, max(8, *counts))
    for parts, chunks in _shapes(rows):
        axes.plot(span, [k * (1 - idle(k, parts, chunks)) for k in span], **_THEORY)  # 1 at K = 2, M = 1, one chunk
    for (parts, name), members in _families(rows).items():
        value = lambda row: values.get(row.point.point, UNKNOWN)  # noqa: E731
        families.line(axes, members, value, place=styles[parts], between=_BETWEEN[name])
    for parts, xs, ys in others():
        marks.published(axes, xs, ys, shape=marks.series_style(styles[parts])[1] if parts in styles else _UNMATCHED)
    log_axis(axes, "y", base=2, show=plain)
    devices_axis(axes, sorted({*counts, 2, 4, 8}), label="stages K")
    return True


def others() -> list[tuple[int, list[int], list[float]]]:
    """(M, stages, throughputs) as published, divided by the throughput at K = 2, M = 1."""
    frame, stages = published.read(GPIPE).frame.set_index("M"), [2, 4, 8]
    return [(int(m), stages, [float(frame.loc[m, f"transformer_K{k}"]) for k in stages]) for m in frame.index]


def _memory(axes: Axes, rows: Sequence[Row], schedules: Sequence[str]) -> None:
    stages = max(families.counts(rows))
    for name in schedules:
        members = [row for row in rows if schedule(row) == name and row.point.devices == stages]
        made = marks.of(members, micro_batches, lambda row: exact(families.passport(row, "temp_bytes")), exact=True)
        marks.line(axes, made, place=_style(name), between=_BETWEEN[name])
    log_axis(axes, "x", base=2, show=plain, max_ticks=6)
    axes.set_xticks(sorted({micro_batches(row) for row in rows}))
    log_axis(axes, "y", show=bytes_tick, max_ticks=5)
    entitle(axes, f"scratch memory a stage, K = {stages}", x="micro-batches M")


def _style(name: str) -> int:
    return _FIRST + list(_BETWEEN).index(name)


def _idle_share(row: Row) -> Estimate:
    return exact(100 * (1 - fact(row, "busy_share")))


def _shapes(rows: Sequence[Row]) -> list[tuple[int, int]]:
    """(M, chunks) of all rows with more than one stage: with K, they determine the theoretical line."""
    return sorted({(micro_batches(row), CHUNKS.get(schedule(row), 1)) for row in rows if row.point.devices > 1})


def _families(rows: Sequence[Row]) -> dict[tuple[int, str], list[Row]]:
    """Rows by (M, schedule)."""
    groups: dict[tuple[int, str], list[Row]] = {}
    for row in rows:
        if schedule(row) in _BETWEEN:
            groups.setdefault((micro_batches(row), schedule(row)), []).append(row)
    return groups


def _between(low: float, high: float) -> list[float]:
    """Stage counts (not whole numbers) for a smooth line on a logarithmic axis."""
    return [low * (high / low) ** (i / 40) for i in range(41)]


def _handles(styles: Mapping[int, int], schedules: Sequence[str], *, compared: bool) -> list[Line2D]:
    entries = [marks.handle(style, f"M = {parts}") for parts, style in styles.items()]
    entries += [marks.handle(_style(name), name, between=_BETWEEN[name]) for name in schedules]
    entries.append(marks.style_handle("idle slots alone", color=GREY, linewidth=0.6))
    if compared:
        entries.append(marks.published_handle(marks.series_style(0)[1], "Huang et al., same markers"))
        unmatched = [m for m, *_ in others() if m not in styles]
        entries += [marks.published_handle(_UNMATCHED, f"Huang et al., M = {m}") for m in unmatched]
    return entries
