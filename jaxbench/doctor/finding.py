# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What an examination finds: a state, a sentence that names the value, and what to do about it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

State = Literal["good", "doubtful", "bad", "unknown"]


@dataclass(frozen=True)
class Finding:
    """One question and its answer. numbers: what the sentence rests on, with units in their names."""

    name: str
    state: State
    said: str
    advice: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Without the numbers that are not finite, which JSON does not have."""
        numbers = {name: value for name, value in self.numbers.items() if math.isfinite(value)}
        return {"name": self.name, "state": self.state, "said": self.said, "advice": self.advice, "numbers": numbers}


def graded(value: float, good: float, bad: float) -> State:
    """How a number that should be small is judged: good up to `good`, bad above `bad`. NaN is unknown."""
    if math.isnan(value):
        return "unknown"
    return "good" if value <= good else "bad" if value > bad else "doubtful"


def good_if(condition: bool) -> State:
    return "good" if condition else "doubtful"


def judged(name: str, state: State, said: str, advice: str, **numbers: float) -> Finding:
    """A finding whose advice is for those that are not good."""
    return Finding(name, state, said, "" if state == "good" else advice, numbers)


def worst(states: Iterable[State]) -> State:
    """bad before doubtful before good; unknown alone says nothing against a machine."""
    states = set(states)
    return "bad" if "bad" in states else "doubtful" if "doubtful" in states else "good"


def read(path: Path) -> str:
    """A system's file, without the white space around; "" where it is missing or cannot be read."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def number(path: Path) -> int | None:
    """None where the file is missing or holds no whole number ("max")."""
    text = read(path)
    return int(text) if text.isdecimal() else None
