# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Compares boosted trees with LightGBM and XGBoost, and a forest, regressions and k-means with scikit-learn.

All get the same rows, drawn in the shape of Higgs, the same settings and all physical cores; jaxbench has one device
per core. Boosted trees have depth 6 and 256 bins everywhere; LightGBM grows them leaf by leaf, with at most 64. In
every repetition each library trains once, in random order; compilation and building bins are not timed. Busy cores slow
down programs that often wait for all threads, so only the quietest repetitions count; the largest share of other
processes in them is printed. CPU seconds, summed over threads, are also valid on a busy machine: with one core
(--cores=1) they contain no waiting.

At the end: the time of each part of a tree on a device with its share of the rows, each part compiled and timed alone,
from the shortest times.

Goals: boosted trees within 0.5 points of the peers' accuracy and at half of LightGBM's speed; the other answers as
in `sums_ways`. The exit code is 1 if an answer is further off.

Run: python -m benchmarks.sums_peers [--rows=100000] [--trees=50] [--repetitions=5] [--tries=10] [--csv=FILE]
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import random
import sys
import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks import sums_ways
from benchmarks.peers.ratios import median_and_interval
from benchmarks.sums_ways import DEPTH, JOBS
from jaxbench.machine import cores, start
from jaxbench.workloads.sums import adapt, trees

TEST_ROWS = 50_000


@dataclass(frozen=True)
class Timed:
    """One training. processor_s: CPU seconds, summed over its threads. others: the share of the CPUs used by other
    processes at the same time."""

    job: str
    way: str
    repetition: int
    seconds: float
    processor_s: float
    others: float
    answer: float


def drawn(seed: int, rows: int) -> np.ndarray:
    return np.asarray(adapt.higgs_like(jax.random.PRNGKey(seed), rows))


def accuracy(way: Any, *, rows: int, trees: int) -> float:
    return float(way(drawn(0, rows), trees)()(drawn(1, TEST_ROWS)))


def timed(job: str, way: str, repetition: int, train: sums_ways.Train, test: np.ndarray) -> Timed:
    before, began = cores.load_before(), time.perf_counter()
    answer = train()
    seconds, after = time.perf_counter() - began, cores.load_after()
    own, others = after.cpu_s - before.cpu_s, 0.0
    if before.busy_s is not None and after.busy_s is not None:
        others = max(0.0, after.busy_s - before.busy_s - own) / (seconds * after.cpus)
    return Timed(job, way, repetition, seconds, own, others, answer(test))


def measured(job: str, rows: np.ndarray, test: np.ndarray, args: Any) -> list[Timed]:
    """The trainings of the quietest repetitions."""
    ways = {name: way for name, way in JOBS[job].ways.items() if name == "jaxbench" or importlib.util.find_spec(name)}
    trains = {name: way(rows, args.trees) for name, way in ways.items()}
    tries = []
    for number in range(args.tries):
        order = random.sample(list(trains), len(trains))
        tries.append([timed(job, name, number, trains[name], test) for name in order])
    tries.sort(key=lambda each: max(one.others for one in each))
    return [one for each in tries[: args.repetitions] for one in each]


def of_way(found: list[Timed], way: str) -> list[Timed]:
    return sorted((one for one in found if one.way == way), key=lambda one: one.repetition)


def shown(console: Console, found: dict[str, list[Timed]], best: float) -> bool:
    """Prints the table. Returns whether all answers are near enough."""
    table = Table("job", "way", "seconds", "ours / this", "CPU seconds", "ours / this", "answer", "others took")
    near = True
    for job, of_job in found.items():
        ours = of_way(of_job, "jaxbench")
        for way in dict.fromkeys(["jaxbench", *(one.way for one in of_job)]):
            each = of_way(of_job, way)
            answer = np.median([one.answer for one in each])
            columns = []
            for field in ("seconds", "processor_s"):
                took, own = (np.array([getattr(one, field) for one in some]) for some in (each, ours))
                columns += [f"{np.median(took):.3f}", "" if way == "jaxbench" else median_and_interval(own / took, 2)]
            off = abs(answer - ours[0].answer) / (answer if JOBS[job].answer == "inertia" else 1)
            near &= bool(off <= JOBS[job].goal)
            said = f"{answer:.4g} inertia per row" if JOBS[job].answer == "inertia" else f"{100 * answer:.2f} %"
            taken = f"{100 * max(one.others for one in each):.0f} %"
            table.add_row(job, way, *columns, said, taken)
    console.print(table)
    console.print(f"The true function's accuracy: {100 * best:.2f} %.")
    console.print(f"Answers as near to the others' as they should be: {'yes' if near else 'no'}.")
    return near


