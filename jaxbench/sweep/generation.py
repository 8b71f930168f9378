# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The points of a run of generation: steps, and for each what explains its time.

step       one token for each request, each call started by the host
scan       several tokens in one program: a step without the cost of starting
prefill    the prompt of one request for each part of the batch
triad      the bandwidth of memory, once for each number of devices
local, weights, products, messages, tiny: parts of a step, of the largest batch (`parallel.generation`)
"""

from __future__ import annotations

import dataclasses

from jaxbench.config import Settings
from jaxbench.core.point import Point
from jaxbench.levers import BATCH, CACHE_FORMAT, MESH, PART, WEIGHT_FORMAT, Arm
from jaxbench.parallel import generation
from jaxbench.parallel.generation import LOCAL, MESSAGES, PREFILL, PRODUCTS, SCAN, TINY, TRIAD, WEIGHTS
from jaxbench.processes.counts import device_counts, process_counts
from jaxbench.records.manifest import Machine
from jaxbench.sweep.plan import possible

MEASURES = "decode"  # of the config


def points(settings: Settings, machine: Machine) -> tuple[list[Point], list[str]]:
    """(the points of a run, sentences on those that were left out)."""
    counts = device_counts(settings, machine)
    processes = process_counts(settings, counts, machine)
    steps: list[Point] = []
    left_out: dict[str, list[str]] = {}
    for devices in counts:
        for strategy in settings.strategies:
            for arm in possible(list(settings.arms), machine):
                batch = BATCH.of(arm.levers) or settings.batch
                sizes = generation.mesh_sizes(strategy, devices, MESH.of(arm.levers))
                why = _impossible(strategy, devices, sizes, batch)
                if why:
                    left_out.setdefault(why, []).append(f"{strategy} on {devices}")
                    continue
                steps.append(_step(settings, machine, strategy, devices, arm, batch, processes[devices]))
    notes = [f"Left out: {', '.join(dict.fromkeys(names))} devices: {why}." for why, names in left_out.items()]
    return [*steps, *_ablations(settings, steps)], notes


def _impossible(strategy: str, devices: int, sizes: dict[str, int], batch: int) -> str:
    """Why a strategy has no point on these devices, as a clause; "" if it has."""
    if batch % sizes["data"]:
        return f"a batch of {batch} does not divide over {sizes['data']}"
    if strategy == "both" and devices > 1 and sizes["data"] == 1:
        return "without a second axis of devices, both is tensor"
    return ""


def _step(
    settings: Settings, machine: Machine, strategy: str, devices: int, arm: Arm, batch: int, processes: int
) -> Point:
    """The point of a whole step."""
    platform = machine["platform"]
    weights = generation.resolved(arm.levers[WEIGHT_FORMAT.name], platform)
    cache = arm.levers[CACHE_FORMAT.name]
    # Records and columns name the format that runs, not "auto".
    if cache == "auto":
        cache = "float32" if weights == "float32" or (platform == "cpu" and weights != "bfloat16") else "bfloat16"
    return Point(
        point=f"{strategy}/strong/{devices}" + (f"/{arm.name}" if arm.name else ""),
        strategy=strategy,
        scaling="strong",
        devices=devices,
        global_batch=batch,
        oversubscribed=platform == "cpu" and devices > machine["cores"],
        arm=arm.name,
        levers={**arm.levers, WEIGHT_FORMAT.name: weights, CACHE_FORMAT.name: cache},
        platform=platform,
        processes=processes,
    )


def _ablations(settings: Settings, steps: list[Point]) -> list[Point]:
    """The further points. They come last, because each needs the compile report of its step."""
    found: list[Point] = []
    prompts: set[tuple[str, ...]] = set()
    triads: set[int] = set()
    largest: dict[tuple[str, int], Point] = {}
    alone: dict[str, str] = {}  # by arm, the strategy that explains one device: all of them are one program there
    for point in steps:
        if point.devices == 1 and alone.setdefault(point.arm, point.strategy) != point.strategy:
            continue
        # A prompt does not depend on the batch: requests are prefilled one by one.
        others = [value for name, value in sorted(point.levers.items()) if name != BATCH.name]
        key = (point.strategy, str(point.devices), *others)
        if key not in prompts:
            prompts.add(key)
            sizes = generation.mesh_sizes(point.strategy, point.devices, MESH.of(point.levers))
            found.append(_part(point, PREFILL, global_batch=sizes["data"]))
        if point.oversubscribed:
            continue
        found.append(_part(point, SCAN))
        if settings.explain == "off":
            continue
        if point.devices not in triads:
            triads.add(point.devices)
            found.append(_part(point, TRIAD))
        family = point.strategy, point.devices
        if family not in largest or point.global_batch > largest[family].global_batch:
            largest[family] = point
    for point in largest.values():
        sizes = generation.mesh_sizes(point.strategy, point.devices, MESH.of(point.levers))
        names = (LOCAL, WEIGHTS, PRODUCTS, MESSAGES, TINY) if sizes["tensor"] > 1 else (WEIGHTS, PRODUCTS)
        found += [_part(point, name) for name in names]
    return found


def _part(point: Point, part: str, global_batch: int | None = None) -> Point:
    """A point that explains another by running a part of its step."""
    return dataclasses.replace(
        point,
        point=f"{point.point}/{part}",
        explains=point.point,
        levers={**point.levers, PART.name: part},
        global_batch=point.global_batch if global_batch is None else global_batch,
    )
