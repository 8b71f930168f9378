# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Whether a published claim holds: one number's 95 % interval against the limits of the claim.

The claims of a paper are judged separately, so of 20 true values exactly at their limit about one is decided wrongly. A
number without noise, such as a byte count, is its own interval.
"""

from __future__ import annotations

import math

from jaxbench.features.comparison.judge import CANNOT_TELL
from jaxbench.statistics.bootstrap import Estimate

HOLDS, FAILS, NOT_TESTABLE = "holds here", "does not hold here", "not testable here"
NOT_MEASURED, DIVERGED = "not measured yet", "diverged"
CLAIM_VERDICTS = (HOLDS, FAILS, CANNOT_TELL, DIVERGED, NOT_MEASURED, NOT_TESTABLE)


def decide_claim(found: Estimate, low: float, high: float) -> str:
    """HOLDS if the whole interval is within [low, high], FAILS if all of it is on one side outside, else CANNOT_TELL.

    low, high: the limits of the claim, in the unit of `found`; -inf or inf where the claim has no limit.
    """
    if not (found.known and found.has_interval):
        return CANNOT_TELL
    if low <= found.lo and found.hi <= high:
        return HOLDS
    return FAILS if found.hi < low or found.lo > high else CANNOT_TELL


def why_undecided(found: Estimate, low: float, high: float) -> str:
    """Why `decide_claim` returned CANNOT_TELL and what would help, as a sentence."""
    if not found.has_interval:
        return "The number has no interval: more rounds or seeds would give one."
    limit = low if math.isfinite(low) and found.lo < low else high
    return f"The interval contains the limit {limit:.4g}: more rounds or seeds would narrow it."
