# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Does a published claim hold here? The verdict on one number with its interval, against the limits of the claim.

It follows the rule of `judge`: only an interval that lies wholly on one side of a limit decides. The interval is the
ordinary one of 95 %. The claims of a paper are judged one by one, so of 20 that are just at their limit about one is
decided wrongly. A number without noise, such as bytes or counts, is its own interval.
"""

from __future__ import annotations

import math

from jaxbench.analysis.intervals import Estimate
from jaxbench.verdicts.judge import CANNOT_TELL

HOLDS, FAILS, NOT_TESTABLE = "holds here", "does not hold here", "not testable here"
NOT_MEASURED, DIVERGED = "not measured yet", "diverged"
VERDICTS = (HOLDS, FAILS, CANNOT_TELL, DIVERGED, NOT_MEASURED, NOT_TESTABLE)


def decide(found: Estimate, low: float, high: float) -> str:
    """HOLDS if the whole interval is within [low, high], FAILS if it is wholly outside on one side, else CANNOT_TELL.

    low, high: the limits of the claim in the unit of `found`; -inf or inf where it has none.
    """
    if not (found.known and found.has_interval):
        return CANNOT_TELL
    if low <= found.lo and found.hi <= high:
        return HOLDS
    return FAILS if found.hi < low or found.lo > high else CANNOT_TELL


def why(found: Estimate, low: float, high: float) -> str:
    """What a CANNOT_TELL lacks, as a sentence."""
    if not found.has_interval:
        return "The number has no interval: more rounds or seeds would give one."
    limit = low if math.isfinite(low) and found.lo < low else high
    return f"The interval contains the limit {limit:.4g}: more rounds or seeds would narrow it."
