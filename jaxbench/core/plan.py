# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Lists the points of a run, in the order of their preparation, and says which process measures each of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from jaxbench import parallel
from jaxbench.config import CaseSettings, Settings
from jaxbench.core.schema import OWN, StepPlace
from jaxbench.errors import UserError
from jaxbench.levers import ACCUMULATE, BATCH, EVERY_MESH, EXECUTION, MESH, TRAININGS, Arm, with_named_sets
from jaxbench.machine import cores
from jaxbench.parallel import axes
from jaxbench.processes.messages import Fields, Setup
from jaxbench.records.manifest import Machine

CPU_DEVICES = (1, 2, 4, 8)
PER_DEVICE = "per_device"

# Devices that share cores show that a program is correct, but nothing about its speed. So they are measured last, with
# one round of one process and blocks of one step, which shows that no step recompiles.
OVERSUBSCRIBED_ROUNDS = 1

# By default glibc takes large blocks from the system and returns them in every call, page by page. XLA's CPU client
# allocates a program's scratch at each execution. So without these variables a gpt step took a quarter longer, and a
# collective up to four times as long, which says nothing about the machine.
KEEP_MEMORY = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**40)}


@dataclass(frozen=True, kw_only=True)
class Point(StepPlace):
    """One training step, or ablation, to measure."""

    # These only choose the worker and are not sent to it. Its record takes the first two from the devices themselves.
    platform: str = ""
    processes: int = 1  # the number of processes that run it together
    part_of: int = 0  # of the ablation "alone", in which one device does its share of a step on n devices: n; else 0
    apart: bool = False  # of the ablation "processes": each of its trainings has cores of its own
    memory_share: float = 0.0  # the share of an accelerator's memory for each process; 0: JAX's default

    def to_json(self) -> dict[str, Any]:
        """The fields of the point, as in its record."""
        not_sent = ("platform", "processes", "part_of", "apart", "memory_share")
        return {name: value for name, value in asdict(self).items() if name not in not_sent}

    def worker(self) -> tuple[str, Setup]:
        """(the name of the process that measures it, the setup of that process).

        A CPU process keeps one device count, pinned to the same number of cores. An accelerator belongs to one process
        at a time, so one worker measures every count on a part of the devices. Trainings that share devices have
        separate processes.
        """
        suffix, environment = sharing_of(self.levers, self.memory_share)
        setup = Setup(
            platform=self.platform,
            devices=self.devices,
            processes=self.processes,
            trainings=TRAININGS.of(self.levers).at_once,
            environment=environment,
        )
        if self.strategy == OWN and self.platform == "gpu" and self.processes == 1:
            return f"gpu{self.devices}", replace(setup, environment=cores.first_gpus(self.devices))
        if self.platform != "cpu":
            return self.platform + suffix, setup
        if self.part_of > self.devices:  # the program is built for all n devices, and one of them runs, on one core
            one_core = Setup(platform="cpu", devices=self.part_of, cores=1, environment=KEEP_MEMORY)
            return f"cpu1of{self.part_of}", one_core
        if self.apart:
            return f"cpu{self.devices}x{setup.trainings}", replace(setup, environment=KEEP_MEMORY, own_cores=True)
        name = f"cpu{self.devices}" + (f"-{self.processes}processes" if self.processes > 1 else suffix)
        return name, replace(setup, environment=KEEP_MEMORY)

    @property
    def text(self) -> str:
        """For people: "jit_auto, strong, 4 devices, precision=bfloat16"."""
        words = f"{self.strategy}, {self.scaling}, {self.devices} device{'s' if self.devices > 1 else ''}"
        words += f", {self.point.rpartition('/')[2]}" if self.explains else ""
        return f"{words}, {self.arm}" if self.arm else words


class Placed(Protocol):
    """What the sweep must know of a point: the interface of `Point` and of a case's `Placement`."""

    @property
    def point(self) -> str: ...

    @property
    def text(self) -> str: ...

    @property
    def devices(self) -> int: ...

    @property
    def oversubscribed(self) -> bool: ...

    @property
    def processes(self) -> int: ...

    def to_json(self) -> Fields: ...

    def worker(self) -> tuple[str, Setup]: ...


