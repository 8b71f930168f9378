# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Simulated runs with worker sets that take turns; `statistics.looks` chooses the visits and the end.

Four points, one and two devices with strong and weak scaling, are visited in rounds: each visit takes 0.17 s, so a
round of all takes 0.7 s. A visit's time depends on the state of the machine at that moment, more for two devices than
for one, plus independent noise. Each set has a separate effect on each point. The machine:

  independent   no lasting disturbance
  two-state     switches between two speeds; each run draws whether one or two devices suffer more
  autoregressive   the same autocorrelation as two-state
  bursts        a neighbour is active half of the time and slows two devices three times as much as one
  neighbour     the same, and the system reports what it takes from the CPUs of two devices; the truth is without it
  drift         the machine becomes 10 % slower during the run, two devices 15 %
  heavy tails   visits follow Student's distribution with 2 degrees of freedom

Lasting disturbances last 0.2, 1 or 5 s on average.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxbench.config import BUDGET_S
from jaxbench.statistics import looks, thirds, timing, turns
from jaxbench.statistics.looks import Times

VISIT_S, STEP_S = 0.13, 0.05  # of a visit, and of the state of the machine
LASTING = ("two-state", "autoregressive", "bursts", "neighbour")
LASTS = ("0.2", "1", "5")
KINDS = (
    "independent", *(f"{kind} {d} s" for kind in LASTING[:3] for d in LASTS), "drift", "heavy tails",
    *(f"{LASTING[3]} {d} s" for d in LASTS),
)  # fmt: skip
EFFECTS = (0.0, 0.01, 0.03, 0.05)
SETS = (3, 4, 6, 8)
MOST_S = 40.0  # the largest budget for rounds
DRIFT_S = 30.0  # in which a drift makes the machine slower by one unit of noise
NAMES = ("one/strong", "two/strong", "one/weak", "two/weak")
POINTS: dict[str, dict[str, Any]] = {
    name: {
        "strategy": "s", "scaling": name[4:], "arm": "", "devices": 1 + name.startswith("two"), "point": name,
        "global_batch": 1 + (name == "two/weak"), "explains": "",
    }
    for name in NAMES
}  # fmt: skip


@dataclass(frozen=True)
class Ended:
    """A run: for each claim the error of the logarithm of its ratio, its interval's half-width, and its rounds.
    changed: its page says that a point became slower or faster during the run."""

    error: Mapping[str, float]
    half: Mapping[str, float]
    rounds: Mapping[str, int]
    spent_s: float
    changed: bool

    @property
    def hits(self) -> list[bool]:
        return [abs(self.error[name]) <= self.half[name] for name in self.error]


def states(random: np.random.Generator, kind: str, runs: int, seconds: float) -> np.ndarray:
    """The state of the machine, (runs, time)."""
    name, _, lasts = kind.removesuffix(" s").partition(" ")
    count = int(seconds / STEP_S)
    if name == "drift":
        return np.broadcast_to(np.arange(count) * STEP_S / DRIFT_S, (runs, count))
    if name not in LASTING:
        return np.zeros((runs, count))
    state, rate = np.empty((runs, count)), STEP_S / float(lasts)
    if name == "autoregressive":
        keep = math.exp(-2 * rate)
        noise = math.sqrt(1 - keep**2) * random.standard_normal((runs, count))
        state[:, 0] = random.standard_normal(runs)
        for i in range(1, count):
            state[:, i] = keep * state[:, i - 1] + noise[:, i]
        return state
    switches = random.random((runs, count)) < (1 - math.exp(-2 * rate)) / 2
    return (random.integers(2, size=(runs, 1)) + np.cumsum(switches, axis=1)) % 2


def own(random: np.random.Generator, kind: str, runs: int, visits: int) -> np.ndarray:
    """The noise of each visit, (points, runs, visits)."""
    shape = (len(NAMES), runs, visits)
    if kind == "heavy tails":
        return 0.04 * random.standard_t(2, shape)
    return (0.07 if kind == "independent" else 0.03) * random.standard_normal(shape)


def sensitivity(random: np.random.Generator, kind: str, runs: int) -> np.ndarray:
    """The slowdown of each point by the state, (points, runs): one device and two, with both scalings."""
    one, two = {"autoregressive": (0.05, 0.15), "drift": (0.10, 0.15)}.get(kind.split()[0], (0.1, 0.3))
    each = np.repeat(np.array([one, two, one, two])[:, None], runs, axis=1)
    return each * random.choice([-1.0, 1.0], runs) if kind.startswith("two-state") else each


