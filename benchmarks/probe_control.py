# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Would correcting by the speed probe make intervals narrower? A simulation for docs/STATISTICS.md, Dense rounds.

Each visit has a probe, a small product just before its block. Its time depends on the state of the machine, with 3 %
noise. The logarithm of a point's time is then corrected by the distance of the probe from the mean of all probes of the
run, times a coefficient of the point from a least-squares fit. (Relative to the mean of the point's own probes, the
correction would not change the ratio, only narrow its interval.) Printed for runs of 40 s, four sets and no process
effects: the standard deviation of the errors and the half-widths, both relative to those without the correction; the
coverage; and the change of the efficiency if the same probe is 2 % slower in the process of two devices.

Run: python -m benchmarks.probe_control [--runs=150]
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from rich.console import Console

from benchmarks import dense_rounds as simulation
from jaxbench.statistics import turns

SETS, ROUNDS, NOISE, SEEN, SLOWER = 4, 56, 0.03, 0.1, 0.02


def corrected(logs: np.ndarray, probes: np.ndarray) -> np.ndarray:
    """(points, rounds) at the mean speed of the run."""
    off = probes - probes.mean()
    slopes = [np.cov(each, probe)[0, 1] / probe.var(ddof=1) for each, probe in zip(logs, probes, strict=True)]
    return logs - np.array(slopes)[:, None] * off


def ratio(logs: np.ndarray) -> tuple[float, float]:
    """The logarithm of the ratio of the last two points, and the half-width of its interval."""
    columns = np.arange(ROUNDS)
    layout = turns.fit(columns % SETS, [(columns, each) for each in logs], [(1, 0), (3, 2)], sets=True)
    one, two = (layout.mean(columns, each) for each in logs[2:])
    return two.value - one.value, turns.half_width(two, one)


def study(kind: str, runs: int) -> tuple[float, ...]:
    random = np.random.default_rng(simulation.KINDS.index(kind))
    state = simulation.states(random, kind, runs, 50.0)
    noise, slow = simulation.own(random, kind, runs, ROUNDS), simulation.sensitivity(random, kind, runs)
    at = ((4 * np.arange(ROUNDS)[None, :] + np.arange(4)[:, None]) * simulation.VISIT_S / simulation.STEP_S).astype(int)
    found = []
    for i in range(runs):
        seen = state[i][at]
        logs = slow[:, i, None] * seen + noise[:, i]
        probes = SEEN * seen + NOISE * random.standard_normal(seen.shape)
        tilted = probes + SLOWER * np.array([0, 1, 0, 1])[:, None]
        truth = (slow[3, i] - slow[2, i]) * simulation.mean_state(kind, state[i, : at.max()])
        (plain, wide), (value, half), (off, _) = map(ratio, (logs, corrected(logs, probes), corrected(logs, tilted)))
        found.append((plain - truth, wide, value - truth, half, off - value))
    error, wide, other, half, bias = np.array(found).T
    return (
        other.std() / error.std(),
        np.median(half / wide),
        float(np.mean(abs(other) <= half)),
        math.exp(-bias.mean()) - 1,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=150)
    runs, console = parser.parse_args().runs, Console(width=160)
    console.print("| noise | errors | half-widths | coverage | bias from a slower probe |\n|---|---|---|---|---|")
    for kind in simulation.KINDS:
        error, half, cover, bias = study(kind, runs)
        row = f"| {kind} | x {error:.2f} | x {half:.2f} | {100 * cover:.0f} % | {100 * bias:+.1f} % |"
        console.print(row, highlight=False)


if __name__ == "__main__":
    main()
