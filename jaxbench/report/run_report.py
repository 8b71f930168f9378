# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The report of a run of steps, lever settings or cases: its rows, what follows from them, and its page."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxbench.analysis import (
    alpha_beta,
    arms,
    case_comparisons,
    decoding,
    energy,
    headline,
    lever_results,
    loss_sentences,
    machine_profile,
    points,
    run_rows,
    scaling_laws,
    stragglers,
    studies,
    waterfall,
)
from jaxbench.analysis.alpha_beta import AlphaBetaFit
from jaxbench.analysis.arms import ArmGroup
from jaxbench.analysis.case_comparisons import CallSplit, Crossing, HalfPerformance, PublishedVerdict, Way
from jaxbench.analysis.decoding import TokenTime
from jaxbench.analysis.headline import Control
from jaxbench.analysis.lever_results import Knee, Phases
from jaxbench.analysis.points import MeasuredPoint
from jaxbench.analysis.run_rows import Row
from jaxbench.analysis.scaling_laws import Fit
from jaxbench.analysis.studies import Law
from jaxbench.analysis.waterfall import Waterfall, Withheld
from jaxbench.core.store import RunFolder
from jaxbench.errors import present
from jaxbench.levers import LEVERS, PART
from jaxbench.records import identity
from jaxbench.records.machine_profile import MachineProfile
from jaxbench.records.manifest import Manifest, Preparation
from jaxbench.records.studies import Search
from jaxbench.report import columns, preparation, sentences, table
from jaxbench.report.details import fold
from jaxbench.report.page import LINES, Fold, Page, Picture, Section, sections
from jaxbench.report.table import Kind, Table, take
from jaxbench.statistics import bootstrap
from jaxbench.statistics.bootstrap import MIN_ROUNDS

