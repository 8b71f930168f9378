# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The child process that measures: one JSON request a line on stdin, one JSON answer a line on stdout.

The first line sets the process up: {"platform", "devices", "experiment", "config", "worker"}. For kernels it also has
"cores": the number of cores that the device may use. "order": the cores to take first. "concurrent_collectives" is
explained at `start.threads`. "world": the position of this process in a world (`machine.world.join`), which has the
"devices" all together. "beside": its position among co-runners (`machine.world.beside`). With "target" the process
compiles for absent hardware, and accepts only "compile_for". The requests are

    {"do": "prepare" | "compile" | "compile_for" | "try", "point": {...}}
                                                      with "prepare" optionally "loss": its kind, which takes a second
                                                      to find; and "paced": false: no step is timed until
    {"do": "pace", "point": id}
    {"do": "prepare_again", "point": {...}, "program_sha256": of the program that was checked, "steps": K}
    {"do": "describe"}
    {"do": "run_within", "point": {...}, "limit_bytes": n}
    {"do": "round", "point": id, "round": r}          optionally "double": false, without the second clock; and for a
                                                      training "steps", the block length to use, and "last": true,
                                                      which checks the state that the visit leaves
    {"do": "profile", "point": id, "folder": a path}

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

from jaxbench.catalog import targets
from jaxbench.errors import MoreCollectives, Raised, Unsupported, UserError
from jaxbench.machine import manifest, source
from jaxbench.machine.cores import pin_to_cores
from jaxbench.records import schema

Make = Callable[[dict[str, Any], list[Any]], Any]
Handle = Callable[[Any, dict[str, Any]], dict[str, Any]]
IDLE = {"idle": True}  # the answer of a process that owns no device of the point


def serve(requests: Iterator[str], answers: TextIO, made: Make, carry_out: Handle) -> None:
    """Answers the requests one after the other; `requests` never ends.

    made: (setup, devices) -> the first argument of `carry_out`. carry_out: (that, a request) -> the answer.
    """
    setup = json.loads(next(requests))
    cores, target, place = setup.get("cores"), setup.get("target"), setup.get("world")
    if setup["platform"] == "cpu":  # before anything imports jax: threads inherit the cores of the one that makes them
        here = (place or {}).get("devices_here", setup["devices"])
        pin_to_cores(cores or here, setup.get("order", ()))
    from jaxbench.machine import start
    from jaxbench.machine.target import devices as target_devices

    def begin() -> Any:
        if target:
            devices = target_devices(targets.parse(target))
        else:
            devices = start.start(
                setup["platform"],
                setup["devices"],
                cores=cores,
                concurrent_collectives=setup.get("concurrent_collectives", start.CONCURRENT_COLLECTIVES),
                place=place,
            )
        return made(setup, devices)

    bench, answer = _attempt(begin)
    _send(answers, {**(answer or {"ready": True, **surroundings()}), "source": source.HERE})
    counts: dict[str, int] = {}
    for line in requests if bench else ():
        request = json.loads(line)
        if place and not concerns(bench, request, counts):
            _send(answers, IDLE)
            continue
        result, answer = _attempt(lambda request=request: carry_out(bench, request))  # type: ignore[misc]
        _send(answers, answer or result)


def bench_of(setup: dict[str, Any], devices: list[Any]) -> Any:
    """The bench that measures points of this process."""
    if setup["config"].get("measures") == "cases":
        from jaxbench.runner.case_bench import CaseBench as Bench
    else:
        from jaxbench.runner.bench import Bench  # type: ignore[assignment]
    bench: Any = Bench(setup["config"], setup["experiment"], devices, setup["worker"])
    if "beside" in setup:
        from jaxbench.machine.world import beside

        bench.others = beside(setup["beside"])
    return bench


def surroundings() -> dict[str, Any]:
    """The facts that only this process knows: the CPUs that it may use, and variables that change its speed."""
    from jaxbench.machine import settings

    cpus = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    return {"cpus": cpus, "environment": {**manifest.environment(), **settings.found}}


def concerns(bench: Any, request: dict[str, Any], counts: dict[str, int]) -> bool:
    """Whether this process of a world owns a device of the request's point. counts: by point, its device count."""
    from jaxbench.machine.world import Members

    point = request.get("point")
    if isinstance(point, dict):
        sides = point.get("mesh") or str(point["devices"])  # the mesh of a collective has all groups of devices
        counts[point["point"]] = math.prod(map(int, sides.split("x")))
        point = point["point"]
    return Members.of(bench.devices[: counts.get(str(point), len(bench.devices))]).include_this


def handle(bench: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Carries out one request and returns its answer."""
    if request["do"] == "round":
        visit = {name: request[name] for name in ("steps", "double", "last") if name in request}
        return {"record": schema.to_json(bench.round(request["point"], request["round"], **visit))}
    if request["do"] in ("describe", "try"):
        from jaxbench.runner import trial_answers

        describe = request["do"] == "describe"
        return trial_answers.describe(bench) if describe else trial_answers.attempt(bench, request["point"])
    if request["do"] == "run_within":
        return bench.run_within(request["point"], request["limit_bytes"])
    if request["do"] == "profile":
        return {"record": schema.to_json(bench.profile(request["point"], request["folder"]))}
    if request["do"] == "compile_for":
        more = {name: request[name] for name in ("text", "options") if name in request}
        return {"record": schema.to_json(bench.compile_for(request["point"], **more))}
    if request["do"] == "compile":
        return bench.compile_only(request["point"])
    if request["do"] == "prepare_again":
        return {"same": bench.prepare_again(request["point"], request["program_sha256"], request["steps"])}
    if request["do"] == "pace":
        return {**bench.pace(request["point"]), "steps": bench.prepared[request["point"]].steps}
    if "loss" in request:
        bench.proof.take(request["loss"])
    how = {"paced": request["paced"]} if "paced" in request else {}
    record = bench.prepare(request["point"], **how)
    return {"record": schema.to_json(record), "steps": bench.prepared[record.point].steps}


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
        stage = getattr(error, "stage", "start")
        failure = {"stage": stage, "reason": reason[:1000], "detail": detail[-8000:]}
        refused = isinstance(cause, UserError) and not isinstance(cause, Raised)
        return None, {"failed": {**failure, "unsupported": isinstance(cause, Unsupported), "refused": refused}}


def _send(answers: TextIO, answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


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


def main(made: Make = bench_of, carry_out: Handle = handle) -> None:
    """Serves the parent of this process over its pipes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole terminal; the parent decides what it means
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the output of libraries must not mix with the answers
    serve(follow(sys.stdin), answers, made, carry_out)


if __name__ == "__main__":
    main()
