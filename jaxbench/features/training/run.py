# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench train`: from an experiment and a config to a trained model in a folder, in one process or in several.

The number of threads that a process needs follows from its compiled step, but XLA sizes its thread pool when the
backend starts. A process with too few threads is replaced by a new one that runs the same command with more.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn

from ml_collections import ConfigDict
from rich.console import Console

from jaxbench import config as config_lib
from jaxbench import parallel
from jaxbench.core import plan
from jaxbench.errors import MoreCollectives, UserError
from jaxbench.features.training.checkpoint import saved_steps
from jaxbench.features.training.folder import CHECKPOINTS
from jaxbench.features.training.ledger import process_begun_ns
from jaxbench.features.training.loop import of_signals
from jaxbench.features.training.supervisor import Lost, Team
from jaxbench.features.training.train import ProcessRole, code_of, levers_of, take
from jaxbench.machine import manifest as manifest_lib
from jaxbench.machine import start
from jaxbench.processes import launch
from jaxbench.processes.launch import Followers
from jaxbench.processes.messages import Setup, TrainSetup
from jaxbench.records.manifest import Machine
from jaxbench.sweep.run import free_cores

VARIABLE = "JAXBENCH_CONCURRENT_COLLECTIVES"  # passes the number of collectives to the new process


@dataclass(frozen=True)
class Before:
    """This process before it starts devices, which pins it to cores and sets environment variables of XLA."""

    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    cores: set[int] | None = field(
        default_factory=lambda: os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    )

    # A new process is needed, because XLA makes its thread pool once, when the backend starts.
    def restart(self, collectives: int, workdir: Path, console: Console) -> NoReturn:
        """Runs the same command again in `workdir`, with threads for `collectives` collectives. Does not return."""
        text = f"{collectives} collectives of the step can wait at once: starting again with threads for them."
        console.print(text, highlight=False, soft_wrap=True)
        console.file.flush()
        if self.cores is not None:  # this process is pinned by now, and its successor would inherit the pins
            os.sched_setaffinity(0, self.cores)
        command = [sys.executable, *sys.orig_argv[1:]]
        if f"--workdir={workdir}" not in command:  # the default is named by the time
            command.append(f"--workdir={workdir}")
        os.execve(sys.executable, command, {**self.environment, VARIABLE: str(collectives)})


@dataclass(frozen=True)
class Faults:
    """The handling of lost processes.

    timeout_s: seconds after which a silent process, or a process that all others wait for, counts as lost. elastic: the
    others then continue without it.
    """

    timeout_s: float = 60.0
    elastic: bool = False

    def __post_init__(self) -> None:
        # A person may type 0 to switch it off, and then every process would be lost at once.
        if not 1 <= self.timeout_s < float("inf"):
            raise UserError(f"--fault_timeout={self.timeout_s:g} is too short: use seconds, at least 1, such as 60.")


def train(
    experiment: str,
    config: ConfigDict,
    workdir: Path,
    console: Console,
    faults: Faults = Faults(),  # noqa: B008
    followers: Followers | None = None,
) -> int:
    """Trains to ``config.train.target`` on ``config.mesh.devices`` devices. Raises UserError.

    followers: the other processes of a launch; all take part. Returns the exit code: 0 when the target is reached, 1
    when it is not, 130 when stopped by a signal.
    """
    parallel.load(str(config.train.strategy))
    settings = config_lib.parse(config, parallel.strategy_names(), parallel.of_any_model())
    levers_of(settings)
    machine, before = manifest_lib.probe(settings.platform), Before()
    if followers:
        machine = launch.all_hosts(followers, machine | Machine(free_cores=free_cores()), experiment, config)
    devices, processes = devices_and_processes(settings, machine, config.train.batch)
    command = ("jaxbench", *sys.argv[1:])
    setup = Setup(
        platform=machine["platform"],
        devices=devices,
        concurrent_collectives=int(os.environ.get(VARIABLE, start.CONCURRENT_COLLECTIVES)),
        experiment=experiment,
        config=config_lib.plain(config),
        machine=machine,
        train=TrainSetup(workdir=str(workdir), command=command, begun_ns=process_begun_ns()),
    )
    try:
        if processes > 1:
            return _together(setup, tuple(range(processes)), console, faults, followers)
        if faults.elastic:
            raise UserError("--elastic is for several processes: add --config.mesh.processes=2, for example.")
        return code_of(take(setup, console, ProcessRole()))
    except MoreCollectives as error:
        before.restart(error.count, workdir, console)
    except KeyboardInterrupt:  # the second one, or one before the loop could answer with a checkpoint
        text = f"stopped at once: the same command with --workdir={workdir} continues{_from(workdir)}."
        console.print(text, highlight=False, soft_wrap=True)
        return 130


