# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The child's side of a worker: one JSON request a line on stdin, one JSON answer a line on stdout.

The first line sets the process up: {"platform", "devices", ...} and what `make` needs. For kernels it also has "cores":
the number of cores that the device may use. "order": the cores to take first. "concurrent_collectives" is explained at
`start.threads`. "world": the position of this process in a process group (`start.join`), which has the "devices" all
together. With "target" the process compiles for absent hardware.

The answer {"concurrent_collectives": n} asks for another process with threads for n collectives. The process ends as
soon as stdin does, even in the middle of a measurement, so no worker outlives its parent.
"""

from __future__ import annotations

import json
import math
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from jaxbench import discovery
from jaxbench.catalog import targets
from jaxbench.errors import MoreCollectives, Raised, Unsupported, UserError
from jaxbench.machine import manifest, source
from jaxbench.machine.cores import pin_to_cores

Make = Callable[[dict[str, Any], list[Any]], Any]
Handle = Callable[[Any, dict[str, Any]], dict[str, Any]]
IDLE = {"idle": True}  # the answer of a process that owns no device of the point


class StageError(Exception):
    """A point failed in `stage`; its __cause__ is the reason."""

    def __init__(self, stage: str):
        super().__init__(stage)
        self.stage = stage


class stage:
    """A context that adds its stage to an error and, if the error passed through the user's file, the line there."""

    def __init__(self, name: str):
        self.name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type | None, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, Exception):
            raise StageError(self.name) from discovery.with_user_line(error)


def main(make: Make, handle: Handle) -> None:
    """Serves the parent of this process over its pipes.

    make: (setup, devices) -> the state that requests are carried out with. handle: (that state, a request) -> answer.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole terminal; the parent decides what it means
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the output of libraries must not mix with the answers
    serve(follow(sys.stdin), answers, make, handle)


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


def serve(requests: Iterator[str], answers: TextIO, make: Make, handle: Handle) -> None:
    """Answers the requests one after the other; `requests` never ends."""
    setup = json.loads(next(requests))
    cores, place = setup.get("cores"), setup.get("world")
    if setup["platform"] == "cpu":  # before anything imports jax: threads inherit the cores of the one that makes them
        here = (place or {}).get("devices_here", setup["devices"])
        pin_to_cores(cores or here, setup.get("order", ()))
    from jaxbench.machine import start

    def begin() -> Any:
        if setup.get("target"):
            return make(setup, start.target_devices(targets.parse(setup["target"])))
        threads = setup.get("concurrent_collectives", start.CONCURRENT_COLLECTIVES)
        about = {"cores": cores, "concurrent_collectives": threads, "place": place}
        return make(setup, start.start(setup["platform"], setup["devices"], **about))

    def send(answer: dict[str, Any]) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    state, failure = _attempt(begin)
    send({**(failure or {"ready": True, **surroundings()}), "source": source.HERE})
    device_counts: dict[str, int] = {}
    for line in requests if failure is None else ():
        request = json.loads(line)
        if place and not _concerns_this_process(state, request, device_counts):
            send(IDLE)
            continue
        answer, failure = _attempt(lambda request=request: handle(state, request))  # type: ignore[misc]
        send(failure or answer)


def surroundings() -> dict[str, Any]:
    """The facts that only this process knows: the CPUs that it may use, and variables that change its speed."""
    from jaxbench.machine import start

    cpus = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    return {"cpus": cpus, "environment": {**manifest.environment(), **start.changed_settings}}


def _concerns_this_process(state: Any, request: dict[str, Any], device_counts: dict[str, int]) -> bool:
    """Whether this process of a group owns a device of the request's point. device_counts: by point."""
    from jaxbench.processes.group import ProcessGroup

    point = request.get("point")
    if isinstance(point, dict):
        sides = point.get("mesh") or str(point["devices"])  # the mesh of a collective has all groups of devices
        device_counts[point["point"]] = math.prod(map(int, sides.split("x")))
        point = point["point"]
    count = device_counts.get(str(point), len(state.devices))
    return ProcessGroup.of(state.devices[:count]).include_this


def _attempt(action: Callable[[], Any]) -> tuple[Any, dict[str, Any] | None]:
    """Returns (result, None) or (None, the failure to send)."""
    try:
        return action(), None
    except Exception as error:  # the one broad except: any exception of a model or a compiler is a failed point
        cause = error.__cause__ if hasattr(error, "stage") and error.__cause__ else error
        if isinstance(cause, MoreCollectives):
            return None, {"concurrent_collectives": cause.count}
        reason = " ".join(str(cause).split()) or type(cause).__name__
        if not isinstance(cause, UserError):
            reason = f"{type(cause).__name__}: {reason}"
        detail = "".join(traceback.format_exception(cause))
        failure = {"stage": getattr(error, "stage", "start"), "reason": reason[:1000], "detail": detail[-8000:]}
        refused = isinstance(cause, UserError) and not isinstance(cause, Raised)
        return None, {"failed": {**failure, "unsupported": isinstance(cause, Unsupported), "refused": refused}}
