# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The cost of XLA's thread pool, which all fake CPU devices of a process share (docs/metrics, Threads).

XLA splits products and large kernels over this pool. One device alone has a pool of one thread, and splits nothing.
Each device trains on its own batch, so without contention a step would take as long as on one device alone. Arms:

  processes:   one process per device, concurrently: contention for the cores only.
  programs:    one process, an independent program for each device: adds the shared pool.
  together:    one data-parallel program, as in `jaxbench run`: adds its collective. The pool has a thread per core, and
               at most two steps are in flight.
  4 threads:   the same with a pool of 2 threads per device and no limit of steps in flight, as jaxbench had it before.
  16 threads:  the same with a pool that is larger still.

Every round visits all ways in random order. A result is the median over the rounds of the time over that of one device
alone, with its 95 % bootstrap interval.

Run: python -m benchmarks.sharing [--only=mlp,cnn,gpt] [--rounds=15] [--block_s=0.2]
"""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.peers.arms import Arm
from benchmarks.peers.ratios import median_and_interval
from jaxbench.machine.cores import available_cores, pin_to_cores

Way = list[Arm]  # processes that run at the same time


def start(name: str, block_s: float, stack: ExitStack) -> dict[str, Way]:
    """The arms; the first is one device alone. All have the number of steps per block with which it takes `block_s`."""

    def arm(way: str, core: int = 0, threads: int = 0) -> Arm:
        devices = 1 if way == "alone" else available_cores()
        process = Arm(way, "sharing_arm", name, way, str(devices), str(core), str(threads), "{}")
        stack.callback(process.close)
        return process

    first = arm("alone")
    first.calibrate(block_s)
    ways = {
        "alone": [first],
        "processes": [first, *(arm("alone", core) for core in range(1, available_cores()))],
        "programs": [arm("programs")],
        "together": [arm("together")],
        "together, 4 threads": [arm("together", threads=2 * available_cores())],
        "together, 16 threads": [arm("together", threads=16)],
    }
    for way in ways.values():
        for process in way:
            process.steps = first.steps
    return ways


def block_s(way: Way) -> float:
    """Seconds per step until the last process is done."""
    for arm in way:
        arm.begin()
    return max([arm.end() for arm in way])


def measure(name: str, args: argparse.Namespace, console: Console) -> dict[str, np.ndarray]:
    """Seconds per step of each arm, (rounds,)."""
    random = np.random.default_rng(0)
    with ExitStack() as stack:
        ways = start(name, args.block_s, stack)
        times: dict[str, list[float]] = {way: [] for way in ways}
        for _ in track(range(args.rounds), name, console=console, transient=True):
            for way in random.permutation(list(ways)):
                times[way].append(block_s(ways[way]))
    return {way: np.array(values) for way, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="mlp,cnn,gpt")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--block_s", type=float, default=0.2)
    args = parser.parse_args()
    if not pin_to_cores(available_cores()):
        raise SystemExit("This system cannot pin a process to a core: use Linux.")
    if available_cores() < 2:
        raise SystemExit("Devices on one core take turns: use a machine with 2 cores or more.")
    console = Console(width=None if sys.stdout.isatty() else 100, markup=False, highlight=False)
    table = Table("model", "way", "ms per step", "over one device alone", title=f"{available_cores()} fake CPU devices")
    for name in args.only.split(","):
        times = measure(name, args, console)
        for way, values in times.items():
            ratio = "1" if way == "alone" else median_and_interval(values / times["alone"], digits=2)
            table.add_row(name, way, f"{1e3 * np.median(values):.3g}", ratio)
    console.print(table)


if __name__ == "__main__":
    main()