def rounds_of(point: Placed, rounds: int) -> int:
    """The number of rounds in which a point is measured. rounds: that of the run."""
    return min(rounds, OVERSUBSCRIBED_ROUNDS) if point.oversubscribed else rounds


def device_counts(settings: Settings | CaseSettings, machine: Machine) -> tuple[int, ...]:
    """The device counts to sweep: those of the config, or powers of two. machine: a manifest.

    Raises UserError for absent devices or different kinds.
    """
    if machine["platform"] != "cpu":
        _require_accelerators(settings, machine)
    if settings.devices is not None:
        return settings.devices
    limit = settings.max_devices or max(machine["devices"], *CPU_DEVICES)
    if machine["platform"] == "cpu":
        limit = min(limit, machine["cores"]) if not getattr(settings, "oversubscribe", True) else limit
        launched = len(machine.get("hosts", ())) or 1  # each process of a launch gets an equal share of the devices
        return tuple(n for n in sorted({*CPU_DEVICES, launched}) if n <= limit and (n <= launched or n % launched == 0))
    return tuple(2**i for i in range(min(limit, machine["devices"]).bit_length()))


def _require_accelerators(settings: Settings | CaseSettings, machine: Machine) -> None:
    available, kinds = machine["devices"], machine["device_kinds"]
    if max(settings.devices or (1,)) > available:
        raise UserError(
            f"--config.mesh.devices asks for {max(settings.devices or (1,))} devices, this machine has {available} "
            f"({machine['device_kind']}): use at most {available}, or fake devices with --config.mesh.platform=cpu."
        )
    if len(kinds) > 1:  # a block would measure the slower kind
        raise UserError(
            f"this machine has different accelerators ({', '.join(kinds)}): select one kind with CUDA_VISIBLE_DEVICES."
        )


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
                        point=name, strategy=strategy, scaling=scaling, devices=devices, global_batch=batch,
                        oversubscribed=oversubscribed, arm=arm.name, levers=arm.levers, platform=machine["platform"],
                        processes=processes[devices], memory_share=share,
                    )  # fmt: skip
                    points.append(point)
    return points


def process_counts(settings: Settings | CaseSettings, counts: Sequence[int], machine: Machine) -> dict[int, int]:
    """By device count: how many processes run a point together, in a launch or on this host. Raises UserError."""
    launched = "hosts" in machine
    return (launched_process_counts if launched else host_process_counts)(settings, counts, machine)


