# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The findings of a run of cases: every row with both clocks, its rates and its gates."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxbench.analysis import alpha_beta, case_comparisons, case_rows, headline, points, summary
from jaxbench.analysis.alpha_beta import AlphaBetaFit
from jaxbench.analysis.case_comparisons import CallSplit, Crossing, HalfPerformance, PublishedVerdict, Way
from jaxbench.analysis.case_rows import CaseRow
from jaxbench.analysis.summary import Entry
from jaxbench.core.store import RunFolder
from jaxbench.report import columns, table
from jaxbench.report.findings import Findings, legend, of_folder
from jaxbench.report.page import Page, Picture
from jaxbench.report.sentences.rows import notes, refusals
from jaxbench.report.table import Table, take
from jaxbench.statistics import variance

TITLES = {
    "curves": "from latency to throughput",
    "matmul": "how fast matrix products are",
    "stream": "how fast memory is",
    "dispatch": "what a call costs",
    "fusion": "what fusing operations saves",
    "linalg": "how fast factorizations are",
    "versus": "latency and throughput of NumPy and XLA",
    "transfer": "how fast copies are",
    "collectives": "how fast collectives are",
}
MAX_LINES = 40  # of the terminal's table; a longer table is reduced to selected sizes
_SERIES = ("op", "impl", "dtype", "platform", "cores", "devices", "mesh", "axis", "source", "target")


@dataclass(frozen=True, kw_only=True)
class CaseFindings(Findings):
    """The findings of a run of cases. left_out: the plan's sentences about cases that it left out."""

    rows: list[CaseRow]
    view: str
    fits: list[AlphaBetaFit]
    crossings: list[Crossing]
    knees: list[HalfPerformance]
    normal: list[PublishedVerdict]
    splits: list[CallSplit]
    ways: list[Way]
    left_out: list[str]
    DEFINITION = "kernels-transfers-and-collectives"

    @property
    def title(self) -> str:
        return f"{self.experiment}: {TITLES.get(self.view, self.view)}"

    def entries(self) -> list[Entry]:
        return summary.entries(self.rows, fits=self.fits)

    def table(self) -> Table:
        return self._table(in_order(self.entries()))

    def brief(self) -> Table | None:
        shown, cut = shortened(in_order(self.entries()), self.view)
        made = self._table(shown)
        return dataclasses.replace(made, note=made.note + cut) if cut else None

    def _table(self, entries: Sequence[Entry]) -> Table:
        peaks = any(row.peak_share.known for row in self.rows)
        return table.fill(
            columns.on(columns.C, view=self.view),
            entries,
            group=lambda entry: entry.point.op,
            soft=lambda entry: entry.point.oversubscribed,
            note=legend(self.rows) + " % of peak: of the binding ceiling, named under Peaks." * peaks,
        )

    def sentences(self) -> dict[str, Sequence[str]]:
        return {
            "Incomplete or failed": self.shortfalls(),
            "Refused by the gates": refusals(self.rows),
            "Not measured": self.left_out,
            "Notes": [*self.repairs, *notes(self.rows)],
            "Crossings": [*(one.sentence for one in self.crossings), *(one.sentence for one in self.knees)],
            "Where the time goes": [split.sentence for split in self.splits],
            "Training to a target": [way.sentence for way in self.ways],
            "Fits": alpha_beta.sentences(self.fits),
            "Is this normal?": [verdict.sentence for verdict in self.normal],
            "Peaks": notes(self.rows, lambda row: [row.peak_note] if row.peak_note else []),
        }

    def page(self, pictures: Sequence[Picture]) -> Page:
        page = Findings.page(self, pictures)
        card = [("Machine profile", self.card)] if self.card is not None else []
        return dataclasses.replace(page, sources=[*page.sources, *card])


def find(run: RunFolder) -> CaseFindings:
    """Reads and analyses a run folder. Raises UserError if it is no run of cases, is damaged or has another schema."""
    loaded, common = points.load_cases(run), of_folder(run)
    manifest = common["manifest"]
    plan = manifest["plan"]
    view = str(plan.get("view", ""))
    rows = case_rows.analyse(loaded, manifest=manifest, machine=common["card"], spread=variance.read(run.path))
    fits = alpha_beta.fit_all(rows)
    crossed = case_comparisons.find_crossings(rows) if view in case_comparisons.VIEWS else []
    return CaseFindings(
        **common,
        experiment=str(plan.get("experiment", "")),
        view=view,
        headlines=headline.case_headlines(view, rows, fits, crossed, cache_bytes=manifest.get("cache_bytes")),
        rows=rows,
        fits=fits,
        crossings=crossed,
        knees=case_comparisons.knees(rows) if view in case_comparisons.VIEWS else [],
        normal=case_comparisons.judge_published(view, rows, manifest=manifest),
        splits=case_comparisons.find_splits(rows) if view == "versus" else [],
        ways=case_comparisons.find_ways(rows) if view == "versus" else [],
        left_out=[str(sentence).removeprefix("Left out: ") for sentence in plan.get("left_out") or ()],
    )


def in_order(entries: Sequence[Entry]) -> list[Entry]:
    """Grouped by operation and implementation, otherwise in planned order."""
    groups: dict[tuple[Any, ...], list[Entry]] = {}
    for entry in entries:
        point: Any = entry.point
        groups.setdefault((point.op, point.impl), []).append(entry)
    return [entry for group in groups.values() for entry in group]


def shortened(entries: Sequence[Entry], view: str) -> tuple[list[Entry], str]:
    """(at most `MAX_LINES` entries, a sentence on the selection; "" if all are shown).

    It keeps the smallest size of each series, the size at half of the best rate, and the largest size. If these are
    too many, only the largest size.
    """
    if len(entries) <= MAX_LINES:
        return list(entries), ""
    series: dict[tuple[Any, ...], list[Entry]] = {}
    for entry in [
        entry for entry in entries if _size(entry)
    ] or entries:  # entries without size have their own sections
        series.setdefault(tuple(getattr(entry.point, name) for name in _SERIES), []).append(entry)
    chosen = [entry for group in series.values() for entry in _telling(group, view)]
    how = "for each series the smallest size, the size at half of the best rate (n½), and the largest size"
    if len(chosen) > MAX_LINES:
        chosen = [max(group, key=_size) for group in series.values()]
        how = "for each series the largest size"
    if len(chosen) > MAX_LINES:
        chosen, how = chosen[:MAX_LINES], f"{how}, for the first {MAX_LINES} series"
    return chosen, f" Shown: {how}; all {len(entries)} points are on the page."


def _size(entry: Entry) -> int:
    point: Any = entry.point
    return point.payload_bytes or point.elements or 0


def _telling(entries: Sequence[Entry], view: str) -> list[Entry]:
    """The smallest size, the first size with half of the view's best rate, and the largest size, without duplicates."""
    by_size = sorted(entries, key=_size)
    shown = columns.rate(view) or columns.rate("curves")
    assert shown is not None
    taken = ((take(shown.get if shown.shown is None else shown.shown, entry), entry) for entry in by_size)
    rates = [(rate.value, entry) for rate, entry in taken if rate is not None and rate.known]
    half = [entry for value, entry in rates if value >= max(rate for rate, _ in rates) / 2]
    picked = [by_size[0], *half[:1], by_size[-1]]
    return list({entry.point.point: entry for entry in picked}.values())
