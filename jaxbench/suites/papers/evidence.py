# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The runs of a paper as their reports read them, each read once; and its trainings to a target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from jaxbench.analysis.arms import ArmGroup
from jaxbench.analysis.run_rows import Row
from jaxbench.core.store import MANIFEST
from jaxbench.features.comparison import judge
from jaxbench.features.time_to_target.analysis import LEAST_BATCHES, fit_knee
from jaxbench.features.training.trainings import TARGETS, Trained, read_trained
from jaxbench.records.manifest import Manifest
from jaxbench.report import build
from jaxbench.report.run_report import ARMS, CASES, TRAINING, RunReport
from jaxbench.statistics.bootstrap import UNKNOWN, Estimate, over_seeds
from jaxbench.suites.command import ASKED, BROKEN, DONE, STOPPED

LEARNT = 0.5
_UNFINISHED = {ASKED: "was not started", STOPPED: "was interrupted", BROKEN: "broke off"}


class NotTestable(Exception):
    """Why a claim has no number here, as a sentence. verdict: of `judge`, in place of one on the number."""

    def __init__(self, why: str, verdict: str = judge.NOT_TESTABLE) -> None:
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
        about = self._runs.get(name, {"outcome": DONE if there else ASKED})
        if why := _UNFINISHED.get(about["outcome"]):
            raise NotTestable(f"The run '{name}' {why}: the same command continues with it.", judge.NOT_MEASURED)
        if not there:
            raise NotTestable(f"The run '{run}' has no records. {about['said']}".strip())
        return self.folder / run

    def training(self, run: str) -> RunReport:
        """A run over device counts. Raises NotTestable without one, UserError if it is damaged."""
        return self._find(run, TRAINING)

    def levers(self, run: str) -> RunReport:
        """A run that sweeps levers. Raises NotTestable without one, UserError if it is damaged."""
        return self._find(run, ARMS)

    def place(self, run: str) -> ArmGroup:
        """The first place of a run that sweeps levers. Raises NotTestable without one, UserError if it is damaged."""
        for place in self.levers(run).groups:
            return place
        raise NotTestable(f"The run '{run}' has no points yet.")

    def cases(self, run: str) -> RunReport:
        """A run of kernels, transfers or collectives. Raises NotTestable without one, UserError if it is damaged."""
        return self._find(run, CASES)

    def _find(self, run: str, kind: str) -> RunReport:
        if run not in self._read:
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


def arm_of(place: ArmGroup, label: str, *, quotable: bool = False) -> Row:
    """An arm of a place by its label, measured and correct. Raises NotTestable without one. quotable: a speed, too."""
    for arm in place.arms:
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
        2018). Its interval is Student's over seeds: one fit for each. UNKNOWN with fewer than three batches."""
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
