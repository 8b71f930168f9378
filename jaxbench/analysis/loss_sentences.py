# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Sentences on waterfalls: what each factor loses, and how much of the communication is hidden."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jaxbench.analysis import bubble
from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.quantities import devices, interval, percent, seconds
from jaxbench.analysis.waterfall import (
    BUBBLE,
    CALLED,
    COMMUNICATION,
    EXTRA_WORK,
    INPUT,
    NOT_EXPLAINED,
    SHARED_MACHINE,
    SLOWEST_PROCESS,
    SMALLER_SHARE,
    STAGE_WORK,
    Factor,
    Waterfall,
)

_TO = {
    EXTRA_WORK: "to extra work", SMALLER_SHARE: "to a smaller per-device batch", SHARED_MACHINE: "to contention",
    STAGE_WORK: "to stages that do more than a K-th of the work", SLOWEST_PROCESS: "to the slowest process",
    BUBBLE: "to the pipeline's bubble", INPUT: "to waiting for input",
    COMMUNICATION: "to communication that is not hidden", NOT_EXPLAINED: "unexplained",
}  # fmt: skip
_FROM = {
    **{name: words.replace("to ", "from ", 1) for name, words in _TO.items()}, COMMUNICATION: "from communication",
    STAGE_WORK: "from stages that do less than a K-th of the work", NOT_EXPLAINED: "unexplained",
}  # fmt: skip


def sentences(waterfalls: Sequence[Waterfall]) -> list[str]:
    """One sentence for each waterfall. It starts with strategy and scaling if the run has several."""
    several = len({one.family for one in waterfalls}) > 1
    return [f"{one.family}, {sentence(one)}" if several else sentence(one) for one in waterfalls]


def sentence(one: Waterfall) -> str:
    """One waterfall: "2 devices: 81 % [78, 84]. Lost: 3 to a smaller per-device batch, 9 to contention, ..."."""
    clear = [factor for factor in one.factors if factor.clear]
    lost = [f"{points(f.lost.value)} {_TO[f.name]}{_beside(one, f)}" for f in clear if f.lost.value > 0]
    gained = [f"{points(-f.lost.value)} {_FROM[f.name]}" for f in clear if f.lost.value < 0]
    within = [f"{CALLED.get(f.name, f.name)} {_range(f.lost)}" for f in one.factors if not (f.clear or f.negligible)]
    parts = [f"{devices(one.point.devices)}: {percent(one.efficiency)}."]
    parts += [f"Lost: {', '.join(lost)}."] if lost else []
    parts += [f"Gained: {', '.join(gained)}."] if gained else []
    parts += [f"Not clear from 0: {', '.join(within)}."] if within else []
    parts += [f"Not measured: {'; '.join(one.missing)}."] if one.missing else []
    return " ".join(parts)


def _beside(one: Waterfall, factor: Factor) -> str:
    """For the bubble: its share of the step without communication, and its share by the formula for its schedule."""
    if factor.name != BUBBLE:
        return ""
    return f" ({1 - factor.value.value:.0%} of the time, {bubble.of(one.point):.0%} of the schedule)".replace("%", " %")


def points(value: float) -> str:
    """Percentage points of efficiency: "9"; below 1 with one decimal, "0.4"; or "less than 0.1"."""
    if value < 0.05:
        return "less than 0.1"
    return f"{value:.0f}" if value >= 0.95 else f"{value:.1f}"


def _range(lost: Estimate) -> str:
    """The ends of an interval: "-1 to 3"."""
    digits = 0 if max(-lost.lo, lost.hi) >= 0.95 else 1
    return f"{lost.lo:z.{digits}f} to {lost.hi:z.{digits}f}"


def communication(waterfalls: Sequence[Waterfall]) -> list[str]:
    """Sentences: the time of each step's collectives alone, how much of it is hidden, and the profile's prediction."""
    result = []
    for one in waterfalls:
        if one.communication_s.known:
            text = f"{one.point.point}: the collectives alone take {interval(one.communication_s, seconds)}"
            text += f", {percent(one.hidden)} of it hidden" if one.hidden.known else ""
            known = math.isfinite(one.predicted_s)
            text += f"; alpha and beta of the machine profile predict {seconds(one.predicted_s)}" if known else ""
            result.append(f"{text}.")
    return result
