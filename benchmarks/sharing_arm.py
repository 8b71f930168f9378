# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A process of `benchmarks.sharing`: fake CPU devices that each train on an experiment's batch.

WAY: "alone", one device, on the given core; "programs", one device per core, each with an independent program;
"together", the same devices in one data-parallel program. THREADS: size of XLA's pool; 0: as `jaxbench run` sizes it.
Run by the parent: python -m benchmarks.sharing_arm MODEL WAY CORE THREADS
"""

from __future__ import annotations

import os
import sys
from typing import Any

import jax

from benchmarks.peers.arms import serve
from benchmarks.peers.suite_arm import configured
from jaxbench import parallel
from jaxbench.core.clock import Timer, run_ahead
from jaxbench.machine.cores import available_cores, physical_cores
from jaxbench.machine.start import start_fake_cpu
from jaxbench.measure.arm import Arms
from jaxbench.measure.compile_report import compile_step

Program = tuple[Any, Any, Any]  # the compiled step, state, batch


def start_devices(way: str, core: int, threads: int) -> list[jax.Device]:
    count = 1 if way == "alone" else available_cores()
    if way == "alone":
        os.sched_setaffinity(0, {physical_cores()[core]})
    start_fake_cpu(count)
    if threads:  # before the backend starts
        os.environ["NPROC"] = str(threads)
    return jax.devices()


def programs(name: str, way: str, devices: list[jax.Device]) -> list[Program]:
    """One for each group of devices that runs independently."""
    config = configured(name)
    workload = Arms(config, name, devices[0]).workload({})
    compiled = []
    for group in [devices] if way == "together" else [[device] for device in devices]:
        program = parallel.build("jit_auto", workload, group)
        batch = config.batch * len(group)
        step = compile_step(workload, program, batch).call
        with jax.set_mesh(program.mesh):
            data = program.put(jax.jit(workload.synthetic, static_argnums=1)(jax.random.PRNGKey(1), batch))
            compiled.append((step, program.init(jax.random.PRNGKey(0)), data))
    return compiled


def main() -> None:
    name, way, core, threads = sys.argv[1:]
    running = programs(name, way, start_devices(way, int(core), int(threads)))

    def step_all(states: list[Any], _: None) -> tuple[list[Any], Any]:
        """One step of each program. They are started in turn and run concurrently."""
        results = [step(state, batch) for (step, _, batch), state in zip(running, states, strict=True)]
        return [state for state, _ in results], [metrics for _, metrics in results]

    # More threads than cores stand for the former pool, which let the host run ahead without a limit.
    ahead = None if int(threads) else run_ahead(jax.devices())
    states, timer = [state for _, state, _ in running], Timer(ahead=ahead)

    def run(steps: int) -> float:
        nonlocal states
        _, states = timer.block(step_all, states, None, steps // 4 + 1)
        seconds, states = timer.block(step_all, states, None, steps)
        return seconds

    serve(f"jax {jax.__version__}", [], run)


if __name__ == "__main__":
    main()
