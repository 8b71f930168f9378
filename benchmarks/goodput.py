# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A training under injected faults: does its measured goodput agree with the formula's (docs/metrics, Goodput)?

It runs `jaxbench train` as a child process and sends it SIGKILL after a time drawn from an exponential distribution,
repeatedly until the training is done. The times are spread evenly over the distribution (a golden-ratio sequence
from a seeded start), and the formula uses the observed rate of kills. A short training has few kills: at the nominal
rate its goodput would differ by 10 to 20 % by chance alone; at the observed rate it is within 4 %.

The folder then has the training's page, `training.html`, and `faults.json` with the kills and both goodputs. The exit
code is 1 if they differ by more than 10 %, or if there were fewer than 10 kills.

Run: python -m benchmarks.goodput [--experiment=cnn] [--mtbf_s=30] [--seed=0] [--workdir=DIR] [--config....=...]
"""

from __future__ import annotations

import argparse
import dataclasses
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
from jaxbench.features.training import costs as costs_lib
from jaxbench.features.training import page as training
from jaxbench.features.training import trainings
from jaxbench.features.training.costs import Costs

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


def expected_wall_s(costs: Costs, mtbf_s: float, *, intervals: float) -> float:
    """The expected wall time in seconds of a training of `intervals` intervals, including its first start.

    It is the time of a first start that may fail, (M + D) (exp(R / M) - 1), plus the useful time over the goodput of a
    long training.
    """
    first = (mtbf_s + costs.down_s) * math.expm1(costs.restart_s / mtbf_s)
    return first + intervals * costs.useful * costs.interval_s / costs_lib.expected_goodput(costs, mtbf_s)


def expected(starts: list[trainings.Start], costs: Costs, kills: int) -> tuple[float, float]:
    """(observed seconds between kills, expected goodput at that rate).

    The rate is the number of kills over the time in which they could happen. In a short training it differs from the
    requested rate by chance. costs: with the down time that this program has seen, because the time ledger lacks starts
    that were killed early.
    """
    intervals = len({save.step for saves in trainings.kept_saves(starts) for save in saves})
    exposed_s = (starts[-1].end_ns - starts[0].begun_ns) / 1e9 - kills * costs.down_s
    seen_s = exposed_s / kills
    useful_s = intervals * costs.useful * costs.interval_s
    return seen_s, useful_s / expected_wall_s(costs, seen_s, intervals=intervals)


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
    training.write(args.workdir, console)
    console.print(f"\nPage: {args.workdir / training.PAGE}", soft_wrap=True)
    starts = trainings.read_ledger(args.workdir)
    costs = costs_lib.measured_costs(starts)
    if costs is None or kills < FEWEST:
        raise SystemExit(f"{kills} kills are too few to compare: train longer, or use a smaller --mtbf_s.")
    seen_s, share = expected(starts, dataclasses.replace(costs, down_s=down_s), kills)
    found = trainings.goodput(trainings.totals(starts))
    console.print(
        f"It was killed {kills} times, once every {seen_s:.3g} s; {args.mtbf_s:g} s on average were requested. At the "
        f"observed rate the expected goodput is {share:.1%}: measured over expected is {found / share:.2f}.",
        soft_wrap=True,
    )
    about = {"mtbf_s": args.mtbf_s, "seed": args.seed, "kills": kills, "down_s": down_s}
    write_json(args.workdir / "faults.json", {**about, "measured": found, "expected": share})
    raise SystemExit(int(abs(found / share - 1) > AGREES))


if __name__ == "__main__":
    main()
