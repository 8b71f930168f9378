# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The headline of a run, or why there is none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from jaxbench.analysis import load
from jaxbench.analysis.intervals import MIN_ROUNDS
from jaxbench.analysis.quantities import devices, percent, seconds
from jaxbench.analysis.scaling import Control, Row

# The same program, measured twice, may differ by this much, or by this many times what a headline claims, before the
# headline is doubted. The ratio of two times that do not differ is off by about the width of its interval.
NOISE, DOUBT = 0.05, 2.0
WIDEST = 0.10  # half the width of an efficiency's interval: beyond it a headline would say too little
# The share of a point's CPUs that others may have. Beyond it the efficiency is that of what they left, and its
# interval, which knows of the rounds only, may exclude the truth.
TAKEN = 0.10


def headlines(rows: list[Row], controls: list[Control] | None = None) -> list[str]:
    """One sentence per strategy: its efficiency at the largest honest device count, with the base's absolute time.

    If no point allows one, a single sentence that starts with "No headline" says why. A run with too few rounds for any
    interval has measured no speed: its sentence says how many points are right.

    controls: of the same run. A strategy has no headline if an efficiency is not known to ± WIDEST, if others had more
      than TAKEN of its CPUs, or if its same program, measured twice, differs by more than NOISE and by more than DOUBT
      times the half width of the headline's interval.
    """
    if sentence := too_short(rows):
        return [sentence]
    strategies = dict.fromkeys(r.point.strategy for r in rows)
    noise = {control.strategy: control for control in controls or ()}
    claims = {name: _claims([row for row in rows if row.point.strategy == name]) for name in strategies}
    reasons = {
        name: _too_wide(largest) or _taken(largest) or _noisy(noise.get(name), largest)
        for name, largest in claims.items()
    }
    doubts = {name: reason for name, reason in reasons.items() if reason}
    sentences = [_sentence(largest) for name, largest in claims.items() if largest and name not in doubts]
    return sentences or [f"No headline: {next(iter(doubts.values()), '') or _why_not(rows)}."]


def _claims(rows: list[Row]) -> list[Row]:
    """The rows of one strategy that a headline names: at most one of each scaling."""
    return [row for scaling in ("strong", "weak") if (row := _largest(rows, scaling)) is not None]


def _sentence(largest: list[Row]) -> str:
    """The sentence about one strategy."""
    parts = []
    for row in largest:
        base = row.base
        assert base is not None
        parts.append(
            f"{row.point.scaling} efficiency {percent(row.efficiency)} on {devices(row.point.devices)} "
            f"(base {devices(base.devices)}, {seconds(row.base_step_s)} per step)"
        )
    return f"{largest[0].point.strategy}: {', '.join(parts)}."


def _too_wide(largest: list[Row]) -> str:
    """Which efficiency is hardly known, as a clause; "" if none."""
    for row in largest:
        half = (row.efficiency.hi - row.efficiency.lo) / 2
        if half > WIDEST:
            return (
                f"the efficiency of {row.point.point}, {percent(row.efficiency)}, is known to ±{100 * half:.0f} points "
                f"only, and a headline needs ±{100 * WIDEST:.0f}; a quieter machine would narrow it, and so would "
                f"{math.ceil((half / WIDEST) ** 2)} times as many rounds (--config.measure.budget_s)"
            )
    return ""


def _taken(largest: list[Row]) -> str:
    """Which point's CPUs others had, as a clause; "" if none's, if nothing is known of them, or on accelerators."""
    for row in (row for row in largest if row.point.platform == "cpu"):
        about = load.of(row.point)
        others, steal = (value if math.isfinite(value) else 0.0 for value in (about.others, about.steal))
        if others + steal > TAKEN:
            who = "other processes" if others >= steal else "the hypervisor"
            return (
                f"{who} took {100 * max(others, steal):.0f} % of the CPUs of {row.point.point} while it was timed, so "
                f"{percent(row.efficiency)} is the efficiency of what was left; a headline allows {100 * TAKEN:.0f} %"
            )
    return ""


def _noisy(control: Control | None, largest: list[Row]) -> str:
    """Why the machine was too noisy for these efficiencies, as a clause; "" if it was not."""
    if control is None or not largest:
        return ""
    half = max((row.efficiency.hi - row.efficiency.lo) / 2 / row.efficiency.value for row in largest)
    if control.floor <= max(NOISE, DOUBT * half):
        return ""
    return (
        f"the machine was too noisy: the same program, measured twice, differs by up to {100 * control.floor:.0f} %, "
        f"and the efficiency of {control.strategy} would claim ±{100 * half:.0f} %"
    )


def _largest(rows: list[Row], scaling: str) -> Row | None:
    family = [r for r in rows if r.point.scaling == scaling and r.honest]
    bases = {r.point.point for r in family}
    compared = [
        r for r in family if r.base is not None and r.base is not r.point and r.base.point in bases
        and r.efficiency.has_interval
    ]  # fmt: skip
    return max(compared, key=lambda r: r.point.devices, default=None)


def too_short(rows: Sequence[Any]) -> str:
    """The headline of a run that asked for fewer rounds than an interval needs; "" for any other."""
    asked = max((row.point.rounds_asked for row in rows), default=MIN_ROUNDS)
    if asked >= MIN_ROUNDS or not any(row.timing.step_s.known for row in rows):
        return ""
    points = [row.point for row in rows if row.point.status != "unsupported"]
    right = sum(point.status == "ok" and point.check_ok is True for point in points)
    return (
        f"{right} of {len(points)} points ran and match one device; a smoke run measures no speed: an interval needs "
        f"{MIN_ROUNDS} rounds, and it asks for {asked}."
    )


def lacking(rows: Sequence[Any]) -> str:
    """Why no row may support a claim, whatever its gates: each cause with its points; "" if some row may."""
    if not any(row.timing.step_s.known for row in rows):
        return "nothing was measured"
    if any(row.point.honest for row in rows):
        return ""
    causes: dict[str, list[str]] = {}
    for row in rows:
        causes.setdefault(_lacks(row), []).append(row.point.point)
    most = sorted(causes.items(), key=lambda cause: -len(cause[1]))
    return "; ".join(
        f"{cause} ({points[0]}{f' and {len(points) - 1} more' if len(points) > 1 else ''})" for cause, points in most
    )


def _lacks(row: Any) -> str:
    """What a row lacks for a claim."""
    point = row.point
    if point.check_ok is False:
        return "did not pass its checks"
    if point.status == "partial":
        return f"{row.timing.rounds} of {point.rounds_asked} rounds"
    if point.status != "ok":
        return str(point.status)
    return "never checked" if point.check_ok is None else "more devices than cores"


def _why_not(rows: list[Row]) -> str:
    if why := lacking(rows):
        return why
    refused = [r for r in rows if r.point.honest and r.gate == "refused"]
    if refused:
        return f"a gate refused {refused[0].point.point}, {refused[0].gate_reason}"
    honest = {r.point.devices for r in rows if r.honest}
    if len(honest) == 1:
        return f"only one honest device count ({honest.pop()}) was measured, and scaling needs two"
    return "no strategy has two honest device counts with a base that passed its checks"
