# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What a core is worth while all others work too: the most that any scaling on this machine's cores can reach.

One process a core multiplies small matrices that fit its cache, alone or all at once, and shares nothing with the
others: no data, no lock, no framework. What they lose together is the machine's (two cores that are one, a clock that
falls, a neighbour on the same host), and no training step can scale better. Alone and together take turns.

Run: python -m benchmarks.cores [--rounds=20] [--block_s=0.5]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

import numpy as np
from rich.console import Console

from jaxbench.machine.cores import available_cores, pin_to_cores

SIZE = 256  # three matrices of float32 are 768 KiB


def work() -> None:
    """Multiplies for as many seconds as a line of standard input says, and answers with products per second."""
    a = np.random.default_rng(0).random((SIZE, SIZE), np.float32)
    for line in sys.stdin:
        done, start = 0, time.perf_counter()
        while time.perf_counter() - start < float(line):
            a @ a
            done += 1
        print(done / (time.perf_counter() - start), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--block_s", type=float, default=0.5)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        return work()
    count = available_cores()
    pin_to_cores(count)
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.cores", "--work"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            preexec_fn=lambda core=core: os.sched_setaffinity(0, {core}),  # type: ignore[misc]
        )
        for core in sorted(os.sched_getaffinity(0))
    ]
    alone, together = [], []
    for _ in range(asked.rounds):
        alone.append(np.mean([_rates([worker], asked.block_s) for worker in workers]))
        together.append(np.mean(_rates(workers, asked.block_s)))
    for worker in workers:
        worker.stdin.close()  # type: ignore[union-attr]
        worker.wait()
    share = np.array(together) / np.array(alone)
    random = np.random.default_rng(0)
    low, high = np.percentile(np.median(random.choice(share, (2000, len(share))), axis=1), [2.5, 97.5])
    said = f"{count} cores, {asked.rounds} rounds: a core beside busy ones does {100 * np.median(share):.0f} % "
    said += f"[{100 * low:.0f}, {100 * high:.0f}] of what it does alone; over rounds {100 * share.min():.0f} to "
    Console(highlight=False).print(f"{said}{100 * share.max():.0f} %. Expect no higher efficiency of any program here.")


def _rates(workers: list[subprocess.Popen], seconds: float) -> list[float]:
    """Products per second of each of these, working at the same time."""
    for worker in workers:
        worker.stdin.write(f"{seconds}\n")  # type: ignore[union-attr]
        worker.stdin.flush()  # type: ignore[union-attr]
    return [float(worker.stdout.readline()) for worker in workers]  # type: ignore[union-attr]


if __name__ == "__main__":
    main()
