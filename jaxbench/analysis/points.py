# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The points of a run of training steps or of cases, including missing ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jaxbench.analysis import point_records
from jaxbench.analysis.point_records import Measured
from jaxbench.errors import UserError
from jaxbench.levers.trainings import TRAININGS
from jaxbench.records import model
from jaxbench.records.place import CasePlace, StepPlace
from jaxbench.records.schema import CaseRecord, FailureRecord, PointRecord
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
    points = point_records.load_points(run, plan, MeasuredPoint, PointRecord, StepPlace, _unplanned)
    for contradiction in _contradictions(run, points):
        raise UserError(f"'{run.path}' is damaged: {contradiction}: restore the file.")
    strategies = list(dict.fromkeys(p.strategy for p in points))
    return sorted(points, key=lambda p: (strategies.index(p.strategy), p.scaling, p.devices))


def hosts_of(point: MeasuredPoint, workers: Mapping[str, Any]) -> int:
    """The number of hosts of a point's processes. workers: from the manifest."""
    about = workers.get(point.record.worker, {}) if point.record is not None else {}
    return len(set(about.get("hosts", ()))) or 1


def _contradictions(run: RunFolder, points: Iterable[MeasuredPoint]) -> Iterator[str]:
    """Points that contradict their name, the config, the manifest or comparable points, as clauses.

    So an edited plan and record cannot agree on another batch, strategy, device or amount of work. An ablation is named
    after the point that it explains, and it has the per-device batch. A manifest of jobs on different machines has no
    single device kind.
    """
    manifest, config = run.manifest(), run.config()
    batches = {p.point: p.global_batch for p in points if not p.explains}
    kinds = {manifest.get("device_kind"), *(manifest.get("device_kinds") or ())} - {None}
    cores, comparable = manifest.get("cores"), dict[Any, PointRecord]()
    for p in points:
        if p.explains and p.explains not in batches:
            yield f"{p.point} explains {p.explains}, which it does not have"
        if p.record is None:
            continue
        own = "/".join(filter(None, (p.strategy, p.scaling, str(p.devices), p.arm)))
        named = f"{p.explains}/{_part_name(p, batches.get(p.explains, 0))}" if p.explains else own
        if p.point != named:
            yield f"{p.point} was recorded as {named}"
        asked = int(p.levers.get("batch") or 0) or config.get("batch")
        grows = p.scaling == "weak" and config.get("weak", "batch") == "batch"
        batch = asked * (p.devices if grows else 1) if isinstance(asked, int) and not p.explains else p.global_batch
        if p.global_batch != batch:
            found = f"{p.point} was recorded with a global batch of {p.global_batch}"
            yield f"{found}, and its config makes it {batch}"
        own_kinds = kinds if manifest.get("platform") == p.platform and not manifest.get("apart") else ()
        if own_kinds and p.record.device_kind not in own_kinds:
            kind = manifest.get("device_kind")
            yield f"{p.point} was recorded on '{p.record.device_kind}', and its manifest is of '{kind}'"
        alone = p.processes == 1 and p.platform == "cpu"  # the cores of several processes may be several hosts'
        if alone and isinstance(cores, int) and not p.oversubscribed and p.devices > cores:
            each = f"a core for each of its {p.devices} devices"
            yield f"{p.point} was recorded with {each}, and its manifest has {cores} cores"
        if p.explains or (p.scaling == "weak" and config.get("weak") == "model"):
            continue  # otherwise neither the strategy nor the devices change the FLOPs of a step
        first = comparable.setdefault((p.global_batch, *sorted(p.levers.items())), p.record)
        differences = model.differences(first, p.record)
        differences.pop("gradient_bytes", None)  # one device sends nothing
        if differences:
            yield f"{first.point} and {p.point} are of one model ({model.sentence(differences, 'there', 'here')})"


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
