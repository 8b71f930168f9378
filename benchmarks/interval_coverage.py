# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Coverage of the 95 % intervals: the table of docs/METRICS.md, Intervals.

Simulates two points measured in the same rounds. They share a drift per round, and each has its own noise per block.
Counts how often the intervals of the first median and of the ratio contain the true value. "Plain" is the percentile
interval, "expanded" the one that jaxbench prints.
Run: python benchmarks/interval_coverage.py
"""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table

from jaxbench.analysis.intervals import Draws, estimate, weighted_median

RUNS, DRIFT, NOISE = 400, 0.02, 0.01
SHAPES = ((3, 4), (5, 2), (10, 1), (10, 2), (20, 2))


def simulate(random: np.random.Generator, rounds: int, blocks: int) -> tuple[np.ndarray, np.ndarray]:
    """Block times of two points, each (rounds x blocks,), both with the true median 1."""
    drift = random.normal(0, DRIFT, (rounds, 1))
    a, b = (np.exp(drift + random.normal(0, NOISE, (rounds, blocks))).ravel() for _ in range(2))
    return a, b


def holds(value: float, draws: np.ndarray, rounds: int) -> tuple[bool, bool]:
    """Whether the plain and the expanded interval contain the true value 1."""
    plain = np.quantile(draws, [0.025, 0.975])
    expanded = estimate(value, draws, rounds=rounds)
    return bool(plain[0] <= 1 <= plain[1]), expanded.lo <= 1 <= expanded.hi


def main() -> None:
    random = np.random.default_rng(0)
    table = Table("rounds x blocks", "median, plain", "median, expanded", "ratio, plain", "ratio, expanded")
    for rounds, blocks in SHAPES:
        hits = np.zeros(4)
        owners = np.repeat(np.arange(rounds), blocks)
        for run in range(RUNS):
            weights = Draws(range(rounds), draws=1000, seed=run).weights
            a, b = simulate(random, rounds, blocks)
            medians_a, medians_b = (weighted_median(x, owners, weights) for x in (a, b))
            hits[:2] += holds(float(np.median(a)), medians_a, rounds)
            hits[2:] += holds(float(np.median(a) / np.median(b)), medians_a / medians_b, rounds)
        table.add_row(f"{rounds} x {blocks}", *(f"{100 * hit / RUNS:.0f} %" for hit in hits))
    Console().print(table)


if __name__ == "__main__":
    main()