def mean_state(kind: str, state: np.ndarray) -> float:
    """The mean over a long run; for a drift, over this run. state: (time,) of a run."""
    return float(state.mean()) if kind == "drift" else 0.5 * kind.startswith(("bursts", "two-state", "neighbour"))


def simulate(
    random: np.random.Generator, kind: str, effect: float, sets: int, runs: int, budget_s: float = BUDGET_S
) -> list[Ended]:
    """Runs that end when their intervals are narrow, or by their budget, at most MOST_S."""
    most = int(MOST_S / VISIT_S) + 4 * len(NAMES)
    state, noise = states(random, kind, runs, MOST_S + 10), own(random, kind, runs, most)
    slow = sensitivity(random, kind, runs)
    effects = effect / math.sqrt(2) * random.standard_normal((len(NAMES), runs, sets))
    shift = (random.random(runs) * 0.1).tolist()
    found = []
    for i in range(runs):
        active_s = np.concatenate([[0.0], np.cumsum(state[i])]) * STEP_S if kind.startswith("neighbour") else None
        about = state[i], noise[:, i], slow[:, i], effects[:, i], shift[i], sets, active_s
        times, look, without = _run(*about, budget_s)
        mean = mean_state(kind, state[i, int(shift[i] / STEP_S) : int((shift[i] + times.spent_s) / STEP_S)])
        mean = 0.0 if without else mean
        found.append(_ended(times, look, {name: mean * each for name, each in zip(NAMES, slow[:, i], strict=True)}))
    return found


def _run(
    state: np.ndarray, noise: np.ndarray, slow: np.ndarray, effects: np.ndarray, begun: float, sets: int,
    active_s: np.ndarray | None, budget_s: float,
) -> tuple[Times, looks.Look, bool]:  # fmt: skip
    """(the times, the last look, whether contended rounds were left out).

    noise: (points, visits). slow: (points,). effects: (points, sets). begun: the moment of the first visit.
    active_s: how long a neighbour that the system reports has been active by each moment; None: there is none.
    """
    values: dict[str, dict[int, float]] = {name: {} for name in NAMES}
    out: set[int] = set()  # the contended rounds
    moments = np.arange(len(state) + 1) * STEP_S
    visits, now, number, visited = NAMES, begun, 0, 0
    while True:
        for _ in range(sets):
            for name in visits:
                p = NAMES.index(name)
                at = state[int(now / STEP_S)]
                if active_s is not None:
                    before, after = np.interp([now, now + VISIT_S], moments, active_s)
                    at = (after - before) / VISIT_S
                    if name.startswith("two") and after - before > timing.TICKS_S * math.sqrt(2):
                        out.add(number)
                values[name][number] = slow[p] * at + noise[p, visited] + effects[p, number % sets]
                now, visited = now + VISIT_S, visited + 1
            number += 1
        if number < looks.LEAST_ROUNDS:
            continue
        workers = [(unit, str(unit % sets)) for unit in range(number)]
        left = {name: {n: value for n, value in of.items() if n not in out} for name, of in values.items()}
        without = bool(out) and all(timing.enough(len(of), (str(n % sets) for n in of)) for of in left.values())
        left = left if without else values
        times = Times(POINTS, left, workers, now - begun)
        found = looks.look_at(POINTS, times, sets=sets, budget_s=budget_s)
        if found.ended:
            return times, found, without
        visits = found.visits


def _ended(times: Times, found: looks.Look, truth: Mapping[str, float]) -> Ended:
    """truth: the logarithm of the time of each point."""
    error, half = {}, {}
    for point, base in (claim.points for claim in found.claims):
        means = times.means(times.shared(point, base), point, base)
        assert means is not None
        error[point] = means[0].value - means[1].value - (truth[point] - truth[base])
        half[point] = turns.half_width(*means)
    compared = [
        thirds.compare(times.resampling.process_of(list(of)), np.array(list(of.values())))
        for of in times.values.values()
    ]
    compared = [each for each in compared if each is not None]
    changed = any(each.differ(len(compared)) for each in compared)
    return Ended(error, half, {claim.point: claim.rounds for claim in found.claims}, times.spent_s, changed)