TITLES = {  # by view; a run over device counts has none
    "": "how training scales over devices",
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
    "curves": "from latency to throughput",
    "matmul": "how fast matrix products are",
    "stream": "how fast memory is",
    "dispatch": "what a call costs",
    "fusion": "what fusing operations saves",
    "linalg": "how fast factorizations are",
    "versus": "latency and throughput of NumPy and XLA",
    "transfer": "how fast copies are",
    "collectives": "how fast collectives are",
    "decode": "how fast tokens are generated",
}
LEGEND = "Medians with 95 % bootstrap confidence intervals."
NO_INTERVAL = (
    f"Medians without confidence intervals, which need {MIN_ROUNDS} rounds: these numbers do not compare speeds."
)
LEGEND_IN_TURNS = "Geometric means over rounds with 95 % confidence intervals."
NO_POINTS = "The plan asks for no points."
OVERSUBSCRIBED = " ° more devices than cores: proves correctness, not speed."
# By heading: what a ratio is over, for the note of a table that has it.
RATIOS = {
    "x time": "step time over the baseline's (the first setting of the same group)",
    "x faster": "examples/s over the baseline's",
}
PEAKS = " % of peak: of the binding ceiling, named under Peaks."
MAX_LINES = 40  # of the terminal's table; the page has all
TRAINING, ARMS, CASES, DECODE = "training", "levers", "cases", "decode"
# By kind: the section of docs/metrics that defines the numbers in the headlines, the columns, and fields of a point. A
# change of these fields begins a group of lines.
_KINDS: dict[str, tuple[str, Kind, tuple[str, ...]]] = {
    TRAINING: ("speed-up-and-efficiency", columns.T, ("strategy", "scaling")),
    ARMS: ("levers", columns.L, ("strategy", "scaling", "devices")),
    CASES: ("kernels-transfers-and-collectives", columns.C, ("op",)),
    DECODE: ("generation", columns.D, ("strategy", "devices")),
}
_VIEWS = {"ladder": "ladder", **{name: lever.view for name, lever in LEVERS.items()}}
_SERIES = ("op", "impl", "dtype", "platform", "cores", "devices", "mesh", "axis", "source", "target")


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """A run with everything that follows from its rows. What does not apply to its kind is empty.

    Properties are cached because the page, the figures and the terminal ask for the same ones.
    """

    path: Path  # the run folder
    kind: (
        str  # training (a step over device counts) | levers (a step with several settings) | cases | compiled | decode
    )
    view: str = ""  # what a sweep or cases are about, which selects figures and headlines; "" for training
    experiment: str
    rows: list[Row]
    repairs: list[str]  # sentences on skipped records, and on why a machine profile was not used
    config: dict[str, Any]
    manifest: Manifest
    machine_profile: MachineProfile | None = None  # of this machine
    waterfalls: list[Waterfall] = dataclasses.field(default_factory=list)  # of training
    groups: list[ArmGroup] = dataclasses.field(default_factory=list)  # the arms, of levers
    lines: list[AlphaBetaFit] = dataclasses.field(default_factory=list)  # time against size, of cases
    token_times: list[TokenTime] = dataclasses.field(default_factory=list)  # of generation

    @property
    def title(self) -> str:
        """The heading of the page: the experiment's name and the subject of the run."""
        return f"{self.experiment}: {TITLES.get(self.view, self.view)}"

    @functools.cached_property
    def headlines(self) -> list[str]:
        """The most important sentences, or why there are none."""
        if self.kind == CASES:
            cache_bytes = self.manifest.get("cache_bytes")
            return headline.case_headlines(self.view, self.rows, self.lines, self.crossings, cache_bytes=cache_bytes)
        if self.kind == DECODE:
            return decoding.headlines(self.rows, self.token_times)
        # A time that is of something else than its name says is no news below the headlines, but a part of them.
        does = sentences.work(self.rows)
        does = [*does, *energy.headlines([(row.point_id, row.energy) for row in self.rows])]
        if self.kind == TRAINING:
            return [*headline.headlines(self.rows, self.controls, self.manifest), *does]
        found = [*lever_results.headlines(self.view, self.groups), *does]
        return [*found, *([studies.search_sentence(self.search)] if self.search is not None else [])]

    @functools.cached_property
    def controls(self) -> list[Control]:
        return headline.controls(self.rows) if self.kind == TRAINING else []

    @functools.cached_property
    def withheld(self) -> list[Withheld]:
        """The points that have ablations but no waterfall."""
        return waterfall.withheld(self.rows) if self.kind == TRAINING else []

    @functools.cached_property
    def fits(self) -> list[Fit]:
        """The scaling laws."""
        return scaling_laws.fit_all(self.rows) if self.kind == TRAINING else []

    @functools.cached_property
    def phases(self) -> list[Phases]:
        return lever_results.find_phases(self.groups)

    @functools.cached_property
    def knees(self) -> list[Knee]:
        groups = self.groups if self.view == "batch" else []
        return [knee for group in groups if (knee := lever_results.knee(group))]

    @functools.cached_property
    def latencies(self) -> list[ArmGroup]:
        """The inference arms."""
        return lever_results.latencies(self.groups)

    @functools.cached_property
    def search(self) -> Search | None:
        """The search for the largest batch."""
        return studies.read_search(self.path)

    @functools.cached_property
    def laws(self) -> list[Law]:
        """How memory grows with depth, for each rematerialization policy."""
        return studies.read_remat_law(self.path)

    @functools.cached_property
    def crossings(self) -> list[Crossing]:
        return case_comparisons.find_crossings(self.rows) if self.view in case_comparisons.VIEWS else []

    @functools.cached_property
    def half_rates(self) -> list[HalfPerformance]:
        """The size at which each series reaches half of its best rate."""
        return case_comparisons.knees(self.rows) if self.view in case_comparisons.VIEWS else []

    @functools.cached_property
    def normal(self) -> list[PublishedVerdict]:
        """Whether collectives are as fast as published ones."""
        return case_comparisons.published_verdicts(self.view, self.rows, manifest=self.manifest)

    @functools.cached_property
    def splits(self) -> list[CallSplit]:
        return case_comparisons.find_splits(self.rows) if self.view == "versus" else []

    @functools.cached_property
    def ways(self) -> list[Way]:
        return case_comparisons.find_ways(self.rows) if self.view == "versus" else []

    @property
    def left_out(self) -> list[str]:
        """Sentences about cases that the plan left out."""
        # The heading of their section says the same.
        return [sentence.removeprefix("Left out: ") for sentence in self.manifest["plan"].get("left_out") or ()]

    def points(self) -> list[MeasuredPoint]:
        return [row.point for row in self.rows]

    def table(self) -> Table:
        """The table of all points."""
        return self._table(self._in_order())

    def brief(self) -> Table | None:
        """A shorter table for the terminal; None if the whole table fits."""
        if self.kind == CASES:
            shown, cut = shortened(self._in_order(), self.view)
            made = self._table(shown)
            return dataclasses.replace(made, note=made.note + cut) if cut else None
        whole, count = self.table(), len(self.rows)
        if self.kind != ARMS or count <= MAX_LINES:
            return None
        note = f"{whole.note} Shown: the first {MAX_LINES} of {count} settings; all are on the page."
        return dataclasses.replace(whole, lines=whole.lines[:MAX_LINES], note=note)

    def _in_order(self) -> list[Row]:
        """Cases by operation and implementation, otherwise in planned order."""
        groups: dict[tuple[str, str], list[Row]] = {}
        for row in shown_rows(self):
            groups.setdefault((row.point.op, row.point.impl), []).append(row)
        return [row for group in groups.values() for row in group]

    def _table(self, rows: Sequence[Row]) -> Table:
        """The table of these rows, with a note on its ratios."""
        _, kind, group = _KINDS[self.kind]
        peaks = any(row.peak_share.known for row in self.rows)
        made = table.fill(
            columns.on(kind, view=self.view, unit=unit(self.rows)),
            rows,
            group=lambda row: tuple(getattr(row.point, name) for name in group),
            soft=lambda row: row.point.oversubscribed,
        )
        headings = {column.title for column in made.columns}
        ratios = "; ".join(f"{name}: {text}" for name, text in RATIOS.items() if name in headings)
        note = f"{ratios}{'. ' * bool(ratios)}{legend(self.rows)}{PEAKS * peaks}"
        return dataclasses.replace(made, note=note)

    def sentences(self) -> dict[str, Sequence[str]]:
        """The page's sentences by heading of `page.HEADINGS`. A list may be empty."""
        rows, arms_ = self.rows, [arm for group in self.groups for arm in group.arms]
        unclear = sentences.grouped(arms_, lambda arm: [arm.why] if arm.verdict == "cannot tell" else [])
        return {
            "Incomplete or failed": self.shortfalls(),
            "Not supported": sentences.excused(rows, self.config),
            "Refused by the gates": sentences.refusals(rows),
            "Not measured": self.left_out,
            "Load": [
                *sentences.load_warnings(self.manifest, self.points()),
                *energy.sentences([(row.point_id, row.energy) for row in self.rows]),
            ],
            "Change during the run": sentences.changes(rows),
            "Why not 100 %": [*loss_sentences.sentences(self.waterfalls), *loss_sentences.withheld(self.withheld)],
            "What would help": loss_sentences.advice(self.waterfalls),
            "Baseline": sentences.baselines(self.groups),
            "Compiler options": sentences.compiler_sets(self.manifest) if self.kind == ARMS else [],
            "Inconclusive": sentences.named(unclear),
            "Stragglers": stragglers.sentences(rows, self.manifest.get("workers", {})),
            "Communication": loss_sentences.communication(self.waterfalls),
            "Base": sentences.base_lines(rows) if self.kind == TRAINING else [],
            "Notes": [*self.repairs, *sentences.notes(rows), *(control.sentence for control in self.controls)],
            "Rounds": sentences.of_rounds(self.manifest, self.points(), self.controls, rows),
            "Preparation": preparation.sentences(self.manifest.get("preparation", Preparation())),
            "Crossings": [*(each.sentence for each in self.crossings), *(each.sentence for each in self.half_rates)],
            "Where the time goes": [split.sentence for split in self.splits],
            "Training to a target": [way.sentence for way in self.ways],
            "Fits": alpha_beta.sentences(self.lines),
            "Is this normal?": [verdict.sentence for verdict in self.normal],
            "Peaks": sentences.named(sentences.grouped(rows, lambda row: [row.peak_note] if row.peak_note else [])),
            "Scaling laws": scaling_laws.sentences(self.fits),
            "Phases": [each.sentence for each in self.phases],
            "Largest batch": [studies.search_sentence(self.search)] if self.search is not None else [],
            "Memory by depth": [law.sentence for law in self.laws],
            "Real tokens": sentences.token_sentences(rows),
            "Utilisation": [] if self.kind == DECODE else sentences.utilisation(rows),
            "Generation": decoding.sentences(rows, self.token_times, self.manifest.get("cache_bytes"))
            if self.kind == DECODE
            else decoding.own_sentences(rows),
            "Machine": sentences.machine_description(self.manifest, self.points()),
        }

    def sections(self) -> list[Section]:
        return sections(self.sentences())

    def folds(self) -> list[Fold]:
        """The details of each point."""
        rows = shown_rows(self)
        return [fold(row, len(rows)) for row in rows]

    def shortfalls(self) -> list[str]:
        """The reasons why the run is incomplete or wrong, without duplicates; [] if it is complete and correct."""
        if not self.rows:
            return [NO_POINTS]
        return [*self.manifest.get("waiting", ()), *sentences.shortfalls(self.rows, self.config)]

    def csv(self) -> str:
        return table.to_csv(columns.FILE, self.rows)

    @property
    def definition(self) -> str:
        """The section of docs/metrics that defines the numbers in the headlines."""
        return _KINDS[self.kind][0]

    def page(self, pictures: Sequence[Picture]) -> Page:
        """The run's page."""
        profile = [("Machine profile", self.machine_profile)] if self.machine_profile and self.kind == CASES else []
        return Page(
            name=self.experiment,
            heading=self.title,
            headlines=self.headlines,
            pictures=pictures,
            table=self.table(),
            brief=self.brief(),
            telling=telling(self),
            definition=self.definition,
            sections=self.sections(),
            ledger=preparation.ledger(self.manifest.get("preparation", Preparation())),
            folds=self.folds(),
            sources=[("Manifest", self.manifest), ("Config", self.config), *profile],
        )


