# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The runs of a paper as their reports read them, each read once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from jaxbench.analysis.arms import ArmGroup, ArmResult
from jaxbench.analysis.scaling import Row
from jaxbench.first_run.document import ASKED, BROKEN, DONE, STOPPED
from jaxbench.records.store import MANIFEST
from jaxbench.report import build
from jaxbench.report.case_findings import CaseFindings
from jaxbench.report.findings import Findings, TrainingFindings
from jaxbench.report.lever_findings import LeverFindings
from jaxbench.verdicts import judge

F = TypeVar("F", bound=Findings)
_UNFINISHED = {ASKED: "was not started", STOPPED: "was interrupted", BROKEN: "broke off"}


class NotTestable(Exception):
    """Why a claim has no number here, as a sentence. verdict: of `verdicts.judge`, in place of one on the number."""

    def __init__(self, why: str, verdict: str = judge.NOT_TESTABLE) -> None:
        super().__init__(why)
        self.verdict = verdict


class Evidence:
    """The run folders of one paper. folder: of the paper. runs: how they ended, as in paper.json, if that is known."""

    def __init__(self, folder: Path, runs: Mapping[str, Mapping[str, Any]] = MappingProxyType({})) -> None:
        self.folder, self._runs = folder, runs
        self._read: dict[str, Findings] = {}

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

    def training(self, run: str) -> TrainingFindings:
        """A run over device counts. Raises NotTestable without one, UserError if it is damaged."""
        return self._find(run, TrainingFindings)

    def levers(self, run: str) -> LeverFindings:
        """A run that sweeps levers. Raises NotTestable without one, UserError if it is damaged."""
        return self._find(run, LeverFindings)

    def place(self, run: str) -> ArmGroup:
        """The first place of a run that sweeps levers. Raises NotTestable without one, UserError if it is damaged."""
        for place in self.levers(run).places:
            return place
        raise NotTestable(f"The run '{run}' has no points yet.")

    def cases(self, run: str) -> CaseFindings:
        """A run of kernels, transfers or collectives. Raises NotTestable without one, UserError if it is damaged."""
        return self._find(run, CaseFindings)

    def _find(self, run: str, kind: type[F]) -> F:
        if run not in self._read:
            self._read[run] = build.find(self.path(run))
        found = self._read[run]
        if not isinstance(found, kind):
            raise NotTestable(f"The run '{run}' is of another kind: its folder holds '{found.title}'.")
        return found

    def manifests(self) -> list[dict]:
        """Of every run that has been read."""
        return [found.manifest for found in self._read.values()]


def most_devices(rows: Iterable[Row], strategy: str = "", scaling: str = "") -> Row:
    """The honest row with an efficiency on most devices, more than its base has. Raises NotTestable without one."""
    rows = [r for r in rows if strategy in ("", r.point.strategy) and scaling in ("", r.point.scaling)]
    good = [r for r in rows if r.honest and r.efficiency.known and r.relative_devices > 1]
    if not good:
        raise NotTestable("It needs two device counts of at most as many devices as cores, correct and with 5 rounds.")
    return max(good, key=lambda r: r.point.devices)


def arm_of(place: ArmGroup, label: str, *, honest: bool = False) -> ArmResult:
    """An arm of a place by its label, measured and correct. Raises NotTestable without one. honest: a speed, too."""
    for arm in place.arms:
        if arm.label == label and (arm.honest if honest else arm.believed):
            return arm
    what = ", failed its checks or is no honest speed here" if honest else ", or failed its checks"
    raise NotTestable(f"The arm '{label}' was not measured{what}.")
