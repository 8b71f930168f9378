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

# The A/A spread (the same program measured twice) may be this large, or this many half widths of the headline's
# interval, before the headline is refused. The ratio of two equal times is off by about the width of its interval.
NOISE, DOUBT = 0.05, 2.0
WIDEST = 0.10  # the largest half width of an efficiency's interval in a headline; a wider one says too little
# The share of a point's CPU time that others may take. With more, the efficiency is that of the remaining CPU time. The
# interval only covers variation between rounds, so it may exclude the truth.
TAKEN = 0.10


def headlines(rows: list[Row], controls: list[Control] | None = None) -> list[str]:
    """One sentence per strategy: its efficiency at the largest valid device count, with the base's absolute time.

    Without any headline, a single sentence that starts with "No headline" gives the reason. A run with too few rounds
    for an interval has measured no speed: its sentence says how many points are correct.

    controls: the A/A measurements of the same run. A strategy has no headline if an efficiency is not known to
      ± WIDEST, if other programs took more than TAKEN of its CPU time, or if its A/A spread exceeds both NOISE and
      DOUBT times the half width of the headline's interval.
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
    """The rows of one strategy that its headline names: at most one for each scaling."""
    return [row for scaling in ("strong", "weak") if (row := _largest(rows, scaling)) is not None]


def _sentence(largest: list[Row]) -> str:
    """The headline of one strategy."""
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
    """The efficiency with an interval that is too wide, as a clause; "" if there is none."""
    for row in largest:
        half = (row.efficiency.hi - row.efficiency.lo) / 2
        if half > WIDEST:
            return (
                f"the efficiency of {row.point.point}, {percent(row.efficiency)}, is only known to ±{100 * half:.0f} "
                f"points, and a headline needs ±{100 * WIDEST:.0f}; use a quieter machine or "
                f"{math.ceil((half / WIDEST) ** 2)}x as many rounds (--config.measure.budget_s)"
            )
    return ""


def _taken(largest: list[Row]) -> str:
    """The point that lost too much CPU time to others, as a clause; "" if none, if unknown, or on accelerators."""
    for row in (row for row in largest if row.point.platform == "cpu"):
        about = load.of(row.point)
        others, steal = (value if math.isfinite(value) else 0.0 for value in (about.others, about.steal))
        if others + steal > TAKEN:
            who = "other processes" if others >= steal else "the hypervisor"
            return (
                f"{who} took {100 * max(others, steal):.0f} % of the CPU time of {row.point.point} while it was timed, "
                f"so {percent(row.efficiency)} is the efficiency of the rest; a headline allows {100 * TAKEN:.0f} %"
            )
    return ""


def _noisy(control: Control | None, largest: list[Row]) -> str:
    """Why the A/A spread is too large for these efficiencies, as a clause; "" if it is not."""
    if control is None or not largest:
        return ""
    half = max((row.efficiency.hi - row.efficiency.lo) / 2 / row.efficiency.value for row in largest)
    if control.floor <= max(NOISE, DOUBT * half):
        return ""
    return (
        f"the machine was too noisy: the A/A spread (same program measured twice) is up to "
        f"{100 * control.floor:.0f} %, and the interval of {control.strategy}'s efficiency is ±{100 * half:.0f} %"
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
    """The headline of a run with fewer rounds than an interval needs by its config; "" for any other run."""
    asked = max((row.point.rounds_asked for row in rows), default=MIN_ROUNDS)
    if asked >= MIN_ROUNDS or not any(row.timing.step_s.known for row in rows):
        return ""
    points = [row.point for row in rows if row.point.status != "unsupported"]
    right = sum(point.status == "ok" and point.check_ok is True for point in points)
    return (
        f"{right} of {len(points)} points ran and match one device; a smoke run measures no speed: a confidence "
        f"interval needs {MIN_ROUNDS} rounds, and this run has {asked}."
    )


def lacking(rows: Sequence[Any]) -> str:
    """Why no row may support a claim, apart from the gates: each cause with its points; "" if some row may."""
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
    """Why a row cannot support a claim."""
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
        return f"only one valid device count ({honest.pop()}) was measured, and scaling needs two"
    return "no strategy has two valid device counts with a base that passed its checks"
