# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Which version to compare next with the oldest one, and what follows. It neither measures nor writes.

The newest version comes first. If it is not slower, there is nothing to find. Otherwise a version counts as slow if its
ratio to the oldest one is beyond the middle between 1 and the newest one's ratio, on the logarithmic scale. So drift
and small steps in between do not stop the search, and the largest step is found. Each comparison halves the range. A
version that fails, or that no comparison can decide, is left out, and the nearest one to it is compared instead.

Each of the `comparisons` gets an equal share of the error rate, so the chance that any of them is wrong is at most
`judge.ALPHA`, also if none differs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from jaxbench.errors import UserError
from jaxbench.features.comparison import judge
from jaxbench.features.comparison.judge import CANNOT_TELL, FASTER, SAME, SLOWER, Answers
from jaxbench.statistics.bootstrap import UNKNOWN, Estimate

SLOW, AS_FAST, SKIPPED, OLDEST = "slow", "not slow", "skipped", "the oldest"


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A version that was compared with the oldest one.

    Attributes:
      verdict: SLOW, AS_FAST, CANNOT_TELL or SKIPPED; of the newest version one of `judge`, or SKIPPED.
      ratio: its value over the oldest version's, with the interval that decided.
      pairs: how often both were measured.
      reason: why it was skipped, as a clause.
      a, b: the values of the oldest version and of this one, in the unit of the metric.
    """

    verdict: str
    ratio: Estimate = UNKNOWN
    pairs: int = 0
    reason: str = ""
    a: float = math.nan
    b: float = math.nan

    @property
    def decided(self) -> bool:
        return self.verdict not in (CANNOT_TELL, SKIPPED)


@dataclass(frozen=True, kw_only=True)
class Bisection:
    """What is known. low, high: numbers of the newest version that is not slow and of the oldest slow one.

    verdict: of `judge`: SLOWER: there is a first slow version; SAME and FASTER: there is none; CANNOT_TELL.
    """

    verdict: str
    low: int
    high: int
    compared: Mapping[int, Compared] = field(default_factory=dict)

    @property
    def exact(self) -> bool:
        """Whether the first slow version is known."""
        return self.verdict == SLOWER and self.high - self.low == 1


Compare = Callable[[int, float], Compared]  # (number of a version, the ratio from which it is slow; NaN for the newest)


def comparisons(count: int) -> int:
    """The most comparisons for `count` versions, if each is decided."""
    return 1 + math.ceil(math.log2(max(1, count - 1)))


def alpha(count: int) -> float:
    """The error rate of each comparison."""
    return judge.ALPHA / comparisons(count)


def judged(answers: Answers, limit: float) -> str:
    """The verdict on a version. limit: as in `Compare`."""
    ratio = answers.overall.ratio
    if math.isnan(limit):
        return answers.overall.verdict
    if not ratio.has_interval:
        return CANNOT_TELL
    return SLOW if ratio.lo > limit else AS_FAST if ratio.hi < limit else CANNOT_TELL


def bisect(count: int, compare: Compare, known: Mapping[int, Compared]) -> Bisection:
    """Finds the first slow of `count` versions. Number 0 is the oldest.

    known: from an earlier start; what was not decided is compared again. Raises UserError if the newest version fails.
    """
    found = {number: each for number, each in known.items() if each.decided}
    newest = found.get(count - 1) or compare(count - 1, math.nan)
    found[count - 1] = newest
    if newest.verdict == SKIPPED:
        raise UserError(f"the newest version cannot be compared ({newest.reason}): choose another --to.")
    if newest.verdict != SLOWER:
        return Bisection(verdict=newest.verdict, low=0, high=count - 1, compared=found)
    limit = math.sqrt(newest.ratio.value)
    low, high = 0, count - 1
    while open_ := [number for number in range(low + 1, high) if number not in found or found[number].decided]:
        number = min(open_, key=lambda each: (abs(2 * each - low - high), each))
        if number not in found:
            found[number] = compare(number, limit)
        if found[number].verdict == SLOW:
            high = number
        elif found[number].verdict == AS_FAST:
            low = number
    return Bisection(verdict=SLOWER, low=low, high=high, compared=found)


__all__ = [
    "AS_FAST",
    "CANNOT_TELL",
    "FASTER",
    "OLDEST",
    "SAME",
    "SKIPPED",
    "SLOW",
    "SLOWER",
    "Bisection",
    "Compared",
    "alpha",
    "bisect",
    "comparisons",
    "judged",
]
