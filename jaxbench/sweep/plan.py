# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Lists the points of a run, in the order of their preparation, and says which process measures each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jaxbench import parallel
from jaxbench.cases.placement import mesh_devices
from jaxbench.config import Settings
from jaxbench.core.point import Point
from jaxbench.core.schema import OWN
from jaxbench.errors import UserError
from jaxbench.levers import ACCUMULATE, BATCH, EVERY_MESH, EXECUTION, MESH, TRAININGS, Arm, with_named_sets
from jaxbench.machine import cores
from jaxbench.parallel import axes
from jaxbench.processes.counts import device_counts, process_counts
from jaxbench.processes.gpu_sharing import memory_share, require_sharable, sharing_of
from jaxbench.processes.messages import KEEP_MEMORY, Setup
from jaxbench.records.manifest import Machine

# Devices that share cores show that a program is correct, but nothing about its speed. So they are measured last, with
# one round of one process and blocks of one step, which shows that no step recompiles.
OVERSUBSCRIBED_ROUNDS = 1

# Tried: a step has 25 fusions with the passes that can be named disabled, and 25 with them enabled.
UNFUSED = (
    "--config.lever.execution=unfused has no effect on a TPU, because its compiler has no fusion pass to disable: use "
    "eager or jit."
)


def rounds_of(point: Point, rounds: int) -> int:
    """The number of rounds in which a point is measured. rounds: that of the run."""
    return min(rounds, OVERSUBSCRIBED_ROUNDS) if point.oversubscribed else rounds


def make(settings: Settings, machine: Machine) -> list[Point]:
    """All points of the sweep. Raises UserError if a batch does not divide over a device count that the user chose."""
    points = []
    counts = divisible(settings, device_counts(settings, machine))
    processes = process_counts(settings, counts, machine)
    require_sharable(settings, machine)
    share = memory_share(settings.arms, machine["platform"])
    for devices in counts:
        for strategy in settings.strategies:
            for scaling in settings.scalings:
                for arm in possible(arms_of(settings, strategy, devices), machine):
                    parts = axes.batch_parts(parallel.mesh_sizes(strategy, devices, MESH.of(arm.levers)))
                    batch_grows = scaling == "weak" and settings.weak == "batch"  # otherwise the model grows
                    lever_batch = BATCH.of(arm.levers)
                    batch = (lever_batch or settings.batch) * (devices if batch_grows else 1)
                    field = "lever.batch" if lever_batch else "batch"
                    require_equal_parts(field, batch, parts=parts, micro_batches=ACCUMULATE.of(arm.levers))
                    name = f"{strategy}/{scaling}/{devices}" + (f"/{arm.name}" if arm.name else "")
                    oversubscribed = machine["platform"] == "cpu" and devices > machine["cores"]
                    point = Point(
                        point=name,
                        strategy=strategy,
                        scaling=scaling,
                        devices=devices,
                        global_batch=batch,
                        oversubscribed=oversubscribed,
                        arm=arm.name,
                        levers=arm.levers,
                        platform=machine["platform"],
                        processes=processes[devices],
                        memory_share=share,
                    )
                    points.append(point)
    return points


def require_equal_parts(field: str, batch: int, *, parts: int, micro_batches: int) -> None:
    """Raises UserError unless a global batch divides into parts for devices, and these into micro-batches.

    field: the config field that sets the batch, such as "lever.batch".
    """
    if batch % parts:
        near = max(parts, round(batch / parts) * parts)
        raise UserError(f"--config.{field}={batch} does not divide over {parts} devices: use {near}, for example.")
    if batch // parts % micro_batches:
        near = parts * micro_batches * max(1, round(batch / parts / micro_batches))
        raise UserError(
            f"--config.lever.accumulate={micro_batches} does not divide the {batch // parts} examples that each "
            f"of {parts} devices receives: use a global batch of {near}, for example."
        )


def possible(arms: list[Arm], machine: Machine) -> list[Arm]:
    """The arms that this platform supports.

    Raises UserError if none is left, and for compiler options of another platform.
    """
    arms = with_named_sets(arms, machine["platform"])
    if machine["platform"] != "tpu":
        return arms
    supported = [arm for arm in arms if EXECUTION.of(arm.levers) != "unfused"]
    if not supported:
        raise UserError(UNFUSED)
    return supported


