# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The result of one check: a state, a sentence that names the value, and advice."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

State = Literal["good", "doubtful", "bad", "unknown"]


@dataclass(frozen=True)
class Finding:
    """The result of one check. numbers: the values behind the sentence, with units in their names."""

    name: str
    state: State
    message: str
    advice: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Without NaN and infinity, which JSON does not have."""
        numbers = {name: value for name, value in self.numbers.items() if math.isfinite(value)}
        return {"name": self.name, "state": self.state, "said": self.message, "advice": self.advice, "numbers": numbers}


def graded(value: float, good: float, bad: float) -> State:
    """The state of a number that should be small: good up to `good`, bad above `bad`, unknown for NaN."""
    if math.isnan(value):
        return "unknown"
    return "good" if value <= good else "bad" if value > bad else "doubtful"


def good_if(condition: bool) -> State:
    return "good" if condition else "doubtful"


def judged(name: str, state: State, message: str, advice: str, **numbers: float) -> Finding:
    """A finding that gives its advice only if it is not good."""
    return Finding(name, state, message, "" if state == "good" else advice, numbers)


def worst(states: Iterable[State]) -> State:
    """bad before doubtful before good; unknown counts as good."""
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
