# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The runs of a paper as their reports read them, each read once."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from jaxbench.analysis.arms import ArmGroup, ArmResult
from jaxbench.analysis.scaling import Row
from jaxbench.records.store import MANIFEST
from jaxbench.report import build
from jaxbench.report.case_findings import CaseFindings
from jaxbench.report.findings import Findings, TrainingFindings
from jaxbench.report.lever_findings import LeverFindings

F = TypeVar("F", bound=Findings)


class NotTestable(Exception):
    """Why this machine or this version cannot test a claim, as a sentence."""


class Evidence:
    """The run folders of one paper. folder: of the paper."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[str, Findings] = {}

    def path(self, run: str) -> Path:
        """The folder of a run. Raises NotTestable without one."""
        if not (self.folder / run / MANIFEST).is_file():
            raise NotTestable(f"The run '{run}' has no records yet.")
        return self.folder / run

    def training(self, run: str) -> TrainingFindings:
        """A run over device counts. Raises NotTestable without one, UserError if it is damaged."""
        return self._find(run, TrainingFindings)

    def levers(self, run: str) -> LeverFindings:
        """A run that sweeps levers. Raises NotTestable without one, UserError if it is damaged."""
        return self._find(run, LeverFindings)

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


def arm_of(place: ArmGroup, label: str) -> ArmResult:
    """An arm of a place by its label, measured and correct. Raises NotTestable without one."""
    for arm in place.arms:
        if arm.label == label and arm.believed:
            return arm
    raise NotTestable(f"The arm '{label}' was not measured, or failed its checks.")