def find(run: RunFolder) -> RunReport:
    """Reads and analyses a run folder. Raises UserError if it is not one, is damaged or has another schema."""
    loaded, common = points.load(run), of_folder(run)
    config, manifest, profile = common["config"], common["manifest"], common["machine_profile"]
    plan = manifest["plan"]
    rows = run_rows.analyse(
        loaded,
        config=config,
        manifest=manifest,
        machine=machine_profile.at_speed_of(profile, manifest),
        spread=bootstrap.read_spread(run.path),
    )
    common["experiment"] = rows[0].point.experiment if rows else str(plan.get("experiment", ""))
    if plan.get("measures") == CASES:
        lines = alpha_beta.fit_all(rows)
        rows = alpha_beta.fitted(rows, lines)
        return RunReport(**common, kind=CASES, view=str(plan.get("view", "")), rows=rows, lines=lines)
    price = float(config.get("price_per_hour") or 0) or None
    if plan.get("measures") == DECODE:
        rows, token_times = decoding.analyse(rows, price)
        return RunReport(**common, kind=DECODE, view=DECODE, rows=rows, token_times=token_times)
    if plan.get("measures") == ARMS:
        swept = [str(name) for name in plan.get("swept") or ()]
        groups = arms.analyse(rows, swept)
        return RunReport(**common, kind=ARMS, view=view_of(swept, groups), rows=arms.arms_of(groups), groups=groups)
    waterfalls = waterfall.find(rows, profile, manifest.get("workers"))
    rows = decoding.of_own_steps(waterfall.explain(rows, waterfalls), price)
    return RunReport(**common, kind=TRAINING, rows=rows, waterfalls=waterfalls)


