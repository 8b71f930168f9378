# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Two devices in one process or in two: the scaling of each, and the suite's overhead with two processes.

The points are measured by the workers of `jaxbench run`, with their requests, checks, warm-up and blocks:

  alone:           one process with one device.
  one process:     one process with two devices, which share XLA's threads.
  two processes:   two processes with one device each; collectives go through the loopback.
  by hand:         the same step in a plain `jax.distributed` loop, without barrier or leader.

Every round visits all in random order. Efficiency, strong: T(alone) / (2 T), with the same global batch; weak:
T(alone) / T, with twice the batch. The goal is 0.9 strong for the better one, on two quiet cores. Overhead: T(two
processes) / T(by hand), strong; the goal is at most 1.01. Each is a median over the rounds with its 95 % bootstrap
interval. The JSON file has every time.

Run: python -m benchmarks.processes [--model=cnn] [--batch=256] [--rounds=12] [--json=processes.json]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.peers.arms import Arm
from benchmarks.peers.ratios import median_and_interval
from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.core.point import Point
from jaxbench.core.schema import PointRecord, RoundRecord
from jaxbench.core.store import write_json
from jaxbench.machine import cores
from jaxbench.machine.start import free_address
from jaxbench.processes.client import Worker
from jaxbench.processes.messages import Prepare, Round
from jaxbench.sweep.plan import worker_of

LEAST_STEP_S = 0.03  # of the step alone: in a shorter step the latency of the loopback would dominate
EFFICIENCY, OVERHEAD = 0.9, 1.01
ALONE, ONE, TWO, BY_HAND = "alone", "one process", "two processes", "by hand"
Times = dict[tuple[str, str], np.ndarray]  # (way, scaling) -> seconds per step, (rounds,)


@dataclass
class Way:
    """A point and its worker. steps: of a block."""

    point: Point
    worker: Worker
    steps: int = 0

    def prepare(self) -> None:
        """Raises SystemExit if the point does not pass its checks."""
        record = self.worker.ask(Prepare(point=self.point.to_json())).record
        assert isinstance(record, PointRecord)
        if wrong := [check.reason for check in record.checks if not check.ok]:
            raise SystemExit(f"{self.point.point} in {self.point.processes} processes: {wrong[0]}")

    def step_s(self, number: int) -> float:
        record = self.worker.ask(Round(point=self.point.point, round=number)).record
        assert isinstance(record, RoundRecord)
        self.steps = record.steps
        return statistics.median(record.block_s) / self.steps


def point(scaling: str, batch: int, devices: int, processes: int) -> Point:
    return Point(
        point=f"jit_auto/{scaling}/{devices}", strategy="jit_auto", scaling=scaling, devices=devices,
        global_batch=batch, oversubscribed=False, platform="cpu", processes=processes,
    )  # fmt: skip


def start(args: argparse.Namespace, stack: ExitStack) -> dict[tuple[str, str], Way]:
    """Every way and scaling, prepared."""
    config = config_lib.compose(args.model, discovery.load_experiment(args.model), discovery.load_preset("auto"))
    with config.unlocked():
        config.batch, config.measure.block_s, config.measure.blocks = args.batch, args.block_s, 1
    logs, order = Path(stack.enter_context(tempfile.TemporaryDirectory())), cores.free_cores()
    ways: dict[tuple[str, str], Way] = {}
    for way, devices, processes in ((ALONE, 1, 1), (ONE, 2, 1), (TWO, 2, 2)):
        name, setup = worker_of(point("strong", args.batch, devices, processes))
        setup = replace(setup, experiment=args.model, config=config.to_dict(), worker=name, order=tuple(order))
        worker = Worker(setup, logs / name)
        stack.callback(worker.close)
        for scaling, batch in (("strong", args.batch), ("weak", 2 * args.batch)):
            if way != ALONE or scaling == "strong":  # alone both have the same batch
                ways[way, scaling] = Way(point(scaling, batch, devices, processes), worker)
    for each in ways.values():
        each.prepare()
    return ways


