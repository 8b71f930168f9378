# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The rule of acceptance: from the shares of a reference in each round to pass, fail or cannot tell. Without jax.

A share is a measured rate over that of the reference. A unit passes if the whole interval of its mean share is above
1 - margin, and fails if the whole interval is below. Otherwise nobody can tell yet, and more rounds are measured.

The error rate is that of `compare`: ALPHA is the chance of any false alarm in a fleet. It is shared equally by all
units that are judged (Bonferroni) and by the looks: look k may spend 6 / (pi k)^2 of it, and these shares add up to 1.
The variance of a mean knows that rounds depend on each other, as everywhere (`statistics.turns`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from jaxbench.statistics import turns

ALPHA = 0.05
PASS, FAIL, CANNOT_TELL, PLAUSIBLE, WRONG, SILENT, NOT_JUDGED = (
    "pass",
    "fail",
    "cannot tell",
    "plausible",
    "wrong bits",
    "no answer",
    "not judged",
)
BAD = (FAIL, WRONG, SILENT)
EXIT = {PASS: 0, FAIL: 1, CANNOT_TELL: 3}
NOTHING = "nothing to compare it with"  # the reference of a unit that is not judged
LEAST_ROUNDS = 6  # for an interval
SEEN = 16  # how many units show how rounds depend on each other: more would only take time
FLOOR = 0.002  # the least standard deviation of a round, relative: agreement by chance must not decide


@dataclass(frozen=True)
class Interval:
    """Of a mean share, at the level that decides; rounds: that it is from. needed: rounds that would decide it, at the
    mean and spread seen so far; 0 if it is decided."""

    value: float
    lo: float
    hi: float
    rounds: int
    needed: int = 0


def level(units: int, look: int) -> float:
    """The error rate of one unit at one look. units: of the fleet that are judged. look: from 1."""
    return ALPHA * 6 / (math.pi * look) ** 2 / max(1, units)


def intervals(logs: np.ndarray, process: np.ndarray, alpha: float) -> list[Interval]:
    """The interval of each unit's mean share at level 1 - alpha.

    logs: (units, rounds) logarithms of shares in the order of time; NaN where a round has none. process: (rounds,) int,
    the process that measured each round. Without enough rounds an interval is infinite.
    """
    wider = _excess(logs, process)
    return [_interval(row[~np.isnan(row)], wider, alpha) for row in logs]


def _interval(values: np.ndarray, wider: float, alpha: float) -> Interval:
    """The interval of one unit from its rounds. wider: as from `_excess`."""
    count = len(values)
    if count < LEAST_ROUNDS:
        mean = float(np.exp(values.mean())) if count else math.nan
        return Interval(value=mean, lo=0.0, hi=math.inf, rounds=count)
    mean, influence = turns.influences(values)  # without outliers: one interrupted round is no slow device
    variance = max(float(influence @ influence) * count / (count - 1), FLOOR**2 / count)
    half = float(special.stdtrit(count - 1, 1 - alpha / 2)) * math.sqrt(wider * variance)
    return Interval(value=math.exp(mean), lo=math.exp(mean - half), hi=math.exp(mean + half), rounds=count)


def _excess(logs: np.ndarray, process: np.ndarray) -> float:
    """By how much the variance of a mean exceeds that of independent rounds."""
    full = [row for row in logs if np.count_nonzero(~np.isnan(row)) >= LEAST_ROUNDS]
    some = [full[at] for at in sorted({*np.linspace(0, len(full) - 1, min(SEEN, len(full))).astype(int)})]
    found = []
    for row in some:
        columns = np.flatnonzero(~np.isnan(row))
        inside = np.unique(process[columns], return_inverse=True)[1]
        several = len(np.unique(inside)) > 2
        found.append(turns.fit(inside, [(np.arange(len(columns)), row[columns])], [], sets=several).own)
    return float(np.mean(found)) if found else 1.0


def verdict(interval: Interval, margin: float, *, band: bool = False) -> str:
    """PASS, FAIL or CANNOT_TELL. band: the reference is the lower end of a wide band, so nothing better than
    PLAUSIBLE."""
    if interval.hi < 1 - margin:
        return FAIL
    if interval.lo > 1 - margin:
        return PLAUSIBLE if band else PASS
    return CANNOT_TELL


def needed(interval: Interval, margin: float) -> int:
    """About how many rounds would decide it; 0 if it is decided or nothing is known."""
    if verdict(interval, margin) != CANNOT_TELL or not interval.rounds or not 0 < interval.lo:
        return 0
    distance = abs(math.log(interval.value) - math.log(1 - margin))
    half = (math.log(interval.hi) - math.log(interval.lo)) / 2
    return int(min(10_000, interval.rounds * max(1.1, (half / distance) ** 2 if distance > 0 else math.inf)))


def of_fleet(logs: np.ndarray) -> np.ndarray:
    """(units, rounds) logarithms of the shares of the fleet, in which each unit is compared with the median of all in
    the
    same round; of two units, each with the other. logs: of their rates."""
    if len(logs) == 2:
        return logs - logs[::-1]
    # A column without any rate has no median, and needs none.
    empty = np.isnan(logs).all(axis=0)
    medians = np.full(logs.shape[1], np.nan)
    medians[~empty] = np.nanmedian(logs[:, ~empty], axis=0)
    return np.asarray(logs - medians)


def worst(verdicts: Sequence[str]) -> str:
    """The verdict on all of these: FAIL if any is bad, CANNOT_TELL if any is open or none was judged, else PASS."""
    if any(each in BAD for each in verdicts):
        return FAIL
    judged = [each for each in verdicts if each != NOT_JUDGED]
    return CANNOT_TELL if CANNOT_TELL in judged or not judged else PASS


def guilty(links: Sequence[tuple[str, str]], bad: Sequence[bool]) -> set[str]:
    """The ends that explain the bad links: an end with mostly bad links, else both ends of a bad link.

    links: (from, to). bad: whether each link failed.
    """
    every: dict[str, list[bool]] = {}
    for ends, slow in zip(links, bad, strict=True):
        for end in ends:
            every.setdefault(end, []).append(slow)
    mostly = {end for end, slow in every.items() if sum(slow) * 2 > len(slow)}
    found: set[str] = set()
    for ends, slow in zip(links, bad, strict=True):
        if slow:
            found |= mostly.intersection(ends) or set(ends)
    return found