def arms_of(settings: Settings, strategy: str, devices: int) -> list[Arm]:
    """The arms of a strategy on `devices` devices; the mesh "all" stands for every mesh of that size."""
    arms = []
    for arm in settings.arms:
        if MESH.of(arm.levers) != EVERY_MESH or not parallel.takes_any_mesh(strategy):
            arms.append(arm)
            continue
        for sizes in axes.meshes(devices):
            mesh = axes.text(sizes)
            arms.append(Arm(arm.name.replace(f"mesh={EVERY_MESH}", f"mesh={mesh}"), {**arm.levers, "mesh": mesh}))
    return arms


def divisible(settings: Settings, counts: tuple[int, ...]) -> tuple[int, ...]:
    """The counts that divide the batch of strong scaling; all if the user chose them, or if a strategy splits less."""
    if settings.devices is not None or "strong" not in settings.scalings:
        return counts
    if {*settings.strategies} - {*parallel.of_any_model(), OWN}:
        return counts
    batches = {BATCH.of(arm.levers) or settings.batch for arm in settings.arms}
    return tuple(n for n in counts if all(batch % n == 0 for batch in batches))


def worker_of(point: Point) -> tuple[str, Setup]:
    """(the name of the process that measures a point, the setup of that process).

    A CPU process keeps one device count, pinned to the same number of cores. An accelerator belongs to one process at a
    time, so one worker measures every count on a part of the devices. Trainings that share devices have separate
    processes.
    """
    return _worker_of_case(point) if point.of_case else _worker_of_step(point)


def _worker_of_step(point: Point) -> tuple[str, Setup]:
    suffix, environment = sharing_of(point.levers, point.memory_share)
    setup = Setup(
        platform=point.platform,
        devices=point.devices,
        processes=point.processes,
        trainings=TRAININGS.of(point.levers).at_once,
        environment=environment,
    )
    if point.strategy == OWN and point.platform == "gpu" and point.processes == 1:
        return f"gpu{point.devices}", replace(setup, environment=cores.first_gpus(point.devices))
    if point.platform != "cpu":
        return point.platform + suffix, setup
    if point.part_of > point.devices:  # the program is built for all n devices, and one of them runs, on one core
        one_core = Setup(platform="cpu", devices=point.part_of, cores=1, environment=KEEP_MEMORY)
        return f"cpu1of{point.part_of}", one_core
    if point.apart:
        return f"cpu{point.devices}x{setup.trainings}", replace(setup, environment=KEEP_MEMORY, own_cores=True)
    name = f"cpu{point.devices}" + (f"-{point.processes}processes" if point.processes > 1 else suffix)
    return name, replace(setup, environment=KEEP_MEMORY)


def _worker_of_case(point: Point) -> tuple[str, Setup]:
    count = mesh_devices(point)
    if point.family == "transfer":
        ends = [end for end in (point.source, point.target) if end != "host"]
        count = max(int(end.split(":")[1]) for end in ends) + 1  # JAX numbers devices from 0
    setup = Setup(platform=point.platform, devices=count, processes=point.processes, environment=KEEP_MEMORY)
    if point.platform != "cpu":
        return point.platform, setup
    if point.family == "kernel":
        return f"cpu-cores{point.cores}", replace(setup, devices=1, cores=point.cores or 0)
    if point.family == "transfer":
        return "cpu-transfer", setup
    name = f"cpu{count}" + (f"-{point.processes}processes" if point.processes > 1 else "")
    # Calls of a collective return nothing that the host could wait for, so it runs far ahead of them. Then XLA's pool
    # needs two threads for each device (`core.clock.RUN_AHEAD`).
    return name, replace(setup, environment={**KEEP_MEMORY, "NPROC": str(2 * count)})


def groups(points: Sequence[Point]) -> dict[str, tuple[list[str], Setup]]:
    """By name of a worker process: (ids of the points that it measures, a setup that is large enough for all)."""
    workers: dict[str, tuple[list[str], Setup]] = {}
    for point in points:
        name, setup = worker_of(point)
        ids, largest = workers.get(name, ([], setup))
        devices, processes = max(largest.devices, setup.devices), max(largest.processes, setup.processes)
        workers[name] = [*ids, point.point], replace(largest, devices=devices, processes=processes)
    return workers
