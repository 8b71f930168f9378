# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The worker process that measures points; `processes.messages` has its setup, requests and answers.

With a target it accepts only `CompileFor`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxbench.core.schema import OWN
from jaxbench.processes import messages, server
from jaxbench.processes.messages import REQUESTS, Message, Recorded, Request, Setup

if TYPE_CHECKING:  # they import jax, and the server chooses cores before that
    import jax

    from jaxbench.cases.case_bench import CaseBench
    from jaxbench.measure.bench import Bench


def bench_of(setup: Setup, devices: list[jax.Device]) -> Bench | CaseBench:
    """The bench that measures points of this process."""
    if setup.config.get("measures") == "cases":
        from jaxbench.cases.case_bench import CaseBench

        return CaseBench(setup.config, setup.experiment, devices, setup.worker)
    if setup.config.get("measures") == "decode":
        from jaxbench.features.decode import recipe as generating

        return generating.bench(setup.config, setup.experiment, devices, setup.worker)
    if setup.config.get("strategy") == OWN:
        from jaxbench.features.own_step import recipe as own

        bench: Bench = own.bench(setup.config, setup.experiment, devices, setup.worker)
    else:
        from jaxbench.features.ablations import recipe

        bench = recipe.bench(setup.config, setup.experiment, devices, setup.worker)
    if setup.co_runners:
        from jaxbench.processes.group import join_co_runners

        bench.co_runners = join_co_runners(setup.co_runners)
    return bench


def handle(bench: Bench | CaseBench, request: Request) -> Message:
    """Carries out one request and returns its answer."""
    from jaxbench.measure.bench import Bench

    if isinstance(bench, Bench):
        return _of_own_step(bench, request) or _of_steps(bench, request)
    match request:
        case messages.Prepare():
            record = bench.prepare(request.point)
            return Recorded(record=record, steps=bench.prepared[record.point].steps)
        case messages.Round():
            return Recorded(record=bench.round(request.point, request.round, double=request.double))
        case messages.Compile():
            return bench.compile_only(request.point)
        case messages.CompileFor():
            return Recorded(record=bench.compile_for(request.point))
    raise TypeError(f"a bench of cases does not carry out '{request.do}'")


def _of_own_step(bench: Bench, request: Request) -> Message | None:
    """The answer to a request that only a bench of a user's step understands; None for all others."""
    if bench.config.get("strategy") != OWN:
        return None
    from jaxbench.features.own_step import requests

    return requests.carry_out(bench, request)


def _of_steps(bench: Bench, request: Request) -> Message:
    match request:
        case messages.Prepare():
            if request.loss:
                bench.steps.proof.take(request.loss)
            record = bench.prepare(request.point, paced=request.paced)
            return Recorded(record=record, steps=bench.prepared[record.point].steps)
        case messages.PrepareAgain():
            same = bench.prepare_again(request.point, request.program_sha256, request.steps)
            return messages.Same(same=same)
        case messages.Pace():
            bench.pace(request.point)
            return messages.Paced(steps=bench.prepared[request.point].steps)
        case messages.Round():
            how = {"double": request.double, "last": request.last}
            return Recorded(record=bench.round(request.point, request.round, request.steps, **how))
        case messages.Compile():
            return bench.compiler.only(request.point)
        case messages.CompileFor():
            return Recorded(record=bench.compiler.for_target(request.point, request.text, request.options))
        case messages.Profile():
            from jaxbench.features.profile import profile

            return Recorded(record=profile.of_point(bench, request.point, request.folder))
        case messages.RunWithin():
            return run_within(bench, request)
        case messages.Describe() | messages.Try():
            from jaxbench.features.try_model import trial

            if isinstance(request, messages.Try):
                if request.loss:
                    bench.steps.proof.take(request.loss)
                return trial.attempt(bench, request.point, watch=request.watch)
            return trial.describe(bench)
    raise TypeError(f"a bench of training steps does not carry out '{request.do}'")


def run_within(bench: Bench, request: messages.RunWithin) -> messages.Ran:
    """Runs one step of a point in at most `limit_bytes`, enforced on a CPU, and returns the memory it used.

    Raises StageError, or kills the process, when the step does not fit. The process must not be used again.
    """
    import jax

    from jaxbench.core.point import Point
    from jaxbench.measure import memory

    point = Point.from_json(request.point)
    built = bench.compiler.compile(point)
    program, compiled = built.program, built.compiled
    with server.stage("measure"), jax.set_mesh(program.mesh):
        host = jax.device_get(bench.source.batch(point))
        if bench.devices[0].platform == "cpu":
            jax.block_until_ready(program.init(bench.key))  # so that compiling it is not counted
            memory.limit_growth(request.limit_bytes)
        watch = memory.PeakMemory(bench.device)
        state, batch = program.init(bench.key), program.put(host)
        watch.step_begins((state, batch))
        # One step only: a CPU may allocate the scratch of a second step before it has freed that of the first.
        jax.block_until_ready(compiled.call(state, batch))
        return messages.Ran(peak_bytes=compiled.report.peak_bytes, measured_bytes=watch.peak_bytes())


if __name__ == "__main__":
    server.main(REQUESTS, bench_of, handle)
