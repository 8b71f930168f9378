# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How long the passes of `benchmarks.known_losses_model` take by themselves, in a plain loop.

Prints a line for each set of processes, medians of its repeats: seconds over all examples on one device, over half of
them on it, and over half of them on each of two devices at once. As in a run of the suite, one device is a process of
its own with one thread, and processes keep the memory that they have. Where in memory that lies differs from process to
process, and with it the time.

Run: python -m benchmarks.known_losses_passes [--processes=4] [--repeats=7]
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from benchmarks import known_losses_model as model
from jaxbench.machine import start
from jaxbench.runner.plan import KEEP_MEMORY

DEVICES, WARM_UP = 2, 2
_jitted: Any = None


def prepare(devices: int) -> None:
    """Makes this process one of so many devices, each with a thread."""
    global _jitted
    start.start_fake_cpu(devices)
    mesh, spread = Mesh(np.array(jax.devices()), ("data",)), PartitionSpec("data")
    _jitted = jax.jit(jax.shard_map(model.passes, mesh=mesh, in_specs=spread, out_specs=spread))


def seconds(rows: int) -> float:
    """Of the passes over so many examples, split over this process's devices."""
    examples = jax.block_until_ready(jnp.full((rows, model.WIDTH), 0.5))
    begun = time.perf_counter()
    jax.block_until_ready(_jitted(examples))
    return time.perf_counter() - begun


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
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()
    os.environ |= KEEP_MEMORY
    for _ in range(args.processes):
        print(*(f"{each:.6f}" for each in medians(args.repeats)))


if __name__ == "__main__":
    main()
