# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The footnotes that marks need: how many measurements they stand for, what hollow means and what is crossed out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

HOLLOW = "hollow: more devices than cores; proves correctness, not speed"
FAKE = "fake devices beyond the cores prove bytes and arithmetic, never speed"
WRONG = "large black x: failed its checks"
REFUSED = "small grey x: refused by a gate, so on no line and in no headline"
PUBLISHED = "hollow, dashed grey: published by others, not measured here"
EXACT = "bytes are exact, so they are filled also on more devices than cores"


def of_marks(rows: Sequence[Any], *, fake: bool = False) -> list[str]:
    """What the marks of these rows or arms mean, where they differ from filled. fake: all devices are fake ones."""
    notes = []
    if any(row.point.oversubscribed and row.timing.step_s.known for row in rows):
        notes.append(f"hollow: more devices than cores; {FAKE}" if fake else HOLLOW)
    if any(getattr(row, "gate", "") == "refused" and row.point.check_ok is not False for row in rows):
        notes.append(REFUSED)
    if any(row.point.check_ok is False for row in rows):
        notes.append(WRONG)
    return notes


def of_times(rows: Sequence[Any], each: str, *, what: str = "", of: str = "") -> list[str]:
    """How many blocks and rounds `each` row or arm has, and what the error bars are; [] where nothing was timed.

    what: begins the note. of: what the intervals are of.
    """
    timed = [row for row in rows if row.timing.step_s.known]
    if not timed:
        return []
    blocks, rounds = (_span([getattr(row.timing, name) for row in timed]) for name in ("samples", "rounds"))
    bars = [row.timing.step_s.has_interval for row in timed if not row.point.oversubscribed]  # hollow marks have none
    meaning = f"; error bars: 95 % intervals{of}" if any(bars) else ""
    notes = [f"{what}n = {blocks} blocks in {rounds} rounds {each}{meaning}"]
    return notes if all(bars) else [*notes, "no error bar: fewer than 3 rounds"]


def cited(source: str) -> str:
    """The footnote of published series. source: who published them, and where."""
    return f"{PUBLISHED}. {source}"


def rest(shown: int, every: int, which: str) -> list[str]:
    """That the figure has fewer marks than the table; [] where it has all. which: those that it has."""
    return [f"{shown} of {every} {which}; the table has all"] if shown < every else []


def _span(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return f"{low}" if low == high else f"{low} to {high}"
