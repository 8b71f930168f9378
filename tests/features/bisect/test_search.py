# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The search on known ratios: which versions it compares, and what it concludes."""

from __future__ import annotations

import math

import pytest
from thin import thin

from jaxbench.errors import UserError
from jaxbench.features.bisect import search
from jaxbench.features.bisect.search import AS_FAST, CANNOT_TELL, FASTER, SAME, SKIPPED, SLOW, SLOWER, Compared
from jaxbench.statistics.bootstrap import Estimate


def measuring(ratios, *, skipped=(), width=0.01):
    """A comparison of versions with these ratios to number 0; it counts the calls."""
    asked = []

    def compare(number, limit):
        asked.append(number)
        if number in skipped:
            return Compared(verdict=SKIPPED, reason="it does not install")
        value = ratios[number]
        ratio = Estimate(value=value, lo=value - width, hi=value + width)
        if math.isnan(limit):
            verdict = SLOWER if ratio.lo > 1.02 else FASTER if ratio.hi < 0.98 else SAME
        else:
            verdict = SLOW if ratio.lo > limit else AS_FAST if ratio.hi < limit else CANNOT_TELL
        return Compared(verdict=verdict, ratio=ratio, pairs=6)

    return compare, asked


@pytest.mark.parametrize("count", thin([(2,), (3,), (7,), (16,), (100,)]))
def test_each_place_of_a_step_is_found_in_few_comparisons(count):
    (count,) = count if isinstance(count, tuple) else (count,)
    for first in range(1, count):
        compare, asked = measuring([1.0] * first + [1.5] * (count - first))
        found = search.bisect(count, compare, {})
        assert found.exact and (found.low, found.high) == (first - 1, first)
        assert len(asked) == len(set(asked)) <= search.comparisons(count)


def test_drift_and_a_smaller_step_do_not_hide_the_largest():
    ratios = [1.0, 1.01, 1.05, 1.06, 1.07, 1.45, 1.46, 1.5]
    found = search.bisect(len(ratios), measuring(ratios)[0], {})
    assert (found.low, found.high, found.exact) == (4, 5, True)


@pytest.mark.parametrize(("last", "verdict"), [(1.0, SAME), (0.8, FASTER)])
def test_without_a_slower_end_there_is_one_comparison(last, verdict):
    compare, asked = measuring([1.0, 1.5, 1.0, last])
    found = search.bisect(4, compare, {})
    assert found.verdict == verdict and asked == [3] and not found.exact


def test_a_version_that_fails_is_passed_over_and_the_rest_is_a_range():
    ratios = [1.0] * 6 + [1.5] * 6
    for skipped in range(1, 11):
        found = search.bisect(12, measuring(ratios, skipped={skipped})[0], {})
        assert found.exact or skipped in (found.low + 1, found.high - 1)
        assert found.low < 6 <= found.high and found.high - found.low <= 2
    found = search.bisect(12, measuring(ratios, skipped=set(range(1, 11)))[0], {})
    assert not found.exact and (found.low, found.high) == (0, 11) and found.verdict == SLOWER


def test_a_version_in_the_middle_of_two_steps_makes_a_range():
    middle = math.sqrt(1.5)
    found = search.bisect(3, measuring([1.0, middle, 1.5])[0], {})
    assert (found.low, found.high, found.exact) == (0, 2, False) and found.compared[1].verdict == CANNOT_TELL


def test_the_newest_version_must_run():
    with pytest.raises(UserError, match="^the newest version cannot be compared .it does not install.: choose another"):
        search.bisect(3, measuring([1.0] * 3, skipped={2})[0], {})


def test_what_is_known_is_not_compared_again():
    ratios = [1.0] * 5 + [1.5] * 5
    compare, asked = measuring(ratios)
    whole = search.bisect(10, compare, {})
    again, more = measuring(ratios)
    assert search.bisect(10, again, dict(whole.compared)) == whole and not more
    undecided = {**whole.compared, 4: Compared(verdict=SKIPPED, reason="no network")}
    assert search.bisect(10, again, undecided).exact and more == [4]


def test_the_error_rate_is_shared():
    assert [search.comparisons(count) for count in (2, 3, 5, 9, 17)] == [1, 2, 3, 4, 5]
    assert search.alpha(9) * search.comparisons(9) == pytest.approx(0.05)