def launched_process_counts(
    settings: Settings | CaseSettings, counts: Sequence[int], machine: Machine
) -> dict[int, int]:
    """`process_counts` in a launch: the first of its processes.

    Each has an equal share of CPU devices, or all of its accelerators. Raises UserError for a number of processes that
    is not the launch's, and for devices that do not divide over them.
    """
    launched, asked = len(machine["hosts"]), str(settings.mesh_processes).strip()
    if asked not in ("1", str(launched)):
        raise UserError(
            f"--config.mesh.processes={asked} is not possible: this command was started {launched} times, as "
            f"{launched} processes; leave it out."
        )
    if machine["platform"] != "cpu":
        per_process = machine["devices"] // launched
        return {count: -(-count // per_process) for count in counts}
    if uneven := [count for count in counts if count > launched and count % launched]:
        raise UserError(
            f"{uneven[0]} devices do not divide over the {launched} processes that were started: use "
            f"--config.mesh.devices={launched}, for example."
        )
    return {count: min(launched, count) for count in counts}


def host_process_counts(settings: Settings | CaseSettings, counts: Sequence[int], machine: Machine) -> dict[int, int]:
    """`process_counts` on this host: the number of `mesh.processes`, but none without a device.

    Raises UserError for an illegal number, for more processes than devices, for devices that do not divide over them,
    and for several accelerators in one of several processes.
    """
    platform, text = machine["platform"], str(settings.mesh_processes).strip()
    field, asked, most = f"--config.mesh.processes={text}", int(text) if text.isdecimal() else None, max(counts)
    if asked == 0 or (asked is None and text != PER_DEVICE):
        raise UserError(f"{field} is not a number of processes: use 1, 2 or {PER_DEVICE}.")
    if asked == 1:
        return dict.fromkeys(counts, 1)
    if platform == "tpu":
        raise UserError(f"{field} is not possible on a TPU, where one process of a host owns all chips: use 1.")
    if platform != "cpu" and asked is not None:
        raise UserError(f"{field} is not possible on a {platform}, where a process has one device: use {PER_DEVICE}.")
    if asked is None:
        return {count: count for count in counts}
    if asked > most:
        raise UserError(
            f"{field} is more than the {most} devices of the largest point: use at most {most}, or more devices with "
            f"--config.mesh.devices={asked}."
        )
    if uneven := [count for count in counts if count > asked and count % asked]:
        raise UserError(
            f"{uneven[0]} devices do not divide over {field}: use {PER_DEVICE}, or --config.mesh.devices={asked}."
        )
    return {count: min(asked, count) for count in counts}


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


# Tried: a step has 25 fusions with the passes that can be named disabled, and 25 with them enabled.
UNFUSED = (
    "--config.lever.execution=unfused has no effect on a TPU, because its compiler has no fusion pass to disable: use "
    "eager or jit."
)


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


def groups(points: Sequence[Placed]) -> dict[str, tuple[list[str], Setup]]:
    """By name of a worker process: (ids of the points that it measures, a setup that is large enough for all)."""
    workers: dict[str, tuple[list[str], Setup]] = {}
    for point in points:
        name, setup = point.worker()
        ids, largest = workers.get(name, ([], setup))
        devices, processes = max(largest.devices, setup.devices), max(largest.processes, setup.processes)
        workers[name] = [*ids, point.point], replace(largest, devices=devices, processes=processes)
    return workers


USABLE = 0.9  # share of a GPU's memory, for all processes of the run together
PIPES, DEFAULT_PIPES = "CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps"  # where the service and its clients meet
NO_PIPES = "/nonexistent"  # without the service, processes would take turns on the GPU


def require_sharable(settings: Settings, machine: Machine) -> None:
    """Raises UserError for trainings that cannot share the devices of this machine. machine: a manifest."""
    for arm in settings.arms:
        sharing, field = TRAININGS.of(arm.levers), f"--config.lever.trainings={arm.levers[TRAININGS.name]}"
        if sharing.mps and machine["platform"] != "gpu":
            raise UserError(
                f"{field} needs an NVIDIA GPU, which trainings share by its Multi-Process Service, and this run "
                f"measures on the {machine['platform']}: use {sharing.at_once}."
            )
        if sharing.mps and not (Path(os.environ.get(PIPES, DEFAULT_PIPES)) / "control").exists():
            raise UserError(f"{field} needs the Multi-Process Service: start it with nvidia-cuda-mps-control -d.")
        if sharing.at_once == 1:
            continue
        if machine["platform"] == "tpu":
            raise UserError(f"{field} is not possible on a TPU, where one process of a host owns all chips: use 1.")
        if "hosts" in machine:
            raise UserError(f"{field} is measured by processes of this machine: start it without a launcher.")
        if str(settings.mesh_processes).strip() != "1":
            raise UserError(
                f"{field} runs each training in one process, so --config.mesh.processes={settings.mesh_processes} has "
                "no place: leave it out."
            )


def memory_share(arms: Sequence[Arm], platform: str) -> float:
    """The share of a GPU's memory for each process. All get the same, because the processes of all arms live at once.

    0 leaves the choice to JAX: on other platforms, and if nothing is shared.
    """
    processes = {arm.levers[TRAININGS.name]: TRAININGS.of(arm.levers).at_once for arm in arms}
    return USABLE / sum(processes.values()) if platform == "gpu" and max(processes.values()) > 1 else 0.0


def sharing_of(levers: Mapping[str, str], share: float) -> tuple[str, dict[str, str]]:
    """(the end of the worker's name, its environment variables) for an arm with concurrent trainings.

    share: see `memory_share`.
    """
    sharing = TRAININGS.of(levers)
    name = (f"-{sharing.at_once}trainings" if sharing.at_once > 1 else "") + ("-mps" if sharing.mps else "")
    if not share:
        return name, {}
    pipes = os.environ.get(PIPES, DEFAULT_PIPES) if sharing.mps else NO_PIPES
    return name, {"XLA_PYTHON_CLIENT_MEM_FRACTION": f"{share:.3f}", PIPES: pipes}
