# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A paper: its runs, its claims and the panels of its figure, from `library/ID.toml`.

A claim names a function of `readers` for its number, and a panel names functions of `series` for its curves. Both take
`Evidence`: the runs as their reports read them, each read once, and the trainings to a target.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from jaxbench.analysis.arms import ArmGroup
from jaxbench.analysis.run_rows import Row
from jaxbench.core.store import MANIFEST
from jaxbench.errors import UserError, did_you_mean
from jaxbench.features.comparison import claims
from jaxbench.features.time_to_target.analysis import LEAST_BATCHES, fit_knee
from jaxbench.features.training.trainings import TARGETS, Trained, read_trained
from jaxbench.records.manifest import Manifest
from jaxbench.records.reading import read_toml
from jaxbench.report import build
from jaxbench.report.run_report import ARMS, CASES, DECODE, TRAINING, RunReport
from jaxbench.statistics.bootstrap import UNKNOWN, Estimate, over_seeds
from jaxbench.suites.command import ASKED, BROKEN, DONE, STOPPED

LIBRARY = Path(__file__).parent / "library"
Call = dict[str, Any]  # {"function": its name, **arguments}
LEARNT = 0.5  # of the best batch's accuracy: a training far below it did not learn the task
_UNFINISHED = {ASKED: "was not started", STOPPED: "was interrupted", BROKEN: "broke off"}


@dataclass(frozen=True, kw_only=True)
class Run:
    """One command of the suite. Its records test a paper.

    Attributes:
      name: of its folder below the paper's.
      minutes: expected on two cores, at the default size.
      words: the arguments of `jaxbench`, without the folder.
      paper: the words at the paper's own size, for --preset=paper; (): the same words.
    """

    name: str
    minutes: float
    words: tuple[str, ...]
    paper: tuple[str, ...] = ()

    def at(self, preset: str) -> tuple[str, ...]:
        """The words at a preset, "auto" or "paper"."""
        return self.paper if preset == "paper" and self.paper else self.words


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One sentence of a paper with its quantity.

    Attributes:
      name: short, unique within the paper.
      sentence: the paper's statement, in our words. source: where it is in the paper.
      quantity: the number that is read here, with its unit.
      low, high: the claim holds where the quantity lies within them.
      read: the function of `readers` that takes the number from the paper's runs.
      detail: the conditions of the number, a template for the fields of the reading: "{devices} devices".
      here: what a machine of two cores can show of it.
    """

    name: str
    sentence: str
    source: str
    quantity: str
    low: float = -math.inf
    high: float = math.inf
    read: Call
    detail: str = ""
    here: str

    @property
    def limit(self) -> str:
        """ "at least 0.9", "between 0.8 and 1.25"."""
        if math.isfinite(self.low) and math.isfinite(self.high):
            return f"{self.low:g}" if self.low == self.high else f"between {self.low:g} and {self.high:g}"
        return f"at least {self.low:g}" if math.isfinite(self.low) else f"at most {self.high:g}"


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One panel of the paper's figure, with the paper's axes.

    Attributes:
      log: which axes are logarithmic: "", "x", "y" or "xy". base: of a logarithmic x axis.
      top: where the y axis ends at least; 0: at the data.
      names: of the places 0, 1, .. along x, for an axis without numbers. Its marks are not joined.
      published: functions of `series` that need no runs: the paper's own curves and formulas.
      measured: functions of `series` that read the runs.
    """

    title: str
    x: str
    y: str
    log: str = ""
    base: int = 2
    top: float = 0.0
    names: tuple[str, ...] = ()
    published: tuple[Call, ...] = ()
    measured: tuple[Call, ...]


