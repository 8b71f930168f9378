# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench train`: from an experiment and a config to a trained model in a folder, in one process or in several.

The number of threads that a process needs follows from its compiled step, but XLA sizes its thread pool when the
backend starts. A process with too few threads is replaced by a new one that runs the same command with more.

Of several processes, this one is the supervisor (`processes.supervisor`). Hang detection finds the process that is lost
or stuck, from the beats that each sends every second. JAX's own heartbeat misses a process that is alive but stuck. The
others would wait for it forever in a collective.
"""

from __future__ import annotations

import socket
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ml_collections import ConfigDict
from rich.console import Console

from jaxbench import config as config_lib
from jaxbench import interrupts, parallel
from jaxbench.errors import UserError, present
from jaxbench.features.training.checkpoint import saved_steps
from jaxbench.features.training.folder import CHECKPOINTS, process_begun_ns
from jaxbench.features.training.loop import Stop, of_signals
from jaxbench.features.training.train import ProcessRole, code_of, levers_of, take
from jaxbench.features.training.worker import NEWS, Beat, Done, Say, StopBy
from jaxbench.machine import manifest as manifest_lib
from jaxbench.machine import start
from jaxbench.processes import launch, supervisor
from jaxbench.processes.counts import device_counts, host_process_counts, launched_process_counts
from jaxbench.processes.launch import Followers
from jaxbench.processes.messages import Failed, Fields, Setup, TrainSetup, message_of
from jaxbench.processes.supervisor import Cause, Fault, Lost, Supervisor
from jaxbench.records.manifest import Machine
from jaxbench.sweep.run import free_cores

WAITS = ("steps", "input")  # kinds with a short time between two changes, for which the limit of the user holds
LONG_S = 1800.0  # the limit for other kinds: compiling, evaluating and checkpoints may take long
MODULE = "jaxbench.features.training.worker"
TURN_S, BEATS = 0.2, 5  # BEATS: signs of life within the limit
# When one process blames the others, wait this long for a better reason; messages from other hosts arrive later.
EXPLAINED_S, EXPLAINED_BY_FOLLOWERS_S = 3.0, 20.0


@dataclass
class _Seen:
    """The state of one process. heard, moved: the times of its last message, and of its last message with news."""

    heard: float = 0.0
    moved: float = 0.0
    kind: str = "start"
    step: int = 0
    ticks: int = -1


class Watch:
    """Finds the process of a training that hangs. Times are seconds since the start, given by the caller."""

    def __init__(self, processes: int, limit_s: float):
        """limit_s: the longest time without a message from a process, or without progress of all."""
        self._limit_s = limit_s
        self._seen = [_Seen() for _ in range(processes)]

    def heard(self, process: int, beat: Beat, now: float) -> None:
        """Takes the beat of a process."""
        seen = self._seen[process]
        if beat.ticks != seen.ticks:
            seen.moved = now
        seen.heard, seen.kind, seen.step, seen.ticks = now, beat.kind, beat.step, beat.ticks

    def silent(self, among: Sequence[int], now: float, limit_s: float) -> int | None:
        """Of these processes, the one that has been silent longest, and for longer than `limit_s`."""
        heard, process = min(((self._seen[process].heard, process) for process in among), default=(now, 0))
        return process if now - heard > limit_s else None

    def fault(self, among: Sequence[int], now: float) -> tuple[int, str] | None:
        """Of these processes, (the one that is lost, its fault as a clause); None if there is no fault."""
        if (process := self.silent(among, now, self._limit_s)) is not None:
            return process, f"gave no sign of life for {self._limit_s:g} s (--fault_timeout)"
        left = [(i, self._seen[i]) for i in among]
        # One process that compiles or evaluates keeps all others waiting in a step, so the long limit holds for all.
        limit_s = self._limit_s if all(seen.kind in WAITS for _, seen in left) else max(LONG_S, self._limit_s)
        if not left or now - max(seen.moved for _, seen in left) <= limit_s:
            return None
        # All stand still, and the one that is furthest behind is the one that the others wait for.
        process, last = min(left, key=lambda each: (each[1].step, each[1].ticks))
        return process, (
            f"did not advance after step {last.step} ({last.kind}), and the others waited {limit_s:g} s; if a "
            "step takes that long, raise --fault_timeout"
        )


def supervise(processes: Supervisor, limit_s: float, patience_s: float, stop: Stop, console: Console) -> int:
    """The exit code of the first process, once all have ended without a fault. Raises Lost.

    limit_s: see `Watch`. patience_s: see EXPLAINED_S. stop: a request that is passed on to all.
    """
    watch, forwarded = Watch(len(processes.children), limit_s), False
    codes: dict[int, int] = {}

    def take(number: int, line: Fields) -> Fault | bool:
        match message_of(line, NEWS):
            case Beat() as beat:
                watch.heard(number, beat, processes.waited_s)
            case Say(text=text):
                console.file.write(text)
                console.file.flush()
            case Done(code=code):
                codes[number] = code
                return True
            case Failed() as failed:
                return Fault.of(number, failed)
        return False

    def fault(process: int, reason: str) -> Fault:
        clause = ": it was stopped, as by SIGSTOP" if processes.children[process].stopped else ""
        return Fault(process=process, reason=f"{processes.called(process)} {reason}{clause}")

    def late(waiting: Sequence[int]) -> Fault | None:
        nonlocal forwarded
        if stop.name and not forwarded:  # to all: they agree on a step, whichever hears it first
            forwarded = True
            processes.send(StopBy(name=stop.name))
        found = watch.fault(waiting, processes.waited_s)
        return fault(*found) if found else None

    def suspect(waiting: Sequence[int]) -> Fault | None:
        # A process that was stopped, or lost its host, sends no failure: the others noticed it first.
        silent = watch.silent(waiting, processes.waited_s, 3 * beat_s(limit_s))
        return None if silent is None else fault(silent, "gave no sign of life")

    patience = {Cause.ERROR: EXPLAINED_S, Cause.ABORTED: patience_s, Cause.FOLLOWS: patience_s}
    processes.watch(take, late, patience, look_s=TURN_S, suspect=suspect)
    return codes[0]


def beat_s(limit_s: float) -> float:
    """The seconds between two beats of a process that may be silent for `limit_s`."""
    return min(1.0, limit_s / BEATS)


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
    levers_of(settings)  # refused here, before a process starts
    machine = manifest_lib.probe(settings.platform)
    if followers:
        machine = launch.all_hosts(followers, machine | Machine(free_cores=free_cores()), experiment, config)
    devices, processes = devices_and_processes(settings, machine, config.train.batch)
    command = ("jaxbench", *sys.argv[1:])
    setup = Setup(
        platform=machine["platform"],
        devices=devices,
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
    except KeyboardInterrupt:  # the second one, or one before the loop could answer with a checkpoint
        interrupts.heard()
        text = f"stopped at once: the same command with --workdir={workdir} continues{_resume_clause(workdir)}."
        console.print(text, highlight=False, soft_wrap=True)
        return 130


def _together(
    setup: Setup, slots: tuple[int, ...], console: Console, faults: Faults, followers: Followers | None
) -> int:
    """Trains in several processes. With `elastic` the remaining processes continue each time that one is lost."""
    start.only_cpu_here()
    train = present(setup.train)
    workdir, batch = Path(train.workdir).absolute(), ConfigDict(setup.config).train.batch
    shown = replace(train, workdir=str(workdir), width=console.width, terminal=console.is_terminal)
    shown = replace(shown, beat_s=beat_s(faults.timeout_s))
    setup = replace(setup, module=MODULE, order=tuple(free_cores()), train=shown)
    share, most, losses = setup.devices // len(slots), len(slots), 0  # share: devices of a process, which stay its own
    patience_s = EXPLAINED_BY_FOLLOWERS_S if followers else EXPLAINED_S
    with of_signals() as stop, tempfile.TemporaryDirectory(prefix="jaxbench-train-") as logs:
        while True:
            hosts = [followers.hosts[slot] for slot in slots] if followers else len(slots) * [socket.gethostname()]
            begun = replace(setup, processes=len(slots))
            children = supervisor.start(begun, Path(logs) / "process", followers, among=slots)
            processes = Supervisor(children, dict(enumerate(hosts)))
            try:
                with processes:
                    return supervise(processes, faults.timeout_s, patience_s, stop, console)
            except Lost as lost:
                losses, what, said = losses + 1, str(lost).rstrip("."), lost.fault.said
                left = () if lost.common else _left(slots, slots[lost.fault.process], followers, batch, share)
                # `most` limits the restarts: a fault that every group of processes meets would repeat forever. What bad
                # input has ended would end again.
                if not (faults.elastic and left) or losses >= most or stop.name or (said and said.refused):
                    again = f": the same command with --workdir={workdir} continues{_resume_clause(workdir)}"
                    raise UserError(f"{what}{'' if lost.common else again}.") from Detail(lost.fault.detail)
                slots = left
                setup = replace(setup, devices=share * len(slots), train=replace(shown, begun_ns=time.time_ns()))
                remaining = f"{len(slots)} process{'es' if len(slots) > 1 else ''}"
                text = f"{what}: continuing with {remaining}{_resume_clause(workdir)}."
                console.print(text, style="yellow", highlight=False, soft_wrap=True)


class Detail(Exception):
    """The stack trace or the output of a failed process, shown with --verbosity=1."""


def _left(slots: tuple[int, ...], lost: int, followers: Followers | None, batch: int, share: int) -> tuple[int, ...]:
    """The processes that can continue; () if there are none. lost: the one that cannot. share: the devices of each.

    The first process of a launch leads it, so it must continue. It can: only the worker that it had started was lost.
    """
    left = [slot for slot in slots if slot != lost or (followers is not None and slot == 0)]
    left = [slot for slot in left if followers is None or followers.has(slot)]
    # The global batch stays the same, so it must divide over the remaining devices: use as many as it allows.
    count = next((n for n in range(len(left), 0, -1) if batch % (n * share) == 0), 0)
    return tuple(left[:count])


def _resume_clause(workdir: Path) -> str:
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
        count = device_counts(settings, machine)[0]
    else:
        limit = machine["cores"] if machine["platform"] == "cpu" else machine["devices"]
        # Each process must have a device.
        asked = int(settings.mesh_processes) if settings.mesh_processes.strip().isdecimal() else 1
        least = len(machine["hosts"]) if "hosts" in machine else max(1, asked)
        # More devices than cores would only take turns, and a batch that does not divide is refused later.
        counts = [n for n in device_counts(settings, machine) if n <= limit and batch % n == 0 and n % least == 0]
        count = max(counts, default=least)
    if "hosts" not in machine:
        return count, host_process_counts(settings, (count,), machine)[count]
    # All processes of a launch take part: one without a device would wait for the others forever.
    used, started = launched_process_counts(settings, (count,), machine)[count], len(machine["hosts"])
    if used < started:
        raise UserError(
            f"--config.mesh.devices={count} leaves some of the {started} processes that were started without a device: "
            f"use {started}, for example."
        )
    return count, used