def seconds_of(function: Any, *arguments: Any, times: int = 15) -> float:
    """The shortest of several compiled calls."""
    compiled = jax.jit(function).lower(*arguments).compile()
    took = []
    for _ in range(times):
        began = time.perf_counter()
        jax.block_until_ready(compiled(*arguments))
        took.append(time.perf_counter() - began)
    return min(took)


def parts_of_a_tree(rows: int) -> dict[str, float]:
    """Seconds of each part of a tree, over all its levels, for a number of rows on one device."""
    keys = jax.random.split(jax.random.PRNGKey(0), 3)
    table = trees.drawn(keys[0], rows)
    bins, target, margin = table[:, :-1], table[:, -1].astype(jnp.float32), jax.random.normal(keys[1], (rows,))
    loss, first, second = trees.derivatives("logistic", margin, target)
    both = jnp.stack([first, second], axis=1) / rows
    parts = {"derivatives": seconds_of(partial(trees.derivatives, "logistic"), margin, target)}
    parts |= {"histograms": 0.0, "best splits": 0.0, "rows to their nodes": 0.0}
    for level in range(DEPTH):
        node = jax.random.randint(keys[2], (rows,), 0, 2**level)
        sums = trees.summed(2**level, node, bins, both)
        of_node = trees.by_node(sums)
        splits = trees.best_splits(sums_ways.settings(rows), of_node)
        parts["histograms"] += seconds_of(partial(trees.summed, 2**level), node, bins, both)
        parts["best splits"] += seconds_of(partial(trees.best_splits, sums_ways.settings(rows)), of_node)
        parts["rows to their nodes"] += seconds_of(trees.descended, splits.column_N, splits.bin_N, node, bins)
    return parts


def show_parts(console: Console, rows: int, tree_s: float) -> None:
    devices = len(jax.devices())
    parts = parts_of_a_tree(rows // devices)
    parts["between devices, and waiting"] = tree_s - sum(parts.values())
    table = Table("part of a tree", "ms", "share")
    for name, took in parts.items():
        table.add_row(name, f"{1e3 * took:.2f}", f"{100 * took / tree_s:.0f} %")
    console.print(f"A tree takes at least {1e3 * tree_s:.1f} ms on {devices} devices of {rows // devices:,} rows each:")
    console.print(table)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name, default in (("rows", 100_000), ("trees", 50), ("repetitions", 5), ("tries", 10)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--cores", type=int, default=cores.available_cores(), help="default: all physical ones")
    parser.add_argument("--jobs", default=",".join(JOBS), help="of " + ", ".join(JOBS))
    parser.add_argument("--csv", type=Path, help="a file for every training")
    args, console = parser.parse_args(), Console(width=120)
    jobs = args.jobs.split(",")
    if unknown := [job for job in jobs if job not in JOBS]:
        parser.error(f"--jobs={unknown[0]} is unknown: use {', '.join(JOBS)}")
    if min(args.rows, args.trees, args.repetitions, args.cores) < 1 or args.tries < args.repetitions:
        parser.error(
            "--rows, --trees, --repetitions and --cores must be 1 or more, and --tries at least the repetitions"
        )
    start.start_fake_cpu(args.cores)  # pins this process, so that all have the same cores
    args.rows -= args.rows % args.cores
    rows, test = drawn(0, args.rows), drawn(1, TEST_ROWS)
    found = {job: measured(job, rows, test, args) for job in jobs}
    best = float(np.mean((np.asarray(adapt.true_logit(jnp.asarray(test))) > 0) == (test[:, -1] > 0)))
    console.print(
        f"{args.rows:,} rows, {args.cores} cores, {args.trees} boosted trees and {sums_ways.TREES} of a forest of "
        f"depth {DEPTH}; medians with 95 % intervals, of the quietest {args.repetitions} of {args.tries} repetitions"
    )
    near = shown(console, found, best)
    if "gbdt" in found:
        ours = of_way(found["gbdt"], "jaxbench")
        show_parts(console, args.rows, min(one.seconds for one in ours) / args.trees)
    if args.csv:
        with args.csv.open("w", newline="") as file:
            every = [asdict(one) for of_job in found.values() for one in of_job]
            writer = csv.DictWriter(file, list(every[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(every)
    return 0 if near else 1


if __name__ == "__main__":
    sys.exit(main())
