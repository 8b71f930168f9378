# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Waterfalls in words: what each factor loses, and the communication beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jaxbench.analysis import bubble
from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.quantities import devices, interval, percent, seconds
from jaxbench.analysis.waterfall import (
    BUBBLE,
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
    EXTRA_WORK: "to extra work", SMALLER_SHARE: "to a smaller share", SHARED_MACHINE: "to the shared machine",
    STAGE_WORK: "to stages that do more than a K-th of the work", SLOWEST_PROCESS: "to the slowest process",
    BUBBLE: "to the pipeline's bubble", INPUT: "to waiting for input",
    COMMUNICATION: "to communication that is not hidden", NOT_EXPLAINED: "that is not explained",
}  # fmt: skip
_FROM = {
    **{name: words.replace("to ", "from ", 1) for name, words in _TO.items()}, COMMUNICATION: "from communication",
    STAGE_WORK: "from stages that do less than a K-th of the work", NOT_EXPLAINED: "that is not explained",
}  # fmt: skip


def sentences(waterfalls: Sequence[Waterfall]) -> list[str]:
    """One for each waterfall, after its strategy and scaling if there are several."""
    several = len({one.family for one in waterfalls}) > 1
    return [f"{one.family}, {sentence(one)}" if several else sentence(one) for one in waterfalls]


def sentence(one: Waterfall) -> str:
    """ "2 devices: 81 % [78, 84]. Lost: 3 to a smaller share, 9 to the shared machine, ..."."""
    clear = [factor for factor in one.factors if factor.clear]
    lost = [f"{points(f.lost.value)} {_TO[f.name]}{_beside(one, f)}" for f in clear if f.lost.value > 0]
    gained = [f"{points(-f.lost.value)} {_FROM[f.name]}" for f in clear if f.lost.value < 0]
    within = [f"{f.name} {_range(f.lost)}" for f in one.factors if not (f.clear or f.negligible)]
    parts = [f"{devices(one.point.devices)}: {percent(one.efficiency)}."]
    parts += [f"Lost: {', '.join(lost)}."] if lost else []
    parts += [f"Gained: {', '.join(gained)}."] if gained else []
    parts += [f"Not clear from 0: {', '.join(within)}."] if within else []
    parts += [f"Not measured: {'; '.join(one.missing)}."] if one.missing else []
    return " ".join(parts)


def _beside(one: Waterfall, factor: Factor) -> str:
    """Of a bubble its share of the step without communication, and the closed form of its schedule."""
    if factor.name != BUBBLE:
        return ""
    return f" ({1 - factor.value.value:.0%} of the time, {bubble.of(one.point):.0%} of the schedule)".replace("%", " %")


def points(value: float) -> str:
    """Points of efficiency: "9", below 1 with a digit, "less than 0.1"."""
    if value < 0.05:
        return "less than 0.1"
    return f"{value:.0f}" if value >= 0.95 else f"{value:.1f}"


def _range(lost: Estimate) -> str:
    """ "-1 to 3"."""
    digits = 0 if max(-lost.lo, lost.hi) >= 0.95 else 1
    return f"{lost.lo:z.{digits}f} to {lost.hi:z.{digits}f}"


def communication(waterfalls: Sequence[Waterfall]) -> list[str]:
    """How long the collectives of each step take alone, how much of that is hidden, and what the card predicts."""
    result = []
    for one in waterfalls:
        if one.communication_s.known:
            text = f"{one.point.point}: the collectives alone take {interval(one.communication_s, seconds)}"
            text += f", {percent(one.hidden)} of it hidden" if one.hidden.known else ""
            known = math.isfinite(one.predicted_s)
            text += f"; alpha and beta of the machine's card predict {seconds(one.predicted_s)}" if known else ""
            result.append(f"{text}.")
    return result
