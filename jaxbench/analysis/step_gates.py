# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Gates of a training step: they keep impossible times, rates, FLOP counts and efficiencies out of results.

A refused row supports no headline, fit or base, but it stays on the page with the reason. `gates.py` has the gates of
cases. docs/metrics justifies the limits.
"""

from __future__ import annotations

import math

from jaxbench.analysis import gates
from jaxbench.analysis.gates import BELOW_PEAK, FLOPS_DONE, Gate
from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.limits import SLACK
from jaxbench.analysis.points import MeasuredPoint
from jaxbench.analysis.timing import Timing
from jaxbench.analysis.utilisation import Utilisation
from jaxbench.levers import PART

NOT_ABOVE_IDEAL = "efficiency not above ideal"
# A larger efficiency is refused, because n devices do at most the work of n. A smaller per-device batch that fits in a
# cache can exceed it, but then the number describes the slow base and not the scaling.
ABOVE_IDEAL = 1.05
FAR = 2.0  # certain only above this many times a peak from another day, because the machine may have been busy then


def judge(point: MeasuredPoint, timing: Timing, use: Utilisation) -> tuple[Gate, ...]:
    """The gates of a measured row, without its base."""
    return two_clocks(point, timing), below_peak(timing.step_s, use), flops_done(point)


def two_clocks(point: MeasuredPoint, timing: Timing) -> Gate:
    """As for a case. A latency has no second clock: it includes the launch and the fence, which cancel in a slope."""
    if PART.of(point.levers) == "inference":
        return Gate(name=gates.TWO_CLOCKS, passed=None, reason="a latency has one clock")
    return gates.blocks(point, timing.clock_ratio)


def below_peak(step_s: Estimate, use: Utilisation) -> Gate:
    """Model FLOP/s are not above the devices' peak, at the slow end of the step time's interval."""
    slowest = step_s.value / (step_s.hi if step_s.has_interval else step_s.value)
    if math.isfinite(use.mfu):
        if use.mfu * slowest <= SLACK["catalogue"]:
            return Gate(name=BELOW_PEAK, passed=True)
        text = f"{100 * use.mfu:.0f} % of the {use.peak} is impossible"
        return Gate(name=BELOW_PEAK, passed=False, reason=text, certain=step_s.has_interval)
    if math.isfinite(use.measured_peak_share):
        if use.measured_peak_share * slowest <= use.measured_slack:
            return Gate(name=BELOW_PEAK, passed=True)
        wrong = "one of the two is wrong" if use.product_share.known else gates.CONTRADICTION
        far = use.measured_peak_share * slowest > FAR * use.measured_slack
        certain = step_s.has_interval and (far or use.product_share.known)  # a product of the same rounds is certain
        return Gate(name=BELOW_PEAK, passed=False, reason=f"{use.measured_note}: {wrong}", certain=certain)
    return Gate(name=BELOW_PEAK, passed=None, reason=use.note)


def flops_done(point: MeasuredPoint) -> Gate:
    """As for a case, for whole steps. FLOPs in a branch that a step may skip do not count as done."""
    if point.record is None or PART.of(point.levers) != "step":
        return Gate(name=FLOPS_DONE, passed=None, reason="unknown: the formula is of a whole step")
    passport = point.record.passport
    counts = (passport.product_flops_per_step, passport.compiler_flops_per_step)
    counted, least = max((count for count in counts if count), default=None), point.record.facts.get("least_work", 1.0)
    if counted is None or least >= 1 / gates.OVERSTATED:
        return gates.flops_done(passport.flops_per_step, counted)
    text = f"a branch of the model may skip {100 * (1 - least):.0f} % of its FLOPs in a step"
    return Gate(name=FLOPS_DONE, passed=False, reason=text)


def not_above_ideal(efficiency: Estimate) -> Gate:
    """The interval of the efficiency is not entirely above ABOVE_IDEAL."""
    if not (efficiency.has_interval and efficiency.lo > ABOVE_IDEAL):
        return Gate(name=NOT_ABOVE_IDEAL, passed=True)
    why = (
        "its base is slow (its whole batch does not fit in a cache, or another program disturbed it), "
        "or one of the two times is wrong"
    )
    return Gate(name=NOT_ABOVE_IDEAL, passed=False, reason=f"{100 * efficiency.value:.0f} %: {why}")
