# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A process of `benchmarks.sharing` or `benchmarks.plain_jax`: fake CPU devices that each train on their own batch.

WAY: "alone", one device, on the given core; "programs", an independent program on each device; "together", the devices
in one data-parallel program; "plain", the same by hand in JAX's defaults, on the same cores. THREADS: size of XLA's
pool; 0: as `jaxbench run` sizes it. CHANGES: of the experiment's config, as JSON.
Run by the parent: python -m benchmarks.sharing_arm MODEL WAY DEVICES CORE THREADS CHANGES
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import jax
from ml_collections import ConfigDict

from benchmarks.bare import BareLoop
from benchmarks.peers.arms import Block, measured, serve
from benchmarks.peers.suite_arm import configured
from jaxbench import parallel
from jaxbench.core.clock import Timer, run_ahead
from jaxbench.machine.cores import physical_cores, pin_to_cores
from jaxbench.machine.start import start_fake_cpu
from jaxbench.measure.arm import Arms
from jaxbench.measure.compile_report import compile_step

Program = tuple[Any, Any, Any]  # the compiled step, state, batch
# Plain JAX 0.10 hangs after some hundred small steps of two devices if the host runs more than about thirty steps
# ahead. A person's loop that logs its loss waits earlier, too.
PLAIN_AHEAD = 16


def start_devices(way: str, count: int, core: int, threads: int) -> list[jax.Device]:
    if way == "plain":
        pin_to_cores(count)  # as `taskset` would: else one device would use all cores
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_num_cpu_devices", count)
        return jax.devices()
    if way == "alone":
        os.sched_setaffinity(0, {physical_cores()[core]})
    start_fake_cpu(count)
    if threads:  # before the backend starts
        os.environ["NPROC"] = str(threads)
    return jax.devices()


def draw(workload: Any, batch: int) -> Any:
    return jax.jit(workload.synthetic, static_argnums=1)(jax.random.PRNGKey(1), batch)


def programs(config: ConfigDict, workload: Any, groups: list[list[jax.Device]]) -> list[Program]:
    """One for each group of devices that runs independently."""
    compiled = []
    for group in groups:
        program = parallel.build("jit_auto", workload, group)
        batch = config.batch * len(group)
        step = compile_step(workload, program, batch).call
        with jax.set_mesh(program.mesh):
            compiled.append((step, program.init(jax.random.PRNGKey(0)), program.put(draw(workload, batch))))
    return compiled


def of_suite(running: list[Program], ahead: int | None) -> Callable[[int], float]:
    """steps -> seconds, in the blocks of the suite's timer."""

    def step_all(states: list[Any], _: None) -> tuple[list[Any], Any]:
        """One step of each program. They are started in turn and run concurrently."""
        results = [step(state, batch) for (step, _, batch), state in zip(running, states, strict=True)]
        return [state for state, _ in results], [metrics for _, metrics in results]

    states, timer = [state for _, state, _ in running], Timer(ahead=ahead)

    def block(steps: int) -> float:
        nonlocal states
        seconds, states = timer.block(step_all, states, None, steps)
        return seconds

    return block


def main() -> None:
    name, way, count, core, threads, changes = sys.argv[1:]
    devices = start_devices(way, int(count), int(core), int(threads))
    config = configured(name)
    config.update_from_flattened_dict(json.loads(changes))
    workload = Arms(config, name, devices[0]).workload({})
    if way == "plain":
        block = BareLoop(workload, devices, draw(workload, config.batch * len(devices)), ahead=PLAIN_AHEAD).block
    else:
        groups = [[device] for device in devices] if way == "programs" else [devices]
        # More threads than cores stand for the former pool, which let the host run ahead without a limit.
        block = of_suite(programs(config, workload, groups), None if int(threads) else run_ahead(devices))

    def run(steps: int) -> Block:
        block(steps // 4 + 1)
        return measured(lambda: block(steps))

    serve(f"jax {jax.__version__}", [], run)


if __name__ == "__main__":
    main()
