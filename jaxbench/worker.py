# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The worker process that measures points; `processes.messages` has its setup, requests and answers.

With a target it accepts only `CompileFor`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxbench.processes import messages, server
from jaxbench.processes.messages import REQUESTS, Recorded, Request, Setup

if TYPE_CHECKING:  # they import jax, and the server chooses cores before that
    import jax

    from jaxbench.cases.case_bench import CaseBench
    from jaxbench.core.bench import Bench


def bench_of(setup: Setup, devices: list[jax.Device]) -> Bench | CaseBench:
    """The bench that measures points of this process."""
    if setup.config.get("measures") == "cases":
        from jaxbench.cases.case_bench import CaseBench

        return CaseBench(setup.config, setup.experiment, devices, setup.worker)
    from jaxbench.features.ablations.bench import AblationBench

    bench = AblationBench(setup.config, setup.experiment, devices, setup.worker)
    if setup.co_runners:
        from jaxbench.processes.group import join_co_runners

        bench.co_runners = join_co_runners(setup.co_runners)
    return bench


def handle(bench: Bench | CaseBench, request: Request) -> object:
    """Carries out one request and returns its answer."""
    from jaxbench.core.bench import Bench

    if isinstance(request, messages.Compile):
        return bench.compile_only(request.point)
    if isinstance(bench, Bench):
        return _of_steps(bench, request)
    match request:
        case messages.Prepare():
            record = bench.prepare(request.point)
            return Recorded(record=record, steps=bench.prepared[record.point].steps)
        case messages.Round():
            return Recorded(record=bench.round(request.point, request.round, double=request.double))
        case messages.CompileFor():
            return Recorded(record=bench.compile_for(request.point))
    raise TypeError(f"a bench of cases does not carry out '{request.do}'")


def _of_steps(bench: Bench, request: Request) -> object:
    from jaxbench.features.profile import profile
    from jaxbench.features.try_model import trial

    match request:
        case messages.Prepare():
            if request.loss:
                bench.proof.take(request.loss)
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
        case messages.CompileFor():
            return Recorded(record=bench.compile_for(request.point, request.text, request.options))
        case messages.Profile():
            return Recorded(record=profile.of_point(bench, request.point, request.folder))
        case messages.RunWithin():
            return bench.run_within(request.point, request.limit_bytes)
        case messages.Describe():
            return trial.describe(bench)
        case messages.Try():
            return trial.attempt(bench, request.point)
    raise TypeError(f"a bench of training steps does not carry out '{request.do}'")


if __name__ == "__main__":
    server.main(REQUESTS, bench_of, handle)
