# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What idle threads of XLA's pool cost: a training step on fake CPU devices with as few as cannot hang, and with 16.

Each arm is a process; every round visits all in random order. Said is the time with more threads over that with the
fewest, above 1 if they cost time, with its 95 % bootstrap interval: why `machine/start.py` counts threads.

Run: python -m benchmarks.threads [--only=lstm,cnn,mlp,gpt] [--rounds=20] [--block_s=0.2]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import ExitStack

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.peers.arms import Arm
from benchmarks.peers.ratios import best_over
from jaxbench.machine.cores import available_cores, pin_to_cores
from jaxbench.machine.start import threads

MANY = 16


def measure(name: str, form: str, asked: argparse.Namespace) -> tuple[int, np.ndarray, np.ndarray]:
    """(fewest threads, seconds per step with them, the same with MANY), (rounds,) each."""
    fewest = threads(1 if form == "whole" else available_cores(), 1)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        arms = [Arm(str(n), "suite_arm", name, "cpu", folder, form, str(n)) for n in (fewest, MANY)]
        for arm in arms:
            stack.callback(arm.close)
            arm.calibrate(asked.block_s)
        times: list[list[float]] = [[], []]
        random = np.random.default_rng(0)
        for _ in range(asked.rounds):
            for place in random.permutation(2):
                times[place].append(arms[place].block_s())
    return fewest, np.array(times[0]), np.array(times[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="lstm,cnn,mlp,gpt")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--block_s", type=float, default=0.2)
    asked = parser.parse_args()
    pin_to_cores(available_cores())
    table = Table("model", "devices", "threads", "ms", f"ms with {MANY}", "ratio", title="Idle threads")
    console = Console(width=None if sys.stdout.isatty() else 100, markup=False, highlight=False)
    for name in asked.only.split(","):
        for form, devices in (("whole", 1), ("split", available_cores())):
            fewest, few, many = measure(name, form, asked)
            ratio = best_over({"few": few}, {"many": many}, np.random.default_rng(0))
            low, high = ratio.interval()
            ms = [f"{1e3 * np.median(times):.3g}" for times in (few, many)]
            table.add_row(name, str(devices), str(fewest), *ms, f"{ratio.middle:.2f} [{low:.2f}, {high:.2f}]")
    console.print(table)


if __name__ == "__main__":
    main()
