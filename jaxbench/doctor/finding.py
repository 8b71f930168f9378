# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What an examination finds: a state, a sentence that names the value, and what to do about it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

State = Literal["good", "doubtful", "bad", "unknown"]


@dataclass(frozen=True)
class Finding:
    """One question and its answer.

    Attributes:
      said: one sentence that names the value. advice: one sentence, or "".
      numbers: what the sentence rests on; units are in the names.
    """

    name: str
    state: State
    said: str
    advice: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)


def graded(value: float, *, good: float, bad: float) -> State:
    """How a number that should be small is judged: good up to `good`, bad above `bad`. NaN is unknown."""
    if math.isnan(value):
        return "unknown"
    return "good" if value <= good else "bad" if value > bad else "doubtful"


def worst(findings: Sequence[Finding]) -> State:
    """bad before doubtful before good; unknown alone says nothing against a machine."""
    states = {finding.state for finding in findings}
    return "bad" if "bad" in states else "doubtful" if "doubtful" in states else "good"


def as_json(finding: Finding) -> dict[str, Any]:
    """Without the numbers that are not finite, which JSON does not have."""
    numbers = {name: value for name, value in finding.numbers.items() if math.isfinite(value)}
    return {
        "name": finding.name,
        "state": finding.state,
        "said": finding.said,
        "advice": finding.advice,
        "numbers": numbers,
    }
