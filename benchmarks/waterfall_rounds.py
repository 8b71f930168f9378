# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Simulated factors of a waterfall, which have only some of the rounds of a run.

A run has eight turns of six sets. Each round visits the four points of two efficiencies, as in `dense_rounds`, with the
same noise. Some rounds also visit the parts `alone` and `local` of the strong efficiency, as `sweep` does: at first in
three sets, in the second and third turn, then in later turns. More than 18 rounds have parts only where the number of
rounds is fixed, and then in all sets.

The machine slows down `alone` as much as one device, and `local` by the mean of what it does to one and two devices.
The factors: a smaller batch (one / alone), contention (alone / local), communication (local / two), and unexplained:
the ratio of one and two devices in all rounds, over their ratio in the rounds of the parts. The truth of the last is 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks import dense_rounds
from benchmarks.dense_rounds import NAMES, POINTS, STEP_S, VISIT_S
from jaxbench.statistics import turns
from jaxbench.statistics.bootstrap import MIN_ROUNDS
from jaxbench.statistics.looks import Times
from jaxbench.statistics.turns import Mean

ROUNDS = (4, 5, 6, 9, 12, 18, 30)  # of the parts
EFFECTS = {
    "0 %": (0.0, 0.0),
    "3 %": (0.03, 0.03),
    "3 % of the parts": (0.0, 0.03),
}  # between processes: of points, parts
KINDS = tuple(kind for kind in dense_rounds.KINDS if "0.2" not in kind and not kind.startswith("neighbour"))
SETS, ABLATION_SETS, TURNS = 6, 3, 8
WHOLE = ("one/strong", "two/strong")
PARTS = ("alone", "local")
# The turns in which three sets visit the parts, in order of time, but the last two only if a factor needs them. After
# them come all further sets.
VISITED = (1, 2, 4, 5, 7, 6)
MOST_S = 60.0


@dataclass(frozen=True)
class Cell:
    """Factors of simulated runs: whether each interval contains the truth, and its half-width over that of the interval
    with the factor of the whole run."""

    hits: list[bool]
    narrower: list[float]


def places(count: int) -> list[int]:
    """The numbers of the `count` rounds that visit the parts, in order of time."""
    three = [SETS * turn + number for turn in VISITED for number in range(ABLATION_SETS)]
    others = [SETS * turn + number for turn in VISITED for number in range(ABLATION_SETS, SETS)]
    return sorted((three + others)[:count])


def simulate(random: np.random.Generator, kind: str, effect: str, runs: int) -> dict[int, Cell]:
    """By the number of rounds of the parts. effect: of `EFFECTS`."""
    names, number = (*NAMES, *PARTS), SETS * TURNS
    state = dense_rounds.states(random, kind, runs, MOST_S)
    slow = dense_rounds.sensitivity(random, kind, runs)  # (points, runs)
    slow = np.concatenate([slow, slow[:1], (slow[:1] + slow[1:2]) / 2])
    noise = np.concatenate([dense_rounds.own(random, kind, runs, number) for _ in range(2)])[: len(names)]
    size = np.repeat(EFFECTS[effect], (len(NAMES), len(PARTS)))[:, None, None] / np.sqrt(2)
    effects = size * random.standard_normal((len(names), runs, SETS))
    cells = {count: Cell([], []) for count in ROUNDS}
    with_parts = set(places(max(ROUNDS)))
    for i in range(runs):
        values: dict[str, dict[int, float]] = {name: {} for name in names}
        now = 0.0
        for n in range(number):
            for name in names if n in with_parts else NAMES:
                p = names.index(name)
                values[name][n] = slow[p, i] * state[i, int(now / STEP_S)] + noise[p, i, n] + effects[p, i, n % SETS]
                now += VISIT_S
        times = Times(POINTS, {name: values[name] for name in NAMES}, [(n, str(n % SETS)) for n in range(number)], now)
        mean = dense_rounds.mean_state(kind, state[i, : int(now / STEP_S)])
        truth = dict(zip(names, mean * slow[:, i], strict=True))
        for count, cell in cells.items():
            _judge(cell, times, values, truth, places(count))
    return cells


def _judge(
    cell: Cell, times: Times, values: dict[str, dict[int, float]], truth: dict[str, float], at: list[int]
) -> None:
    """Adds the factors of one run to the cell. truth: the logarithm of the time of each point. at: the rounds."""
    if len(at) < MIN_ROUNDS:
        return
    by_run, by_own = (_factors(times, values, at, own=own) for own in (False, True))
    expected = [truth[top] - truth[bottom] for top, bottom in _pairs()] + [0.0]
    for (top, bottom), (run_top, run_bottom), true in zip(by_own, by_run, expected, strict=True):
        half = turns.half_width(top, bottom)
        cell.hits.append(bool(abs(top.value - bottom.value - true) <= half))
        cell.narrower.append(half / turns.half_width(run_top, run_bottom))


def _pairs() -> list[tuple[str, str]]:
    return [("one/strong", "alone"), ("alone", "local"), ("local", "two/strong")]


def _factors(
    times: Times, values: dict[str, dict[int, float]], at: Sequence[int], *, own: bool
) -> list[tuple[Mean, Mean]]:
    """The means of the top and the bottom of each ratio. own: with the factor of its own rounds."""
    resampling, every = times.resampling, list(times.resampling.units)
    here = resampling.at(at) if own else resampling
    part = {name: here.mean(np.array([values[name][n] for n in at]), at) for name in (*WHOLE, *PARTS)}
    whole = {name: resampling.mean(np.array([values[name][n] for n in every]), every) for name in WHOLE}
    of_all, of_some = (
        Mean(value=each["one/strong"].value - each["two/strong"].value,
             loadings=each["one/strong"].loadings - each["two/strong"].loadings)
        for each in (whole, part)
    )  # fmt: skip
    return [*((part[top], part[bottom]) for top, bottom in _pairs()), (of_all, of_some)]
