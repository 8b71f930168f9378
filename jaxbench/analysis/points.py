# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The points of a run of training steps, including missing ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jaxbench.analysis import consistency, measured
from jaxbench.analysis.measured import Measured
from jaxbench.errors import UserError
from jaxbench.levers import TRAININGS
from jaxbench.records.place import StepPlace
from jaxbench.records.schema import FailureRecord, PointRecord
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
      UserError: it is not a run folder, is damaged, has another schema or no sweep plan, or a point contradicts its
        name or the config.
    """
    plan = run.manifest().get("plan")
    if not isinstance(plan, dict) or not isinstance(plan.get("points"), list):
        raise UserError(f"'{run.path}' has no sweep plan in its manifest: report on a folder made by 'jaxbench run'.")
    points = measured.load(run, plan, MeasuredPoint, PointRecord, StepPlace, _unplanned)
    _require_asked(run, points)
    consistency.require(run.path, run.manifest(), run.config(), points)
    strategies = list(dict.fromkeys(p.strategy for p in points))
    return sorted(points, key=lambda p: (strategies.index(p.strategy), p.scaling, p.devices))


def hosts_of(point: MeasuredPoint, workers: Mapping[str, Any]) -> int:
    """The number of hosts of a point's processes. workers: from the manifest."""
    about = workers.get(point.record.worker, {}) if point.record is not None else {}
    return len(set(about.get("hosts", ()))) or 1


def _require_asked(run: RunFolder, points: list[MeasuredPoint]) -> None:
    """Checks each point against its name and the config, so that an edited plan and record cannot agree on another
    batch or strategy.

    An ablation is named after the point that it explains, and it has the per-device batch.
    """
    config, own_batch = run.config(), {p.point: p.global_batch for p in points if not p.explains}
    for p in points:
        if p.explains and p.explains not in own_batch:
            raise UserError(f"'{run.path}' is damaged: {p.point} explains {p.explains}, which it does not have.")
        own = "/".join(filter(None, (p.strategy, p.scaling, str(p.devices), p.arm)))
        named = f"{p.explains}/{_part_name(p, own_batch.get(p.explains, 0))}" if p.explains else own
        if p.record is not None and p.point != named:
            raise UserError(f"'{run.path}' is damaged: {p.point} was recorded as {named}: restore the file.")
        asked = int(p.levers.get("batch") or 0) or config.get("batch")
        grows = p.scaling == "weak" and config.get("weak", "batch") == "batch"
        if p.record is None or p.explains or not isinstance(asked, int):
            continue
        if p.global_batch != (batch := asked * (p.devices if grows else 1)):
            raise UserError(
                f"'{run.path}' is damaged: {p.point} was recorded with a global batch of {p.global_batch}, and its "
                f"config makes it {batch}: restore the file."
            )


def _part_name(point: MeasuredPoint, batch: int) -> str:
    """The end of an ablation's name: its part, or its batch as a multiple of the explained point's `batch`. A whole
    step with the same batch is the ablation with resident input."""
    times = point.global_batch / batch if batch else 0.0
    if point.part != "step":
        return point.part
    return "resident" if times == 1 else f"batch={times:g}x"


def _unplanned(name: str, platform: str, failure: FailureRecord | None) -> StepPlace | None:
    """The place of an unplanned point, from its failure; None without one."""
    if failure is None:
        return None
    return StepPlace(
        point=name, devices=failure.devices, platform=platform, oversubscribed=False, strategy=failure.strategy,
        scaling=failure.scaling, global_batch=failure.global_batch, arm=failure.arm,
    )  # fmt: skip