@dataclass(frozen=True, kw_only=True)
class Paper:
    """Attributes:
    id: the name of its file.
    citation: authors, title, year and number, with those of further papers of the same claims.
    title: of page and figure: what is measured, not what the paper claims of it.
    tables: ids of the published series in the catalogue.
    """

    id: str
    citation: str
    title: str
    tables: tuple[str, ...] = ()
    runs: tuple[Run, ...]
    claims: tuple[Claim, ...]
    panels: tuple[Panel, ...]

    @property
    def minutes(self) -> float:
        """Expected on two cores, at the default size."""
        return sum(run.minutes for run in self.runs)


def names() -> list[str]:
    """The ids of all papers, sorted."""
    return sorted(file.stem for file in LIBRARY.glob("*.toml"))


def load(id: str) -> Paper:
    """Raises UserError for an unknown id."""
    if id not in names():
        raise UserError(f"there is no paper '{id}': {did_you_mean(id, names())}")
    table = read_toml(LIBRARY / f"{id}.toml", "restore the file of the paper.")
    for run in table["runs"]:  # commands are text, with line breaks, so that they read as they are typed
        run |= {size: tuple(run[size].split()) for size in ("words", "paper") if size in run}
    parts = {"runs": Run, "claims": Claim, "panels": Panel}
    return Paper(id=id, **table | {part: tuple(kind(**each) for each in table[part]) for part, kind in parts.items()})


class NotTestable(Exception):
    """Why a claim has no number here, as a sentence. verdict: of `judge`, in place of one on the number."""

    def __init__(self, why: str, verdict: str = claims.NOT_TESTABLE) -> None:
        super().__init__(why)
        self.verdict = verdict


class Evidence:
    """The run folders of one paper. folder: of the paper. runs: how they ended, as in paper.json, if that is known."""

    def __init__(self, folder: Path, runs: Mapping[str, Mapping[str, Any]] = MappingProxyType({})) -> None:
        self.folder, self._runs = folder, runs
        self._read: dict[str, RunReport] = {}

    def path(self, run: str, file: str = MANIFEST) -> Path:
        """The folder of a run that has `file`. Raises NotTestable: the run did not end, or has no such file."""
        name = run.partition("/")[0]  # a run of `machine` holds several
        there = (self.folder / run / file).is_file()
        # Without paper.json the files alone decide.
        about = self._runs.get(name, {"outcome": DONE if there else ASKED})
        if why := _UNFINISHED.get(about["outcome"]):
            raise NotTestable(f"The run '{name}' {why}: the same command continues with it.", claims.NOT_MEASURED)
        if not there:
            raise NotTestable(f"The run '{run}' has no records. {about['said']}".strip())
        return self.folder / run

    def training(self, run: str) -> RunReport:
        """A run over device counts. Raises NotTestable without one, UserError if it is damaged."""
        return self._find(run, TRAINING)

    def levers(self, run: str) -> RunReport:
        """A run that sweeps levers. Raises NotTestable without one, UserError if it is damaged."""
        return self._find(run, ARMS)

    def group(self, run: str) -> ArmGroup:
        """The first group of arms of a run that sweeps levers. Raises NotTestable without one, and UserError."""
        for group in self.levers(run).groups:
            return group
        raise NotTestable(f"The run '{run}' has no points yet.")

    def cases(self, run: str) -> RunReport:
        """A run of kernels, transfers or collectives. Raises NotTestable without one, UserError if it is damaged."""
        return self._find(run, CASES)

    def generation(self, run: str) -> RunReport:
        """A run of generation. Raises NotTestable without one, UserError if it is damaged."""
        return self._find(run, DECODE)

    def _find(self, run: str, kind: str) -> RunReport:
        """The report of a run of this paper. Raises NotTestable if it is of another kind."""
        if run not in self._read:  # several claims and curves read the same run
            self._read[run] = build.find(self.path(run))
        report = self._read[run]
        if report.kind != kind:
            raise NotTestable(f"The run '{run}' is of another kind: its folder holds '{report.title}'.")
        return report

    def manifests(self) -> list[Manifest]:
        """Of every run that has been read."""
        return [report.manifest for report in self._read.values()]


