# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The result of one check: a state, a sentence with the measured value, and advice.

A check computes; the table of its decorator has its sentences.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, ParamSpec

State = Literal["good", "doubtful", "bad", "unknown"]
P = ParamSpec("P")
NOT_REPORTED = "The system does not report"


@dataclass(frozen=True)
class DoctorFinding:
    """The result of one check. numbers: the values behind the sentence, with units in their names."""

    name: str
    state: State
    message: str
    advice: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)


class Result(NamedTuple):
    """What a check computes.

    Attributes:
      numbers: as in `DoctorFinding`.
      facts: what the sentence and the advice name besides the numbers.
      case: which of several sentences; "": the one of the state.
    """

    state: State
    numbers: Mapping[str, float]
    facts: Mapping[str, object] = {}
    case: str = ""


def check(
    name: str,
    subject: str = "",
    *,
    says: str,
    good: str = "",
    advice: str = "",
    cases: Mapping[str, tuple[str, str]] = {},
) -> Callable[[Callable[P, Result | None]], Callable[P, DoctorFinding]]:
    """Turns a check's result into a finding named `name`.

    Args:
      subject: of the unknown finding "The system does not report ...", which a check that returns None becomes.
      says: the sentence, with numbers and facts in braces.
      good: the sentence of the state good; "": the same.
      advice: what to do, unless the state is good.
      cases: (sentence, advice) of special cases.
    """

    def named(examine: Callable[P, Result | None]) -> Callable[P, DoctorFinding]:
        @functools.wraps(examine)
        def run(*args: P.args, **kwargs: P.kwargs) -> DoctorFinding:
            result = examine(*args, **kwargs)
            if result is None:
                return DoctorFinding(name, "unknown", f"{NOT_REPORTED} {subject}.")
            fine = result.state == "good"
            message, todo = cases.get(result.case, ((good or says) if fine else says, advice))
            facts = {**result.numbers, **result.facts}
            return DoctorFinding(
                name, result.state, message.format(**facts), "" if fine else todo.format(**facts), result.numbers
            )

        return run

    return named


def graded(value: float, good: float, bad: float) -> State:
    """Small values are good: good up to `good`, bad above `bad`. If good > bad, large values are good: good from
    `good`, bad below `bad`. NaN is unknown."""
    if math.isnan(value):
        return "unknown"
    if good > bad:  # mirrored, so that one comparison serves both
        value, good, bad = -value, -good, -bad
    return "good" if value <= good else "bad" if value > bad else "doubtful"


def good_if(condition: bool) -> State:
    return "good" if condition else "doubtful"


def worst(states: Iterable[State]) -> State:
    """The worst state, where unknown counts as good."""
    states = set(states)
    return "bad" if "bad" in states else "doubtful" if "doubtful" in states else "good"


def read(path: Path) -> str:
    """The stripped text of a system file; "" if it is missing or unreadable."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def number(path: Path) -> int | None:
    """The whole number in a system file; None if the file is missing or holds something else, such as "max"."""
    text = read(path)
    return int(text) if text.isdecimal() else None
