# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A training under injected faults: does its measured goodput agree with the formula's (docs/metrics, Goodput)?

It runs `jaxbench train` as a child process and sends it SIGKILL after a time drawn from an exponential distribution,
repeatedly until the training is done. The times are spread evenly over the distribution (a golden-ratio sequence
from a seeded start), and the formula uses the observed rate of kills. A short training has few kills: at the nominal
rate its goodput would differ by 10 to 20 % by chance alone; at the observed rate it is within 4 %.

The folder then has the training's page, `training.html`, with the wall-time table, the expected and the measured
goodput, and the best interval between checkpoints. The exit code is 1 if they differ by more than 10 %, or if there
were fewer than 10 kills.

Run: python -m benchmarks.goodput [--experiment=cnn] [--mtbf_s=30] [--seed=0] [--workdir=DIR] [--config....=...]
"""

from __future__ import annotations

import argparse
import datetime
import math
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from rich.console import Console

from jaxbench.core.store import write_json
from jaxbench.features.training import page as training
from jaxbench.features.training import trainings

GOLDEN = (math.sqrt(5) - 1) / 2
AGREES = 0.10
FEWEST = 10  # kills


def times_before_faults(mtbf_s: float, seed: int) -> Iterator[float]:
    """Endless exponential times with mean `mtbf_s`; also the first ones are spread over the distribution."""
    share = np.random.default_rng(seed).uniform()
    while True:
        share = (share + GOLDEN) % 1
        yield -mtbf_s * math.log1p(-share)


def train(command: list[str], times: Iterator[float], most: int, console: Console) -> tuple[int, float]:
    """Starts the training until it is done; kills it after each of `times`.

    Returns the number of kills, and the mean seconds from a kill to the next process.
    """
    down_s, killed = 0.0, time.monotonic()
    for kills in range(most + 1):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as child:
            down_s += time.monotonic() - killed if kills else 0.0
            try:
                _, said = child.communicate(timeout=next(times))
            except subprocess.TimeoutExpired:
                child.kill()
                killed = time.monotonic()
                child.communicate()
                console.print(f"kill {kills + 1}")
                continue
        if child.returncode not in (0, 1):  # target reached, or not
            raise SystemExit(f"The training ended with exit code {child.returncode}: {said.strip()}")
        return kills, down_s / max(1, kills)
    raise SystemExit(f"Not done after {most} kills: use a larger --mtbf_s, or checkpoints more often.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--experiment", default="cnn")
    parser.add_argument("--mtbf_s", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=int, default=200, help="kills after which it gives up")
    parser.add_argument(
        "--workdir", type=Path, default=Path(f"results/goodput-{datetime.datetime.now():%Y%m%d-%H%M%S}")
    )
    args, settings = parser.parse_known_args()
    if not args.mtbf_s > 0:
        raise SystemExit(f"--mtbf_s={args.mtbf_s:g} is not a time: use seconds such as 30.")
    if (args.workdir / trainings.LEDGER).exists():
        raise SystemExit(f"'{args.workdir}' holds a training: choose a new --workdir.")
    console = Console(width=None if sys.stdout.isatty() else 100, markup=False, highlight=False)
    command = [sys.executable, "-m", "jaxbench", "train", args.experiment, f"--workdir={args.workdir}", *settings]
    kills, down_s = train(command, times_before_faults(args.mtbf_s, args.seed), args.most, console)
    write_json(
        args.workdir / training.FAULTS, {"mtbf_s": args.mtbf_s, "seed": args.seed, "kills": kills, "down_s": down_s}
    )
    over = training.write(args.workdir, console)
    console.print(f"\nPage: {args.workdir / training.PAGE}", soft_wrap=True)
    if over is None or kills < FEWEST:
        raise SystemExit(f"{kills} kills are too few to compare: train longer, or use a smaller --mtbf_s.")
    raise SystemExit(int(abs(over - 1) > AGREES))


if __name__ == "__main__":
    main()
