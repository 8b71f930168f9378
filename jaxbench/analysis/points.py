# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The points of a run of training steps, including missing ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jaxbench.analysis import measured
from jaxbench.analysis.measured import Measured
from jaxbench.errors import UserError
from jaxbench.levers import TRAININGS
from jaxbench.records.schema import FailureRecord, PointRecord, StepPlace
from jaxbench.records.store import RunFolder


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
    points = measured.load(run, plan, MeasuredPoint, PointRecord, StepPlace, _unplanned)
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