def _together(
    setup: Setup, slots: tuple[int, ...], console: Console, faults: Faults, followers: Followers | None
) -> int:
    """Trains in several processes. With `elastic` the remaining processes continue each time that one is lost."""
    start.only_cpu_here()
    assert setup.train is not None
    workdir, batch = Path(setup.train.workdir).absolute(), ConfigDict(setup.config).train.batch
    shown = replace(setup.train, workdir=str(workdir), width=console.width, terminal=console.is_terminal)
    setup = replace(setup, order=tuple(free_cores()), train=shown)
    share, most, losses = setup.devices // len(slots), len(slots), 0
    with of_signals() as stop, tempfile.TemporaryDirectory(prefix="jaxbench-train-") as logs:
        while True:
            try:
                with Team(setup, slots, limit_s=faults.timeout_s, logs=Path(logs), followers=followers) as team:
                    return team.run(stop, console)
            except MoreCollectives as error:  # the workers are new processes each time, so this one can stay
                setup = replace(setup, concurrent_collectives=error.count)
            except Lost as lost:
                losses += 1
                left = _left(slots, lost, followers, batch=batch, share=share)
                # `most` limits the restarts: a fault that every group of processes meets would repeat forever.
                if not faults.elastic or not lost.again or losses >= most or not left or stop.name:
                    again = f": the same command with --workdir={workdir} continues{_from(workdir)}"
                    raise UserError(f"{lost}{'' if lost.slot is None else again}.") from Detail(lost.detail)
                slots = left
                setup = replace(setup, devices=share * len(slots), train=replace(shown, begun_ns=time.time_ns()))
                text = f"{lost}: continuing with {len(slots)} process{'es' if len(slots) > 1 else ''}{_from(workdir)}."
                console.print(text, style="yellow", highlight=False, soft_wrap=True)


class Detail(Exception):
    """The stack trace or the output of a failed process, shown with --verbosity=1."""


def _left(
    slots: tuple[int, ...], lost: Lost, followers: Followers | None, *, batch: int, share: int
) -> tuple[int, ...]:
    """The processes that can continue; () if there are none. share: the number of devices of each.

    The first process of a launch leads it, so it must continue. It can: only the worker that it had started was lost.
    """
    left = [slot for slot in slots if slot != lost.slot or (followers is not None and slot == 0)]
    left = [slot for slot in left if followers is None or followers.has(slot)]
    # The global batch stays the same, so it must divide over the remaining devices: use as many as it allows.
    count = next((n for n in range(len(left), 0, -1) if batch % (n * share) == 0), 0)
    return tuple(left[:count])


def _from(workdir: Path) -> str:
    steps = saved_steps(workdir / CHECKPOINTS)
    return f" from the checkpoint at step {steps[0]}" if steps else " from the start"


def devices_and_processes(settings: config_lib.Settings, machine: Machine, batch: int) -> tuple[int, int]:
    """(the number of devices, the number of processes that share them equally). Raises UserError.

    The default is the largest number that divides the batch and has a core or an accelerator for each device.
    """
    if settings.devices is not None and len(settings.devices) > 1:
        *_, last = words = [str(count) for count in settings.devices]
        raise UserError(f"--config.mesh.devices={','.join(words)}: training uses one device count, such as {last}.")
    if settings.devices is not None:
        count = plan.device_counts(settings, machine)[0]
    else:
        limit = machine["cores"] if machine["platform"] == "cpu" else machine["devices"]
        # Each process must have a device.
        asked = int(settings.mesh_processes) if settings.mesh_processes.strip().isdecimal() else 1
        least = len(machine["hosts"]) if "hosts" in machine else max(1, asked)
        # More devices than cores would only take turns, and a batch that does not divide is refused later.
        counts = [n for n in plan.device_counts(settings, machine) if n <= limit and batch % n == 0 and n % least == 0]
        count = max(counts, default=least)
    if "hosts" not in machine:
        return count, plan.host_process_counts(settings, (count,), machine)[count]
    # All processes of a launch take part: one without a device would wait for the others forever.
    used, started = plan.launched_process_counts(settings, (count,), machine)[count], len(machine["hosts"])
    if used < started:
        raise UserError(
            f"--config.mesh.devices={count} leaves some of the {started} processes that were started without a device: "
            f"use {started}, for example."
        )
    return count, used
