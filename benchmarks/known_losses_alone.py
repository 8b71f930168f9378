# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Times the losses of `benchmarks.known_losses_model` alone, in a plain loop.

  passes: a line for each set of processes, medians of its repeats: seconds over all examples on one device, over half
          of them on one device, and over half of them on each of two devices at once. As in a run of the suite, each
          device is a separate process with one thread, and processes keep freed memory. The location in memory differs
          between processes, and so does the time.
  wait:   a line: the median extra seconds of a step with a wait of --wait_s. They exceed the wait, because the step
          calls Python for it and the system wakes threads a little late.

Run: python -m benchmarks.known_losses_alone passes|wait [--processes=4] [--repeats=7] [--wait_s=0.01]
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from benchmarks import known_losses_model as model
from jaxbench.machine import start
from jaxbench.processes.messages import KEEP_MEMORY

DEVICES, WARM_UP = 2, 2
_jitted: Any = None


def prepare(devices: int) -> None:
    """Gives this process a number of devices, each with one thread."""
    global _jitted
    start.start_fake_cpu(devices)
    mesh, spread = Mesh(np.array(jax.devices()), ("data",)), PartitionSpec("data")
    _jitted = jax.jit(jax.shard_map(model.passes, mesh=mesh, in_specs=spread, out_specs=spread))


def seconds(rows: int) -> float:
    """Seconds of the passes over a number of examples, split over this process's devices."""
    examples = jax.block_until_ready(jnp.full((rows, model.WIDTH), 0.5))
    begun = time.perf_counter()
    jax.block_until_ready(_jitted(examples))
    return time.perf_counter() - begun


def waits(wait_s: float, repeats: int) -> float:
    """Median extra seconds of a step with a wait over a step without, measured in turns."""
    gradients = jax.block_until_ready({"layer0": jnp.zeros((model.WIDTH, model.WIDTH))})
    # On one device "late" calls Python and never waits.
    steps = {when: jax.jit(partial(model.waited, when, wait_s)) for when in ("fixed", "late")}
    times: dict[str, list[float]] = {when: [] for when in steps}
    for _ in range(WARM_UP + repeats):
        for when, step in steps.items():
            begun = time.perf_counter()
            jax.block_until_ready(step(gradients))
            times[when].append(time.perf_counter() - begun)
    waited, plain = (statistics.median(each[WARM_UP:]) for each in times.values())
    return waited - plain


def medians(repeats: int) -> list[float]:
    """Of one set of processes."""
    rows, spawn = model.get_config().batch, get_context("spawn")
    with (
        ProcessPoolExecutor(1, spawn, prepare, (1,)) as one,
        ProcessPoolExecutor(1, spawn, prepare, (DEVICES,)) as all_,
    ):
        asked = ((one, rows), (one, rows // DEVICES), (all_, rows))
        times = [[run.submit(seconds, count).result() for run, count in asked] for _ in range(WARM_UP + repeats)]
    return [statistics.median(column) for column in zip(*times[WARM_UP:], strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("passes", "wait"))
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--wait_s", type=float, default=0.01)
    args = parser.parse_args()
    os.environ |= KEEP_MEMORY
    if args.what == "wait":
        start.start_fake_cpu(1)
        print(f"{waits(args.wait_s, 10 * args.repeats):.6f}")
        return
    for _ in range(args.processes):
        print(*(f"{each:.6f}" for each in medians(args.repeats)))


if __name__ == "__main__":
    main()