def by_hand(args: argparse.Namespace, stack: ExitStack) -> list[Arm]:
    """The two processes of the plain loop, started together, because each waits for the other."""
    words = args.model, str(args.batch), free_address()
    arms = [Arm(BY_HAND, "processes_arm", *words, str(process), ready=False) for process in range(2)]
    for arm in arms:  # close the last one first: the first process runs the coordination service
        stack.callback(arm.close)
    for arm in arms:
        arm.hello()
    return arms


def hand_step_s(arms: list[Arm], steps: int) -> float:
    """Seconds per step of the slower process."""
    for arm in arms:
        arm.steps = steps
        arm.begin()
    return max([arm.end() for arm in arms])


def measure(args: argparse.Namespace, console: Console) -> Times:
    random = np.random.default_rng(0)
    with ExitStack() as stack:
        ways = start(args, stack)
        arms = by_hand(args, stack)
        alone, ours = ways[ALONE, "strong"], ways[TWO, "strong"]
        if (shortest := min(alone.step_s(0) for _ in range(2))) < LEAST_STEP_S:
            raise SystemExit(f"A step takes {1e3 * shortest:.3g} ms alone, less than 30: use a larger --batch.")
        ours.step_s(0)  # finds the length of a block
        hand_step_s(arms, ours.steps)
        names = [*ways, (BY_HAND, "strong")]
        times: dict[tuple[str, str], list[float]] = {name: [] for name in names}
        for number in track(range(1, args.rounds + 1), "rounds", console=console, transient=True):
            for place in random.permutation(len(names)):
                name = names[place]
                way = ways.get(name)
                times[name].append(way.step_s(number) if way else hand_step_s(arms, ours.steps))
    return {name: np.array(values) for name, values in times.items()}


def ratios(times: Times) -> dict[str, np.ndarray]:
    """The ratios of the page and the goals, (rounds,) each."""
    alone = times[ALONE, "strong"]
    found = {f"efficiency, strong, {way}": alone / (2 * times[way, "strong"]) for way in (ONE, TWO)}
    found |= {f"efficiency, weak, {way}": alone / times[way, "weak"] for way in (ONE, TWO)}
    for scaling in ("strong", "weak"):
        found[f"time of two processes over one, {scaling}"] = times[TWO, scaling] / times[ONE, scaling]
    return {**found, "overhead: two processes over by hand": times[TWO, "strong"] / times[BY_HAND, "strong"]}


def report(times: Times, console: Console) -> dict[str, float]:
    """Prints the tables and whether the goals are met. Returns the medians of the ratios."""
    steps = Table("way", "scaling", "ms per step", "rounds")
    for (way, scaling), values in times.items():
        steps.add_row(way, scaling, f"{1e3 * np.median(values):.3g}", str(len(values)))
    found, table = ratios(times), Table("ratio", "median [95 %]")
    for name, values in found.items():
        table.add_row(name, median_and_interval(values, digits=3))
    console.print(steps, table)
    medians = {name: float(np.median(values)) for name, values in found.items()}
    best = max(medians[f"efficiency, strong, {way}"] for way in (ONE, TWO))
    over = medians["overhead: two processes over by hand"]
    good, small = ("met" if one else "missed" for one in (best >= EFFICIENCY, over <= OVERHEAD))
    console.print(f"strong efficiency of the better: {best:.2f} (goal: at least {EFFICIENCY}, {good})")
    console.print(f"overhead: {over:.3f} (goal: at most {OVERHEAD}, {small})")
    return medians


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="cnn")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--block_s", type=float, default=0.2)
    parser.add_argument("--json", type=Path, help="a file for the times and the ratios")
    args = parser.parse_args()
    if args.rounds < 2:
        raise SystemExit(f"--rounds={args.rounds} has no interval: use 12.")
    if cores.available_cores() < 2:
        raise SystemExit("Devices on one core take turns: use a machine with 2 cores or more.")
    console = Console(width=None if sys.stdout.isatty() else 100, markup=False, highlight=False)
    times = measure(args, console)
    medians = report(times, console)
    if args.json:
        step_s = {", ".join(name): values.tolist() for name, values in times.items()}
        settings = {"model": args.model, "batch": args.batch, "rounds": args.rounds}
        write_json(args.json, {**settings, "step_s": step_s, "medians": medians})


if __name__ == "__main__":
    main()
