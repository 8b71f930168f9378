# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The child's side of a worker: one JSON request a line on stdin, one JSON answer a line on stdout.

`messages` declares the setup, which is the first line, the requests and the answers. With a "target" the process
compiles for absent hardware. The process ends as soon as stdin does, even in the middle of a measurement, so no worker
outlives its parent.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from jaxbench import discovery
from jaxbench.catalog import targets
from jaxbench.errors import Raised, Unsupported, UserError
from jaxbench.machine import allocator, manifest, power, preparing, source
from jaxbench.machine.cores import pin_to_cores
from jaxbench.machine.program_cache import tunes
from jaxbench.processes.messages import Failed, Idle, Message, Ready, Request, Setup, line_of, message_of

if TYPE_CHECKING:  # the cores are chosen before anything imports jax
    import jax

State = TypeVar("State")
Result = TypeVar("Result")
Make = Callable[[Setup, "list[jax.Device]"], State]
Handle = Callable[[State, Request], Message]

# Exceptions that the loss of another process may explain; any other one is this process's own fault.
OF_JAX = ("JaxRuntimeError", "XlaRuntimeError", "TimeoutError")


class StageError(Exception):
    """A point failed in `stage`; its __cause__ is the reason."""

    def __init__(self, stage: str):
        super().__init__(stage)
        self.stage = stage


@dataclass
class stage(AbstractContextManager[None]):
    """A context that adds its stage to an error and, if the error passed through the user's file, the line there."""

    name: str

    # Not a generator with `contextmanager`, which would add its own lines to the traceback in the failure record.
    def __exit__(self, kind: type | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception):
            raise StageError(self.name) from discovery.with_user_line(error)


def main(requests: Iterable[type[Request]], make: Make[State], handle: Handle[State]) -> None:
    """Serves the parent of this process over its pipes.

    requests: the kinds that it may send. make: (setup, devices) -> the state that requests are carried out with.
    handle: (that state, a request) -> answer.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole terminal; the parent decides what it means
    answers, lines = Answers(), follow(sys.stdin)
    setup = message_of(json.loads(next(lines)), [Setup])
    pin(setup)
    preparing.here().begin()
    begun_s = time.perf_counter()
    from jaxbench.machine import start

    preparing.here().listen(tunes=tunes(setup.platform))
    starts = {"import_s": time.perf_counter() - begun_s}

    def begin() -> State:
        allocator.require_loaded()
        if setup.target:
            return make(setup, start.target_devices(targets.parse(setup.target)))
        begun_s = time.perf_counter()
        devices = start.start(setup.platform, setup.devices, cores=setup.cores, position=setup.world)
        starts["backend_s"] = time.perf_counter() - begun_s
        return make(setup, devices)

    def send(message: Message, **more: object) -> None:
        more["spent"] = dataclasses.asdict(preparing.here().take(**starts))
        more["spent_on_model"] = dataclasses.asdict(preparing.here().take_aside())
        starts.clear()
        answers(message, **more)

    state = _attempt(begin)
    if isinstance(state, Failed):
        return send(state, source=source.HERE)
    send(surroundings(setup.platform), source=source.HERE)
    device_counts: dict[str, int] = {}

    def answer(line: str) -> Message:
        preparing.here().begin()
        request = message_of(json.loads(line), requests)
        if setup.world and not _concerns_this_process(state, request, device_counts):
            return Idle()
        return handle(state, request)

    for line in lines:
        send(_attempt(partial(answer, line)))


class Answers:
    """Sends messages to the parent, from any thread. From now on, stdout is stderr."""

    def __init__(self) -> None:
        self._file, self._lock = os.fdopen(os.dup(1), "w"), threading.Lock()
        os.dup2(2, 1)  # the output of libraries must not mix with the answers

    def __call__(self, message: Message, **more: object) -> None:
        with self._lock:  # two lines must not mix
            self._file.write(json.dumps({**line_of(message), **more}) + "\n")
            self._file.flush()


def pin(setup: Setup) -> None:
    """Takes the cores of this process, before anything imports jax: threads inherit the cores of their maker."""
    if setup.platform == "cpu":
        here = setup.world.devices_here if setup.world else None
        pin_to_cores(setup.cores or here or setup.devices, setup.order)


def follow(stdin: TextIO) -> Iterator[str]:
    """Yields the lines of `stdin`, and ends the process when stdin ends. The blocked thread costs no time."""
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        for line in stdin:
            lines.put(line)
        os._exit(0)  # answers are flushed one by one: nothing is lost

    threading.Thread(target=read, daemon=True).start()
    while True:
        yield lines.get()


def surroundings(platform: str) -> Ready:
    """The facts that only this process knows: the CPUs that it may use, variables that change its speed, and what its
    GPUs draw while nothing runs."""
    from jaxbench.machine import start

    cpus = tuple(sorted(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else None
    environment = {**manifest.environment(), **start.changed_settings}
    return Ready(cpus=cpus, environment=environment, idle_w=power.idle_w() if platform == "gpu" else {})


def _concerns_this_process(state: Any, request: Request, device_counts: dict[str, int]) -> bool:
    """Whether this process of a group owns a device of the request's point. device_counts: by point."""
    from jaxbench.processes.group import ProcessGroup

    point = getattr(request, "point", None)
    if isinstance(point, dict):
        sides = point.get("mesh") or str(point["devices"])  # the mesh of a collective has all groups of devices
        device_counts[point["point"]] = math.prod(map(int, sides.split("x")))
        point = point["point"]
    count = device_counts.get(str(point), len(state.devices))
    return ProcessGroup.of(state.devices[:count]).include_this


def _attempt(action: Callable[[], Result]) -> Result | Failed:
    """The result of an action, or the answer that says why there is none."""
    try:
        return action()
    except Exception as error:  # the one broad except: any exception of a model or a compiler is a failed point
        return failed(error)


def failed(error: BaseException) -> Failed:
    """The answer that says why there is no other one."""
    cause = error.__cause__ if hasattr(error, "stage") and error.__cause__ else error
    reason = " ".join(str(cause).split()) or type(cause).__name__
    if not isinstance(cause, UserError):
        reason = f"{type(cause).__name__}: {reason}"
    return Failed(
        stage=getattr(error, "stage", "start"),
        reason=reason[:1000],  # a compiler's message may have megabytes
        detail="".join(traceback.format_exception(cause))[-8000:],  # the end of a trace names the line
        unsupported=isinstance(cause, Unsupported),
        refused=isinstance(cause, UserError) and not isinstance(cause, Raised),
        follows=type(cause).__name__ in OF_JAX,
    )