def most_devices(rows: Iterable[Row]) -> Row:
    """The quotable row of weak scaling on most devices, more than its base has. Raises NotTestable."""
    weak = [row for row in rows if row.point.scaling == "weak"]
    # On more devices than its base, which has an efficiency of 1 by definition.
    good = [row for row in weak if row.quotable and row.efficiency.known and row.relative_devices > 1]
    if not good:
        raise NotTestable("It needs two device counts of at most as many devices as cores, correct and with 5 rounds.")
    return max(good, key=lambda r: r.point.devices)


def arm_of(group: ArmGroup, label: str, *, quotable: bool = False) -> Row:
    """An arm of a group by its label, measured and correct. Raises NotTestable without one. quotable: a speed, too."""
    for arm in group.arms:
        if arm.label == label and (arm.quotable if quotable else arm.usable):
            return arm
    what = ", failed its checks or is no honest speed here" if quotable else ", or failed its checks"
    raise NotTestable(f"The arm '{label}' was not measured{what}.")


@dataclass(frozen=True, kw_only=True)
class TrainingsByBatch:
    """The trainings of one model on one device under one rule for the learning rate, by batch.

    Attributes:
      steps: {batch: (seeds,)} to the target. Only batches with all trainings at the target: a training that did not
        reach it gives only a lower bound of its steps.
      accuracy: {batch: (seeds,)} of all trainings, as a share.
      diverged: {batch: how many of its trainings}: the loss was not finite, or the accuracy is below LEARNT times the
        best batch's. Such a network has not learnt the task, so it says nothing of what a batch costs.
      noise: (trainings,) gradient noise scale in examples; unknown ones are left out.
    """

    steps: dict[int, np.ndarray]
    accuracy: dict[int, np.ndarray]
    diverged: dict[int, int]
    noise: np.ndarray

    def knee(self) -> Estimate:
        """The critical batch B of steps = S (1 + B / batch), fitted to the logarithms of the mean steps (McCandlish
        2018). Its interval is Student's over seeds. UNKNOWN with fewer than three batches."""
        # One fit for each seed: a fit to all at once would have no interval that knows how seeds differ.
        seeds = min((len(steps) for steps in self.steps.values()), default=0)
        if len(self.steps) < LEAST_BATCHES:
            return UNKNOWN
        batches = [float(batch) for batch in self.steps]
        return over_seeds(fit_knee(batches, [steps[i] for steps in self.steps.values()])[1] for i in range(seeds))


def trainings(runs: Evidence, rule: str) -> TrainingsByBatch:
    """The trainings under a rule for the learning rate. Raises NotTestable without any, UserError if damaged."""
    every = [one for one in read_trained(runs.path("targets", TARGETS)) if one.rule == rule]
    if not every:
        raise NotTestable(f"No training used the rule '{rule}' for its learning rate.")
    # Of several models or device counts one, because their steps to the target are not comparable.
    model, devices = min((one.model, one.devices) for one in every)
    groups: dict[int, list[Trained]] = {}
    for one in sorted(every, key=lambda one: one.batch):
        if (one.model, one.devices) == (model, devices):
            groups.setdefault(one.batch, []).append(one)
    # An unknown accuracy is none: a training that diverges before its first evaluation has no accuracy.
    accuracy = {batch: np.array([one.accuracy or 0.0 for one in group]) for batch, group in groups.items()}
    least = LEARNT * max(float(values.mean()) for values in accuracy.values())
    scales = [one.noise_scale for group in groups.values() for one in group]
    return TrainingsByBatch(
        steps={
            batch: np.array([float(one.steps) for one in group])
            for batch, group in groups.items()
            if all(one.reached for one in group)
        },
        accuracy=accuracy,
        diverged={
            batch: sum(one.diverged is not None or (one.accuracy or 0.0) < least for one in group)
            for batch, group in groups.items()
        },
        noise=np.array([scale for scale in scales if scale is not None]),
    )
