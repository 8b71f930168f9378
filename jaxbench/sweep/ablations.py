# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Ablation points, which explain the lost efficiency of another point (docs/metrics, Waterfall).

alone           one device does its share, the others are idle
local           all devices do their share, and nothing is sent
processes       as local, but each device has a process of its own (on CPUs)
schedule        as local, but the stages of a pipeline wait for each other
communication   the step's collectives, and nothing else
peak            a large matrix product on every device
resident        the whole step with its input on the devices, if the step is fed from the host
batch=2x        the base with a larger batch, if config.explain is "more"
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from jaxbench import parallel
from jaxbench.config import Settings
from jaxbench.core.point import Point
from jaxbench.core.schema import OWN
from jaxbench.levers import EXECUTION, INPUT, MESH, PART, REDUCTION, TRAININGS
from jaxbench.parallel.stage import AXIS as STAGE

ALONE, LOCAL, SCHEDULE, COMMUNICATION = "alone", "local", "schedule", "communication"
PROCESSES = "processes"
PEAK, RESIDENT = "peak", "resident"
LARGER = (2, 4)  # times the batch of the base


def points(settings: Settings, planned: Sequence[Point]) -> list[Point]:
    """The ablation points of the planned points on several devices that have one device as their base.

    There are none for a sweep of levers, where arms are compared with each other, nor for devices that share cores.
    """
    if settings.explain == "off" or settings.swept:
        return []
    # Without a point on one device there is no efficiency to explain.
    ones = {(point.strategy, point.scaling): point for point in planned if point.devices == 1}
    found: list[Point] = []
    peaks: set[int] = set()
    for point in planned:
        if (point.strategy, point.scaling) not in ones or point.oversubscribed or not _whole(point):
            continue
        if point.devices not in peaks:
            found.append(_part(point, PEAK))  # one for each device count: it does not depend on the strategy
            peaks.add(point.devices)
        if INPUT.of(point.levers).kind != "device":
            levers = {**point.levers, INPUT.name: INPUT.default}
            name = f"{point.point}/{RESIDENT}"
            found.append(dataclasses.replace(point, point=name, explains=point.point, levers=levers))
        if point.devices == 1:
            factors = LARGER if settings.explain == "more" and point.scaling == "strong" else ()
            for factor in factors:
                name, batch = f"{point.point}/batch={factor}x", factor * point.global_batch
                found.append(dataclasses.replace(point, point=name, explains=point.point, global_batch=batch))
        elif not (point.scaling == "weak" and settings.weak == "model"):  # the parts of a model that grows with devices
            found += _parts(point)
    return found


def _whole(point: Point) -> bool:
    """Whether it is a whole, compiled step with the usual averaging of gradients and no concurrent trainings."""
    levers = point.levers
    if TRAININGS.of(levers).at_once > 1:
        return False
    return PART.of(levers) == "step" and EXECUTION.of(levers) == "donated" and REDUCTION.of(levers) is None


def _parts(point: Point) -> list[Point]:
    """The ablations that run a part of the step of a point on several devices."""
    if point.strategy == OWN:  # compiled as a whole: what can be measured apart is made from its parts
        share, rest = divmod(point.global_batch, point.devices)
        alone = _part(point, ALONE, devices=1, processes=1, global_batch=share)
        alone_and_local = [*([alone] if point.scaling == "strong" else []), _part(point, LOCAL)]
        return [*([] if rest else alone_and_local), _part(point, COMMUNICATION)]
    stages = parallel.mesh_sizes(point.strategy, point.devices, MESH.of(point.levers)).get(STAGE, 1)
    waits = [_part(point, SCHEDULE)] if stages > 1 else []
    parts = [_part(point, LOCAL), *waits, _part(point, COMMUNICATION)]
    # A replicated step on one device is its share. Of a sharded one, that share is cut from the program.
    if not parallel.is_replicated(point.strategy):
        return [_part(point, ALONE, devices=1, processes=1, part_of=point.devices), *parts]
    share = point.global_batch // point.devices
    parts += [_in_processes(point, share)] if point.platform == "cpu" and point.processes == 1 else []
    if point.scaling == "weak":  # the base itself
        return parts
    return [_part(point, ALONE, devices=1, processes=1, global_batch=share), *parts]


def _in_processes(point: Point, share: int) -> Point:
    """As many processes at once as the point has devices, each with one device on a core of its own.

    Unlike `local`, the devices share no runtime: no thread pool, allocator or lock of one process.
    """
    alone = _part(point, PROCESSES, devices=1, global_batch=share, apart=True)
    return dataclasses.replace(alone, levers={**alone.levers, TRAININGS.name: str(point.devices)})


def _part(point: Point, part: str, **changed: Any) -> Point:
    """The ablation of a point that runs one part of its step."""
    levers = {**point.levers, PART.name: part, INPUT.name: INPUT.default}  # waiting for input is a factor of its own
    return dataclasses.replace(point, point=f"{point.point}/{part}", explains=point.point, levers=levers, **changed)


def devices_of(point: Point) -> int:
    """The device count of the step that a point explains, or of the point itself."""
    return int(point.explains.split("/")[2]) if point.explains else point.devices  # strategy/scaling/devices


def is_plain(point: Point) -> bool:
    """Whether its program is a whole step. This includes ablations with a smaller or a larger batch."""
    part = PART.name in point.levers and point.levers[PART.name]
    if not point.explains or part in ("step", PROCESSES):
        return True
    return part == ALONE and parallel.is_replicated(point.strategy)
