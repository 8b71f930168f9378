# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The findings of a lever sweep: every arm compared with its baseline."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxbench.analysis import arms, lever_results, points, scaling, studies, summary
from jaxbench.analysis.arms import ArmGroup, ArmResult
from jaxbench.analysis.lever_results import Knee, Latency, Phases
from jaxbench.analysis.quantities import devices
from jaxbench.analysis.scaling import Row
from jaxbench.analysis.studies import Law, Search
from jaxbench.analysis.summary import Entry
from jaxbench.core.store import RunFolder
from jaxbench.levers import LEVERS, PART
from jaxbench.records.manifest import Manifest
from jaxbench.report import columns, table
from jaxbench.report.findings import Findings, legend, of_folder, of_steps, unit
from jaxbench.report.sentences import machine
from jaxbench.report.sentences.rows import notes, timed
from jaxbench.report.table import Table
from jaxbench.statistics import variance

_VIEWS = {"ladder": "ladder", **{name: lever.view for name, lever in LEVERS.items()}}
TITLES = {
    "precision": "effect of the number format",
    "remat": "memory saved and time lost by rematerialization",
    "batch": "gain from a larger batch",
    "accumulate": "cost of gradient accumulation",
    "freeze": "savings from frozen parameters",
    "ladder": "gain of each rung of the ladder",
    "phases": "where the step's time goes",
    "inputs": "whether the step waits for data",
    "inference": "latency and throughput",
    "arms": "effect of each setting",
    "sharing": "cost of several trainings at once",
    "compiler": "effect of compiler options on the step time",
}
MAX_LINES = 40  # the terminal's table has at most this many lines; the page has all


@dataclass(frozen=True, kw_only=True)
class LeverFindings(Findings):
    """The findings of a lever sweep."""

    rows: list[Row]
    view: str
    swept: list[str]
    places: list[ArmGroup]
    phases: list[Phases]
    knees: list[Knee]
    latencies: list[tuple[ArmGroup, list[Latency]]]
    search: Search | None
    laws: list[Law]
    DEFINITION = "levers"

    @property
    def arms(self) -> list[ArmResult]:
        return arms.arms_of(self.places)

    @property
    def title(self) -> str:
        return f"{self.experiment}: {TITLES[self.view]}"

    def entries(self) -> list[Entry]:
        calls = [latency for _, many in self.latencies for latency in many]
        return summary.entries(self.rows, arms=self.arms, latencies=calls)

    def table(self) -> Table:
        ratios = "x time: step time over the baseline's (the first arm of the same group); x faster: examples/s over "
        return table.fill(
            columns.on(columns.L, unit=unit(self.rows)),
            self.entries(),
            group=lambda entry: (entry.point.strategy, entry.point.scaling, entry.point.devices),
            soft=lambda entry: entry.point.oversubscribed,
            note=f"{ratios}the baseline's. {legend(self.rows)}",
        )

    def brief(self) -> Table | None:
        whole, count = self.table(), len(self.rows)
        if count <= MAX_LINES:
            return None
        note = f"{whole.note} Shown: the first {MAX_LINES} of {count} arms; all are on the page."
        return dataclasses.replace(whole, lines=whole.lines[:MAX_LINES], note=note)

    def sentences(self) -> dict[str, Sequence[str]]:
        return {
            **of_steps(self),
            "Baseline": baselines(self.places),
            "Compiler options": compiler_sets(self.manifest),
            "Inconclusive": unclear(self.arms),
            "Notes": [*self.repairs, *notes(self.rows)],
            "Rounds": machine.of_rounds(self.manifest, self.points(), rows=self.rows),
            "Phases": [one.sentence for one in self.phases],
            "Largest batch": [self.search.sentence] if self.search is not None else [],
            "Memory by depth": [law.sentence for law in self.laws],
        }


def find(run: RunFolder) -> LeverFindings:
    """Reads and analyses a run folder. Raises UserError if it is not one, is damaged or has another schema."""
    loaded, common = points.load(run), of_folder(run)
    plan = common["manifest"]["plan"]
    swept = [str(name) for name in plan.get("swept") or ()]
    rows = scaling.analyse(loaded, config=common["config"], machine=common["card"], spread=variance.read(run.path))
    places = arms.analyse(rows, swept)
    view = view_of(swept, places)
    facts: dict[str, Any] = {
        "phases": lever_results.find_phases(places),
        "knees": [knee for place in places if (knee := lever_results.knee(place))] if view == "batch" else [],
        "latencies": lever_results.latencies(places),
    }
    search = studies.read_search(run.path)
    headlines = lever_results.headlines(view, places, **facts)
    return LeverFindings(
        **common,
        **facts,
        experiment=rows[0].point.experiment if rows else str(plan.get("experiment", "")),
        view=view,
        swept=swept,
        headlines=[*headlines, *([search.sentence] if search is not None else [])],
        rows=rows,
        places=places,
        search=search,
        laws=studies.read_remat_law(run.path),
    )


def view_of(swept: Sequence[str], places: Sequence[ArmGroup]) -> str:
    """The view of a sweep, which selects its figures and sentences: of its single lever, of parts by batch, or the
    general view "arms"."""
    parts = {PART.of(arm.point.levers) for place in places for arm in place.arms}
    if parts == {"inference"} and list(swept) == ["batch"]:
        return "inference"
    if "part" in swept and set(swept) <= {"part", "batch"} and len(parts & set(lever_results.PREFIXES)) > 1:
        return "phases"
    return _VIEWS.get(swept[0], "arms") if len(swept) == 1 and parts != {"inference"} else "arms"


def baselines(places: Sequence[ArmGroup]) -> list[str]:
    """A sentence on the baseline of each group, with its absolute time."""
    sentences = []
    for place in places:
        base = place.arms[0]
        where = f"{place.strategy} {place.scaling}, {devices(place.devices)}"
        if not base.timing.step_s.known:
            why = f" ({base.point.reason})" if base.point.reason else ""
            sentences.append(f"{where}: {base.label}, the baseline, has no times{why}, so nothing is compared.")
            continue
        sentences.append(f"{where}: {base.label}, {timed(base.row)}")
    return sentences


def compiler_sets(manifest: Manifest) -> list[str]:
    """The options of each named set of compiler options in the run, with its source."""
    sets = manifest["plan"].get("compiler_sets", {})
    return [f"{name}: {options} (source: {source})." for name, (options, source) in sets.items()]


def unclear(every: Sequence[ArmResult]) -> list[str]:
    """The arms with an inconclusive comparison, by reason."""
    return notes(every, lambda arm: [arm.why] if arm.verdict == "cannot tell" else [])
