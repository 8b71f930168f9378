# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench train`: from an experiment and a config to a trained model in a folder, in one process or in several.

The number of threads that a process needs follows from its compiled step, but XLA sizes its thread pool when the
backend starts. A process with too few threads is replaced by a new one that runs the same command with more.

Of several processes, this one is the supervisor: it hears their messages, and finds the one that fails. Hang detection
finds the process that is lost or stuck, from the beats that each sends every second. JAX's own heartbeat misses a
process that is alive but stuck. The others would wait for it forever in a collective.
"""

from __future__ import annotations

import dataclasses
import signal
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
from jaxbench.features.training.worker import NEWS, Beat, Done, Fault, Say, StopBy
from jaxbench.machine import manifest as manifest_lib
from jaxbench.machine import start
from jaxbench.processes import client, launch
from jaxbench.processes.child import Child, ready
from jaxbench.processes.counts import device_counts, host_process_counts, launched_process_counts
from jaxbench.processes.launch import Followers, Remote
from jaxbench.processes.messages import Fields, Setup, TrainSetup, line_of, message_of
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

    heard: float
    moved: float
    kind: str = "start"
    step: int = 0
    ticks: int = -1
    done: bool = False


class Watch:
    """The processes of a training. Times are seconds of one monotonic clock, given by the caller."""

    def __init__(self, processes: int, limit_s: float, now: float):
        """limit_s: the longest time without a message from a process, or without progress of all."""
        self._limit_s = limit_s
        self._seen = [_Seen(now, now) for _ in range(processes)]

    def heard(self, process: int, beat: Beat, now: float) -> None:
        """Takes the beat of a process."""
        seen = self._seen[process]
        if beat.ticks != seen.ticks:
            seen.moved = now
        seen.heard, seen.kind, seen.step, seen.ticks = now, beat.kind, beat.step, beat.ticks

    def done(self, process: int) -> None:
        self._seen[process].done = True

    def silent(self, now: float, limit_s: float) -> int | None:
        """The process that has been silent longest, and for longer than `limit_s`."""
        open_ = [(seen.heard, i) for i, seen in enumerate(self._seen) if not seen.done]  # the others send nothing more
        heard, process = min(open_, default=(now, 0))
        return process if now - heard > limit_s else None

    def fault(self, now: float) -> tuple[int, str] | None:
        """(the process, its fault as a clause); None if there is no fault."""
        if (process := self.silent(now, self._limit_s)) is not None:
            return process, f"gave no sign of life for {self._limit_s:g} s (--fault_timeout)"
        left = [(i, seen) for i, seen in enumerate(self._seen) if not seen.done]
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


class Lost(Exception):
    """The training has ended; the message says which process failed, on which host, and why.

    slot: that of the process, as given to `Team`; None if all processes report the same. again: whether the others
    could continue without it. detail: its stack trace or its output.
    """

    def __init__(self, message: str, *, slot: int | None, again: bool, detail: str):
        super().__init__(message)
        self.slot, self.again, self.detail = slot, again, detail


@dataclass(frozen=True, kw_only=True)
class _Failure:
    """How one process failed. explains: a rank; of several failures, the lowest explains best what happened."""

    reason: str
    explains: int
    detail: str
    user: bool = False  # bad input: continuing without the process would repeat it


class Team:
    """The workers (`worker`) of a training. They are killed when the context ends."""

    def __init__(self, setup: Setup, slots: Sequence[int], *, limit_s: float, logs: Path, followers: Followers | None):
        """Starts the workers. setup: of each, with `train`. limit_s: see `Watch`.

        slots: the processes of the launch that take part, or without a launch the numbers of the workers.
        """
        beat_s = min(1.0, limit_s / BEATS)
        train = dataclasses.replace(present(setup.train), beat_s=beat_s)
        setup = dataclasses.replace(setup, module=MODULE, processes=len(slots), train=train)
        self._slots, self._followers, self._beat_s = tuple(slots), followers, beat_s
        setups = followers.setups(setup, slots) if followers else client.setups(setup)
        self._children: list[Child | Remote] = []
        for number, (slot, each) in enumerate(zip(slots, setups, strict=True)):
            remote = followers is not None and slot > 0
            self._children.append(followers.start(slot, each) if remote else Child(each, logs / f"rank{number}"))  # type: ignore[union-attr]
        self._watch = Watch(len(slots), limit_s, time.monotonic())
        self._done: dict[int, int] = {}
        self._failed: dict[int, _Failure] = {}
        self._first_failed = 0.0

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *error: object) -> None:
        for child in self._children:  # all at once: `close` waits for one, and the others would wait for it, too
            child.let_go() if error[0] is None else child.kill()
        for child in self._children:
            child.close()

    def run(self, stop: Stop, console: Console) -> int:
        """The exit code of the first process, once all have ended without a fault. Raises Lost."""
        forwarded = False
        while len(self._done) < len(self._children):
            if stop.name and not forwarded:  # to all: they agree on a step, whichever hears it first
                forwarded = True
                for child in self._children:
                    child.send(line_of(StopBy(name=stop.name)))
            open_ = [child for i, child in enumerate(self._children) if i not in self._done and i not in self._failed]
            for child in ready(open_, TURN_S) if open_ else ():
                self._hear(self._children.index(child), child.read(), console)
            self._raise_if_lost()
        return self._done[0]

    def _hear(self, number: int, line: Fields | None, console: Console) -> None:
        if line is None:
            code, how = self._children[number].end()  # its output has ended without a `Done`
            # JAX aborts a process after it has missed another one, so these codes explain less than any other end.
            explains = 2 if code in (-signal.SIGABRT, 1) and "gone" not in how else 0
            self._fail(number, _Failure(reason=how, explains=explains, detail=self._children[number].log_tail()))
            return
        match message_of(line, NEWS):
            case Beat() as beat:
                self._watch.heard(number, beat, time.monotonic())
            case Say(text=text):
                console.file.write(text)
                console.file.flush()
            case Done(code=code):
                self._done[number] = code
                self._watch.done(number)
            case Fault() as fault:
                # An error of JAX may follow from the loss of another process; an error of the model does not.
                explains = 1 if fault.own else 3
                self._fail(
                    number, _Failure(reason=fault.reason, explains=explains, detail=fault.detail, user=fault.user)
                )

    def _fail(self, number: int, failure: _Failure) -> None:
        if not self._failed:
            self._first_failed = time.monotonic()
        self._failed[number] = failure
        self._watch.done(number)  # a process that has failed is not to be found silent as well

    def _raise_if_lost(self) -> None:
        """Raises Lost once it is known which process failed."""
        now = time.monotonic()
        if not self._failed:
            if fault := self._watch.fault(now):
                number, reason = fault
                raise self._lost(number, f"{reason}{self._stopped(number)}")
            return
        number = min(self._failed, key=lambda i: self._failed[i].explains)  # the first of several with the least
        failure = self._failed[number]
        # If all report the same, the cause is common, such as bad input: no process is to blame.
        if len(self._failed) == len(self._children) and len({each.reason for each in self._failed.values()}) == 1:
            raise Lost(failure.reason.rstrip("."), slot=None, again=False, detail=failure.detail)
        waited = now - self._first_failed
        if failure.explains > 1:
            if waited < (EXPLAINED_BY_FOLLOWERS_S if self._followers else EXPLAINED_S):
                return
            # A process that was stopped, or lost its host, sends no failure: the others noticed it first.
            if (silent := self._watch.silent(now, 3 * self._beat_s)) is not None:
                raise self._lost(silent, f"gave no sign of life{self._stopped(silent)}")
        elif failure.explains == 1 and waited < EXPLAINED_S and len(self._failed) < len(self._children):
            return  # the others may say the same
        raise self._lost(number, failure.reason, failure)

    def _lost(self, number: int, reason: str, failure: _Failure | None = None) -> Lost:
        host = self._followers.hosts[self._slots[number]] if self._followers else socket.gethostname()
        clause = reason.startswith(("was ", "ended ", "is gone", "gave ", "did not "))
        return Lost(
            f"process {number} of {len(self._children)} (on {host}) {'' if clause else 'failed: '}{reason.rstrip('.')}",
            slot=self._slots[number],
            again=not (failure and failure.user),
            detail=failure.detail if failure else "",
        )

    def _stopped(self, number: int) -> str:
        return ": it was stopped, as by SIGSTOP" if self._children[number].stopped else ""


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
        text = f"stopped at once: the same command with --workdir={workdir} continues{_from(workdir)}."
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
    setup = replace(setup, order=tuple(free_cores()), train=shown)
    share, most, losses = setup.devices // len(slots), len(slots), 0  # share: devices of a process, which stay its own
    with of_signals() as stop, tempfile.TemporaryDirectory(prefix="jaxbench-train-") as logs:
        while True:
            try:
                with Team(setup, slots, limit_s=faults.timeout_s, logs=Path(logs), followers=followers) as team:
                    return team.run(stop, console)
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