def of_folder(run: RunFolder) -> dict[str, Any]:
    """The fields of a report that come from the folder itself. A profile of another machine is not used."""
    config, manifest = run.config(), run.manifest()
    profile = machine_profile.read(run.path / machine_profile.NAME)
    why_not = machine_profile.matches(profile, manifest) if profile is not None else ""
    return {
        "path": run.path,
        "config": config,
        "manifest": manifest,
        "machine_profile": None if why_not else profile,
        "repairs": [
            *dict.fromkeys(run.notes),
            *manifest.get("apart", ()),
            *_speeds(manifest),
            *([f"The machine profile in the folder is not used: {why_not}"] if why_not else []),
            *([said] if profile is not None and (said := machine_profile.speed_note(profile, manifest)) else []),
        ],
    }


def _speeds(manifest: Manifest) -> list[str]:
    """A sentence for each later start of the run at which the machine ran at another speed than at the first."""
    first, found = Manifest(identity=manifest.get("identity", {})), []
    for each in manifest.get("sessions", ()):
        then = Manifest(identity=each.get("identity", {}))
        when = f"at its start of {each.get('started', '')}"
        found += identity.cautions(first, then, "at the first start of this run", when)
    return [f"{each[:1].upper()}{each[1:]}." for each in found]


def view_of(swept: Sequence[str], groups: Sequence[ArmGroup]) -> str:
    """The view of a sweep, which selects its figures and sentences: of its single lever, of parts by batch, or the
    general view "arms"."""
    parts = {PART.of(arm.point.levers) for group in groups for arm in group.arms}
    if parts == {"inference"} and list(swept) == ["batch"]:
        return "inference"
    if "part" in swept and set(swept) <= {"part", "batch"} and len(parts & set(lever_results.PREFIXES)) > 1:
        return "phases"
    return _VIEWS.get(swept[0], "arms") if len(swept) == 1 and parts != {"inference"} else "arms"


