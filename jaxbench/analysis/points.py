# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The points of a run of training steps or of cases, including missing ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jaxbench.analysis import point_records
from jaxbench.analysis.point_records import Measured
from jaxbench.core.schema import CasePlace, CaseRecord, FailureRecord, PointRecord, StepPlace
from jaxbench.core.store import RunFolder
from jaxbench.errors import UserError
from jaxbench.levers import TRAININGS


@dataclass(frozen=True, kw_only=True)
class MeasuredPoint(StepPlace, Measured[PointRecord]):
    """One (strategy, scaling, devices, arm), with everything that the run recorded about it."""

    @property
    def peak_bytes(self) -> float:
        """Peak memory of a step per device; NaN: unknown."""
        return float(self.record.passport.peak_bytes or math.nan) if self.record is not None else math.nan

    @property
    def temp_bytes(self) -> float:
        """Scratch memory of the compiled step per device, which includes activations; NaN: unknown."""
        temp = self.record.passport.temp_bytes if self.record is not None else None
        return math.nan if temp is None else float(temp)

    @property
    def part(self) -> str:
        """The part of the step that it runs, or the ablation: alone, local, communication, peak."""
        return self.levers.get("part", "step")

    @property
    def trainings(self) -> int:
        """How many trainings run at once, each with the whole batch."""
        return TRAININGS.of(self.levers).at_once

    @property
    def examples(self) -> int:
        """The examples in one step of all its trainings."""
        return self.global_batch * self.trainings

    def outcome(self, name: str) -> float:
        """One result of its short training; NaN if there is none."""
        return float(self.record.outcome.get(name, math.nan)) if self.record is not None else math.nan

    @property
    def loss_after(self) -> float:
        """The loss after the steps of its first round; NaN: unknown."""
        return next((each.loss_after for each in self.rounds if each.loss_after is not None), math.nan)

    def fact(self, name: str) -> float:
        """A number of the step other than its time; NaN if there is none."""
        return self.record.facts.get(name, math.nan) if self.record is not None else math.nan


def load(run: RunFolder) -> list[MeasuredPoint]:
    """Reads a run folder. Returns the planned points and any others, by strategy, scaling and devices.

    The arms of one group keep the order of the plan, because the first arm is the baseline.

    Raises:
      UserError: it is not a run folder, is damaged, or has another schema or no sweep plan.
    """
    plan = run.manifest().get("plan")
    if not isinstance(plan, dict) or not isinstance(plan.get("points"), list):
        raise UserError(f"'{run.path}' has no sweep plan in its manifest: report on a folder made by 'jaxbench run'.")
    points = point_records.load_points(run, plan, MeasuredPoint, PointRecord, StepPlace, _unplanned)
    strategies = list(dict.fromkeys(p.strategy for p in points))
    return sorted(points, key=lambda p: (strategies.index(p.strategy), p.scaling, p.devices))


def hosts_of(point: MeasuredPoint, workers: Mapping[str, Any]) -> int:
    """The number of hosts of a point's processes. workers: from the manifest."""
    about = workers.get(point.record.worker, {}) if point.record is not None else {}
    return len(set(about.get("hosts", ()))) or 1


def _unplanned(name: str, platform: str, failure: FailureRecord | None) -> StepPlace | None:
    """The place of an unplanned point, from its failure; None without one."""
    if failure is None:
        return None
    return StepPlace(
        point=name, devices=failure.devices, platform=platform, oversubscribed=False, strategy=failure.strategy,
        scaling=failure.scaling, global_batch=failure.global_batch, arm=failure.arm,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class CasePoint(CasePlace, Measured[CaseRecord]):
    """One case on given devices, with everything that the run recorded about it."""

    @property
    def group_processes(self) -> int | None:
        """For a collective, the number of processes that own the devices of one group; None: unknown."""
        return self.record.group_processes if self.record is not None and self.family == "collective" else None

    @property
    def group_hosts(self) -> int | None:
        """For a collective, the number of hosts of those processes; None: unknown."""
        return self.record.group_hosts if self.record is not None and self.family == "collective" else None

    @property
    def where(self) -> str:
        """The platform, or the number of cores: "gpu", "2 cores"."""
        return f"{self.cores} core{'s' * (self.cores != 1)}" if self.platform == "cpu" else self.platform

    @property
    def between(self) -> str:
        """What a collective's group spans: "2 hosts", "2 processes", or "" within one process."""
        return between(self.group_processes or 1, self.group_hosts or 1)


def between(processes: int, hosts: int) -> str:
    """What these processes and hosts are in words: "2 hosts"; "2 processes" on one host; "" for one process."""
    if hosts > 1:
        return f"{hosts} hosts"
    return f"{processes} processes" if processes > 1 else ""


def load_cases(run: RunFolder) -> list[CasePoint]:
    """Reads a run folder. Returns the planned points in the order of the plan, then any that are not in the plan.

    Raises:
      UserError: not a run folder, damaged, of another schema, or not a run of cases.
    """
    plan = run.manifest().get("plan")
    if not (isinstance(plan, dict) and plan.get("measures") == "cases" and isinstance(plan.get("points"), list)):
        raise UserError(
            f"'{run.path}' has no plan of cases in its manifest: it is not a run of kernels or collectives."
        )
    return point_records.load_points(run, plan, CasePoint, CaseRecord, CasePlace, _unplanned_case)


def _unplanned_case(name: str, platform: str, failure: FailureRecord | None) -> CasePlace:
    """Only the operation is known, from the beginning of the id."""
    return CasePlace(
        point=name, devices=failure.devices if failure is not None else 1, platform=platform, oversubscribed=False,
        family="", op=name.split("/")[0], dtype="", impl="", cores=None, resident_bytes=None,
    )  # fmt: skip