def unit(rows: Iterable[Row]) -> str:
    """What an example is, such as "images"; "examples" if rows differ or none was compiled."""
    units = {row.point.unit for row in rows if row.point.record is not None}
    return units.pop() if len(units) == 1 else "examples"


def legend(rows: Sequence[Row]) -> str:
    """The note below a table on its numbers and marks."""
    in_turns = any(row.timing.resampling.turns is not None for row in rows)
    known = any(row.timing.step_s.has_interval for row in rows)
    text = LEGEND_IN_TURNS if in_turns and known else LEGEND if known else NO_INTERVAL
    return text + OVERSUBSCRIBED * any(row.point.oversubscribed for row in rows)


def shown_rows(run: RunReport) -> list[Row]:
    """The rows of tables and details. What does not support the model has no numbers, and a section names it."""
    excused = bool(sentences.excused(run.rows, run.config))
    return [row for row in run.rows if not (excused and row.point.status == "unsupported")]


def telling(run: RunReport) -> Table | None:
    """The most telling lines of many cases, for the first two screens of a page; None for other tables."""
    if run.kind != CASES:
        return None
    rows, cut = shortened(run._in_order(), run.view, LINES)
    made = run._table(rows)
    return dataclasses.replace(made, note=made.note + cut)


def shortened(rows: Sequence[Row], view: str, most: int = MAX_LINES) -> tuple[list[Row], str]:
    """(at most `most` rows of cases, a sentence on the selection; "" if all are shown).

    It keeps the smallest size of each series, the size at half of the best rate, and the largest size. If these are
    too many, only the largest size.
    """
    if len(rows) <= most:
        return list(rows), ""
    series: dict[tuple[object, ...], list[Row]] = {}
    for row in [row for row in rows if _bytes_or_elements(row)] or rows:  # rows without a size have their own sections
        series.setdefault(tuple(getattr(row.point, name) for name in _SERIES), []).append(row)
    chosen = [row for group in series.values() for row in _telling(group, view)]
    how = "for each series the smallest size, the size at half of the best rate (n½), and the largest size"
    if len(chosen) > most:
        chosen = [max(group, key=_bytes_or_elements) for group in series.values()]
        how = "for each series the largest size"
    if len(chosen) > most:
        chosen, how = chosen[:most], f"{how}, for the first {most} series"
    return chosen, f" Shown: {how}; all {len(rows)} points are on the page."


def _bytes_or_elements(row: Row) -> int:
    return row.point.payload_bytes or row.point.elements or 0


def _telling(rows: Sequence[Row], view: str) -> list[Row]:
    """The smallest size, the first size with half of the view's best rate, and the largest size, without duplicates."""
    by_size = sorted(rows, key=_bytes_or_elements)
    shown = present(columns.rate(view) or columns.rate("curves"))
    taken = ((take(shown.get if shown.shown is None else shown.shown, row), row) for row in by_size)  # Estimates
    rates = [(rate.value, row) for rate, row in taken if rate is not None and rate.known]
    half = [row for value, row in rates if value >= max(rate for rate, _ in rates) / 2]
    return list(dict.fromkeys([by_size[0], *half[:1], by_size[-1]]))
