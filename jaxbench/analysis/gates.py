# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Gates keep impossible numbers out of headlines.

Each gate answers one question about one row, from its record, its clocks and its ceilings. A refused row stays in the
records with the reason. docs/metrics justifies the limits. A `Load` says whether other programs used a point's CPUs
while it was timed: docs/metrics, "Load".
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from jaxbench.analysis import quantities
from jaxbench.analysis.points import MeasuredPoint
from jaxbench.analysis.quantities import seconds
from jaxbench.analysis.roofline import FLOP, SLACK, Demand, Utilisation
from jaxbench.analysis.step_work import BEYOND, Stated
from jaxbench.core.schema import PointRecord, RoundRecord
from jaxbench.digits import digits
from jaxbench.levers import PART
from jaxbench.statistics import core_speeds
from jaxbench.statistics.bootstrap import Estimate
from jaxbench.statistics.timing import LoopTime, Timing, taken_by, throttled, wall_s

LEAST_CPU_SHARE = 0.95  # a process with one CPU and one busy device is contended below this CPU time / wall time

# Kinds of causes, in the order in which they are named.
QUOTA, TAKEN, SLOW_CORE, STARVED = "quota", "taken", "slow core", "starved"
TWO_CLOCKS = "two clocks agree"  # these names are in the `gate_reason` of records and tables
BELOW_PEAK = "not above peak"
ROOFLINE = "not below roofline"
POSITIVE = "not negative"
INPUTS = "inputs not all zeros"
ITSELF = "the collective it is called"
RIGHT = "right result"
BY_ITSELF = "nothing from the host"
HOST = "host"  # the verdict of measure/check.py
FLOPS_DONE = "FLOPs in the program"
# An iteration of the loop may take this many times as long as a call, or longer by this many calls of an empty program.
# An iteration has overhead of its own. It is larger on an accelerator, because the host evaluates the loop condition.
LOOP_SLOWER = 1.25
ITERATION_LAUNCHES = {"cpu": 1.0}
ITERATION_LAUNCHES_ELSEWHERE = 4.0
# An iteration may take as little as this share of a call, or it may be shorter by CALL_LAUNCHES calls of an empty
# program for each device of the call. Waking threads took up to 11 such calls on the machines where this was measured.
LOOP_FASTER = 0.75
# The same share for a collective. A loop keeps its devices awake and in step: an iteration that did all of its work was
# seen to take only 0.3 of a call. An iteration takes almost no time if its work was hoisted.
LOOP_FASTER_TOGETHER = 0.25
CALL_LAUNCHES = 15.0
# Valid rows may exceed these ratios, and the ratios for blocks below, by these factors: oversubscribed rows, because
# their devices wait for each other, and rows with too few rounds for an interval, because one disturbed round may
# decide.
CROWDED = 2.0
FEW_ROUNDS = 4.0  # wide, because there is no interval to say how wide
# An iteration of an empty program takes no time: a slope below this share of a launch counts as zero, with either sign.
NOTHING = 0.01
# Without a loop, the second clock is the slope between blocks of K and 2 K calls.
BLOCKS_SLOWER = 1.5
BLOCKS_FASTER = 0.5
# The stated FLOPs may exceed the FLOPs in the program by this factor, because a compiler may simplify an operation.
OVERSTATED = 2.0
CONTRADICTION = "this number or the machine profile is wrong ('jaxbench machine' makes a new profile)"
NOT_ABOVE_IDEAL = "efficiency not above ideal"
# A larger efficiency is refused, because n devices do at most the work of n. A smaller per-device batch that fits in a
# cache can exceed it, but then the number describes the slow base and not the scaling.
ABOVE_IDEAL = 1.05
# Why a gate refused a row, cannot tell, or has a remark, with the numbers that decided.
REASONS = {
    "another collective": "the compiler used {used} instead of {named}",
    "not waited for": "the calls were not waited for: {clocks}",
    "work removed": "an iteration takes {percent:.2g} % of the time of a call, so its work was removed or hoisted, or "
    "the calls wait for something else: {clocks}",
    "loop too short": "unknown: the loop is too short to be timed ({clocks})",
    "launch-bound": "launch-bound: {percent:.0f} % of the time per call is launch overhead ({clocks})",
    "two clocks": "a call takes {call}, an iteration of the loop {iteration}",
    "one clock": "unknown: there is no second clock",
    "a latency": "a latency has one clock",
    "blocks": "one more call costs {percent:.0f} % of the time per call (blocks of K and 2 K calls)",
    "above peak": "{rate} is {percent:.0f} % of {limit}: {so}",
    "below roofline": "a call takes {took}, its {work} need {needed}",
    "no peak": "no catalogued or measured peak: {why}",
    "no work": "it states neither FLOPs nor bytes",
    "negative iteration": "an iteration of the loop takes {value} s",
    "negative call": "one more call takes {value} s",
    "negative rate": "{value} {unit}",
    "FLOPs not counted": "unknown: the compiler cannot count its FLOPs",
    "FLOPs missing": "{stated:.3g} FLOPs by formula, but the compiled program has {counted:.3g}",
    "FLOPs skipped": "a branch of the model may skip {percent:.0f} % of its FLOPs in a step",
    "FLOPs of a part": "unknown: the formula is of a whole step",
    "FLOPs of a library": "unknown: the program calls a library without a count of its FLOPs",
    "no compile report": "unknown: there is no compile report",
    "no inputs": "unknown: there is no record of its inputs",
    "zeros": "every input value is zero",
    "no result": "unknown: there is no record of its result",
    "wrong values": "{count} values are wrong",
    "not known": "the expected result is not known",
    "above the catalogue": "{percent:.0f} % of the {peak} is impossible",
    "above a product": "{share}: {so}",
    "uncertain product": "cannot tell, because {why}: {share}",
    "interval reaches": "the interval of this share reaches possible values",
    "no faster than a block": "the step is not faster than the product's best block",
    "product disturbed": "the product was disturbed ({why})",
    "above ideal": "{percent:.0f} %: its base is slow (its whole batch does not fit in a cache, or another program "
    "disturbed it), or one of the two times is wrong",
    # Causes of a contended round.
    SLOW_CORE: "{who} was {amount:.1f} times slower than at its best (another tenant of its core, or a lower clock)",
    STARVED: "{who} ran for only {percent:.0f} % of the time",
    QUOTA: "{who} stopped it for {percent:.0f} % of its CPUs' time",
    TAKEN: "{who} took {percent:.0f} % of its CPUs",
}
FAR = 2.0  # certain only above this many times a peak from another day, because the machine may have been busy then


@dataclass(frozen=True, kw_only=True)
class Load:
    """The load of a point over its rounds; NaN: the system does not report it, or the records are older."""

    contended: float = math.nan  # the share of rounds with a recorded load that were contended
    cpu_share: float = math.nan  # median over rounds of processor time / wall time: about 1 for each busy device
    # The share of the CPUs' time in all rounds that other processes and the hypervisor took. A median would hide a
    # neighbour that is active in a third of the rounds.
    others: float = math.nan
    steal: float = math.nan


def load_of(point: MeasuredPoint, rounds: Sequence[RoundRecord] | None = None) -> Load:
    """The load of a point: a training step or a case. rounds: some of its rounds; None: all."""
    timed = [each for each in (point.every_round if rounds is None else rounds) if each.cpu_s]
    if not timed:
        return Load()
    return Load(
        contended=float(np.mean([bool(why_contended(point, each)) for each in timed])),
        cpu_share=float(np.median([sum(each.cpu_s) / wall_s(each) for each in timed])),
        others=_taken([each for each in timed if each.others_s], "others_s"),
        steal=_taken([each for each in timed if each.steal_s], "steal_s"),
    )


@dataclass(frozen=True)
class Cause:
    """Why a round counts as contended.

    kind: QUOTA to STARVED. who: what rounds with the same cause have in common, as the subject of a clause.
    amount: a share of the CPUs' time; of a slow core, how many times as slow as at its best.
    """

    kind: str
    who: str
    amount: float

    @property
    def clause(self) -> str:
        return REASONS[self.kind].format(who=self.who, amount=self.amount, percent=100 * self.amount)


def cause(point: MeasuredPoint, record: RoundRecord) -> Cause | None:
    """Why a round counts as contended; None if it does not, or if its load is unknown.

    A round on an accelerator never does, because its processor only waits.
    """
    if point.platform != "cpu" or not record.cpu_s:
        return None
    stopped, slow = throttled(record), core_speeds.slow_cores(record, core_speeds.best(point.every_round))
    quota = [Cause(QUOTA, f"a CPU quota of {record.quota:.1f} cores", stopped)] if stopped else []
    taken = [Cause(TAKEN, who, share) for who, share in taken_by(record).items()]
    slowed = [Cause(SLOW_CORE, f"CPU {cpu}", times) for cpu, times in slow.items()]
    return next(chain(quota, taken, slowed, _starved(point, record)), None)


def _starved(point: MeasuredPoint, record: RoundRecord) -> Iterator[Cause]:
    """A process with one CPU and one device that waits for no input or copy should always be busy."""
    share = sum(record.cpu_s) / wall_s(record)
    fed = point.levers.get("input", "device") != "device" or point.source
    if record.cpus == 1 and point.devices == 1 and not fed and share < LEAST_CPU_SHARE:
        yield Cause(STARVED, "its process", share)


def why_contended(point: MeasuredPoint, record: RoundRecord) -> str:
    """`cause` as a clause; "" without one."""
    found = cause(point, record)
    return found.clause if found is not None else ""


def _taken(rounds: Sequence[RoundRecord], name: str) -> float:
    """A share of the CPUs' time of all these rounds; NaN: unknown. Ticks may make it a little less than 0."""
    cpu_s = sum(wall_s(each) * each.cpus for each in rounds)
    return max(0.0, sum(sum(getattr(each, name)) for each in rounds) / cpu_s) if cpu_s else math.nan


@dataclass(frozen=True, kw_only=True)
class Gate:
    """One question about a row, with its answer."""

    name: str
    passed: bool | None  # None: unknown, which refuses nothing but is reported
    reason: str = ""
    launch_bound: bool = False  # it passed, but the launch takes a large part of a call's time
    # It refused for a reason that noise cannot cause: a count, or a whole interval beyond a limit that is not itself a
    # measurement from another time. Then the run is wrong, and its exit code says so.
    certain: bool = False

    @classmethod
    def of(
        cls,
        name: str,
        passed: bool | None,
        cause: str,
        *,
        launch_bound: bool = False,
        certain: bool = False,
        **facts: object,
    ) -> Gate:
        """With one of the REASONS. facts: what it names."""
        reason = REASONS[cause].format(**facts)
        return cls(name=name, passed=passed, reason=reason, launch_bound=launch_bound, certain=certain)


def impossible(gates: tuple[Gate, ...]) -> tuple[Gate, ...]:
    """The gates that refused for a reason that noise cannot cause."""
    return tuple(gate for gate in gates if gate.passed is False and gate.certain)


def point_gates(point: MeasuredPoint, timing: Timing, loop: LoopTime, demands: tuple[Demand, ...]) -> tuple[Gate, ...]:
    """All gates of a measured row, in the order in which they are shown.

    demands: the row's rates, each with its ceiling (`roofline.demands`).
    """
    return (
        two_clocks(point, timing, loop),
        below_peak(demands),
        roofline(timing.step_s, demands),
        call_flops_done(point),
        positive(point, timing, loop, demands),
        inputs(point),
        itself(point),
        right(point),
        by_itself(point),
    )


def verdict(gates: tuple[Gate, ...]) -> tuple[str, str]:
    """("refused", all reasons) or ("passed", the most useful remark: launch-bound first, then an unknown)."""
    refused = [f"{gate.name}: {gate.reason}" for gate in gates if gate.passed is False]
    if refused:
        return "refused", "; ".join(refused)
    bound = [gate.reason for gate in gates if gate.launch_bound]
    return "passed", next(iter([*bound, *(gate.reason for gate in gates if gate.passed is None)]), "")


def itself(point: MeasuredPoint) -> Gate:
    """The compiled program has the named collective. A compiler may replace it with another that sends other bytes, and
    then the bandwidth formula is wrong."""
    kinds = point.case.collectives if point.case is not None else ()
    if point.family != "collective" or not kinds or kinds == (point.impl,):  # (): an older record, which does not say
        return Gate(name=ITSELF, passed=True)
    return Gate.of(ITSELF, False, "another collective", used=" and ".join(kinds), named=point.impl)


def two_clocks(point: MeasuredPoint, timing: Timing, loop: LoopTime) -> Gate:
    """Fenced blocks of calls against the slope of a loop in which each iteration depends on the previous one.

    If calls are faster than the loop, the clock did not wait for them. If the loop is faster than the calls by more
    than the overhead of a call, the compiler removed work or hoisted it out of the loop.
    """
    if not loop.iteration_s.known:  # NumPy, plain Python and transfers cannot run inside a jitted loop
        return blocks(point, timing.clock_ratio)
    call_s, iteration_s, launch_s = timing.step_s.value, loop.iteration_s.value, _launch_s(point)
    # Both limits compare a whole interval, so noise alone refuses no row.
    lo, hi = _ends(loop.ratio)
    text = REASONS["two clocks"].format(call=seconds(call_s), iteration=seconds(iteration_s))
    launches = ITERATION_LAUNCHES.get(point.platform, ITERATION_LAUNCHES_ELSEWHERE)
    tolerance = max(CROWDED if point.oversubscribed else 1.0, 1.0 if loop.ratio.has_interval else FEW_ROUNDS)
    # Beyond the ratio and beyond the launches: for tiny work the ratio is large, and for large work a few launches are.
    if lo > LOOP_SLOWER * tolerance and (lo - 1) * call_s > launches * launch_s:
        return Gate.of(TWO_CLOCKS, False, "not waited for", clocks=text)
    lower_limit = LOOP_FASTER_TOGETHER if point.family == "collective" else LOOP_FASTER
    if hi < lower_limit / tolerance and (1 - hi) * call_s > CALL_LAUNCHES * launch_s:
        return Gate.of(TWO_CLOCKS, False, "work removed", percent=100 * max(0.0, loop.ratio.value), clocks=text)
    # Nothing is refused here: a loop of tiny work can end up within the noise of its own launch.
    if min(loop.iteration_s.value, _ends(loop.iteration_s)[0]) <= 0:
        return Gate.of(TWO_CLOCKS, None, "loop too short", clocks=text)
    # The row passes, but its rate describes the launch. Figures of bandwidth put it on no line.
    if hi < LOOP_FASTER:
        overhead = 100 * (1 - loop.ratio.value)
        return Gate.of(TWO_CLOCKS, True, "launch-bound", percent=overhead, clocks=text, launch_bound=True)
    return Gate(name=TWO_CLOCKS, passed=True, reason=text)


def blocks(point: MeasuredPoint, ratio: Estimate) -> Gate:
    """The second clock of calls or steps without a loop: the slope between blocks of K and of 2 K of them.

    Contention can slow down the longer blocks of a point in every round, because other programs preempt long blocks
    more often. So a slope that is too high is certain only if no round was contended.
    """
    if not ratio.known:
        return Gate.of(TWO_CLOCKS, None, "one clock")
    lo, hi = _ends(ratio)
    tolerance = 1.0 if ratio.has_interval else FEW_ROUNDS
    passed = BLOCKS_FASTER / tolerance <= hi and lo <= BLOCKS_SLOWER * tolerance
    quiet = not any(why_contended(point, record) for record in point.rounds)
    certain = ratio.has_interval and (quiet or lo <= 1)
    return Gate.of(TWO_CLOCKS, passed, "blocks", percent=100 * ratio.value, certain=certain)


def _launch_s(point: MeasuredPoint) -> float:
    """The seconds to launch an empty program on all devices of a call; 0 if not measured."""
    launch_s = point.case.launch_s if point.case is not None else None
    # All devices of the mesh start, also those of other groups: "2x4" are 8. A kernel has no mesh, and prod() is 1.
    return (launch_s or 0.0) * math.prod(int(side) for side in filter(None, point.mesh.split("x")))


def below_peak(demands: tuple[Demand, ...]) -> Gate:
    """No rate is above the peak of the device, the memory or the link.

    A rate above a catalogued peak is impossible. If it is above a measured peak, one of the two measurements is wrong.
    """
    above = [d for d in demands if d.limit.known and _ends(d.rate)[0] > d.limit.rate * d.limit.slack]
    if not above:
        return _unless_unknown(BELOW_PEAK, demands)
    reasons = [
        REASONS["above peak"].format(
            rate=d.shown(d.rate.value),
            percent=100 * d.rate.value / d.limit.rate,
            limit=d.limit.text,
            so="impossible" if d.limit.source == "catalogue" else CONTRADICTION,
        )
        for d in above
    ]
    # A measured peak may be from a slow day, so only a catalogued one makes the row impossible.
    certain = any(d.limit.source == "catalogue" and d.rate.has_interval for d in above)
    return Gate(name=BELOW_PEAK, passed=False, reason="; ".join(reasons), certain=certain)


def roofline(step_s: Estimate, demands: tuple[Demand, ...]) -> Gate:
    """No call is shorter than its FLOPs, its bytes or its payload would take at their ceilings."""
    # The demands of a call can overlap (compute next to memory traffic), so the largest one bounds it, not their sum.
    known = [(d.least_s / d.limit.slack, d) for d in demands if d.limit.known]  # slack: as for the rates above
    needed_s, binding = max(known, key=lambda pair: pair[0], default=(0.0, None))
    if binding is not None and _ends(step_s)[1] < needed_s:
        what = quantities.operations(binding.dtype).removesuffix("/s") + "s" if binding.unit == FLOP else "bytes"
        work = f"{binding.amount:.3g} {what}"
        took, needed = seconds(step_s.value), seconds(binding.least_s)
        return Gate.of(ROOFLINE, False, "below roofline", took=took, work=work, needed=needed)
    return _unless_unknown(ROOFLINE, demands)


def _unless_unknown(name: str, demands: tuple[Demand, ...]) -> Gate:
    if any(d.limit.known for d in demands):
        return Gate(name=name, passed=True)
    why = "; ".join(dict.fromkeys(d.limit.text for d in demands)) or REASONS["no work"]
    return Gate.of(name, None, "no peak", why=why)


def positive(point: MeasuredPoint, timing: Timing, loop: LoopTime, demands: tuple[Demand, ...]) -> Gate:
    """No time and no rate is zero or negative.

    The slope of a clock is a difference of two times. Noise can make it negative if the work is tiny, so the whole
    interval decides.
    """
    wrong = []
    if loop.iteration_s.known and _ends(loop.iteration_s)[1] < -NOTHING * _launch_s(point):
        wrong.append(REASONS["negative iteration"].format(value=digits(loop.iteration_s.value)))
    if timing.clock_ratio.known and _ends(timing.clock_ratio)[1] <= 0:
        slope_s = timing.clock_ratio.value * timing.step_s.value
        wrong.append(REASONS["negative call"].format(value=digits(slope_s)))
    rates = [d for d in demands if d.rate.value <= 0]
    wrong += [REASONS["negative rate"].format(value=digits(d.rate.value), unit=d.unit) for d in rates]
    return Gate(name=POSITIVE, passed=not wrong, reason="; ".join(wrong))


def call_flops_done(point: MeasuredPoint) -> Gate:
    """As for a step. Only a kernel with products is held to their count, because a kernel defines its other operations
    itself."""
    record = point.case
    # The compiler cannot count the FLOPs of a library that the program calls. Older records do not say (None).
    counted = record.compiler_flops or 0.0 if record is not None and record.calls_library is False else None
    if record is None or record.work is None or not record.work.product_flops:
        return flops_done(point.flops or 0, counted)
    others = (record.compiler_flops or 0.0) - sum(record.work.product_flops.values())
    work = dataclasses.replace(record.work, vector_flops=max(record.work.vector_flops, others))
    reason = Stated(point.flops or 0.0, 1, 1, each="call").contradiction(work)
    if reason is None:
        return flops_done(point.flops or 0, counted)
    return Gate(name=FLOPS_DONE, passed=not reason, reason=reason, certain=bool(reason))  # counts have no noise


def flops_done(stated: float, counted: float | None) -> Gate:
    """The compiled program contains the stated FLOPs. A formula that counts too many makes every rate too large.

    The program may have more FLOPs than the formula: recomputation, masked attention, a pipeline's bubble.
    """
    if not stated:  # such as a copy: it claims none
        return Gate(name=FLOPS_DONE, passed=True)
    if counted is None:
        return Gate.of(FLOPS_DONE, None, "FLOPs not counted")
    if stated <= OVERSTATED * counted:
        return Gate(name=FLOPS_DONE, passed=True)
    # Counts have no noise.
    return Gate.of(FLOPS_DONE, False, "FLOPs missing", stated=stated, counted=counted, certain=True)


def inputs(point: MeasuredPoint) -> Gate:
    """Not all inputs are zero. Zeros hide wrong results, and they multiply faster on hardware with a power limit."""
    if point.case is None:
        return Gate.of(INPUTS, None, "no inputs")
    # A single value may be zero by chance.
    all_zero = point.case.zeros >= 1 and (point.elements or 0) != 1
    return Gate.of(INPUTS, False, "zeros") if all_zero else Gate(name=INPUTS, passed=True)


def right(point: MeasuredPoint) -> Gate:
    """The result of the timed program equals the expected result."""
    record = point.case
    if record is None:
        return Gate.of(RIGHT, None, "no result")
    checks = [v for v in record.checks if v.name != HOST]  # that one is the question of `by_itself`
    failed = [v.reason for v in checks if not v.ok]
    if record.wrong or failed:
        if failed:
            return Gate(name=RIGHT, passed=False, reason="; ".join(failed))
        return Gate.of(RIGHT, False, "wrong values", count=record.wrong)
    if record.wrong is None:
        reason = "; ".join(v.reason for v in checks) or REASONS["not known"]
        return Gate(name=RIGHT, passed=None, reason=reason)
    return Gate(name=RIGHT, passed=True)


def by_itself(point: MeasuredPoint) -> Gate:
    """The compiled kernel does not wait for the host, because then its time would be the host's. Older records pass."""
    found = [v.reason for v in (point.case.checks if point.case is not None else ()) if v.name == HOST and not v.ok]
    return Gate(name=BY_ITSELF, passed=not found, reason="; ".join(found))


def _ends(estimate: Estimate) -> tuple[float, float]:
    """The ends of the interval; without an interval, the value twice."""
    return (estimate.lo, estimate.hi) if estimate.has_interval else (estimate.value, estimate.value)


def step_gates(point: MeasuredPoint, timing: Timing, use: Utilisation) -> tuple[Gate, ...]:
    """The gates of a measured row, without its base."""
    return step_two_clocks(point, timing), step_below_peak(timing.step_s, use), step_flops_done(point)


def step_two_clocks(point: MeasuredPoint, timing: Timing) -> Gate:
    """As for a case. A latency has no second clock: it includes the launch and the fence, which cancel in a slope."""
    if PART.of(point.levers) == "inference":
        return Gate.of(TWO_CLOCKS, None, "a latency")
    return blocks(point, timing.clock_ratio)


def step_below_peak(step_s: Estimate, use: Utilisation) -> Gate:
    """Model FLOP/s are not above the devices' peak, at the slow end of the step time's interval."""
    slowest = step_s.value / _ends(step_s)[1]  # the factor from the share at the median to that at the slow end
    if math.isfinite(use.mfu):
        if use.mfu * slowest <= SLACK["catalogue"]:
            return Gate(name=BELOW_PEAK, passed=True)
        certain, percent = step_s.has_interval, 100 * use.mfu
        return Gate.of(BELOW_PEAK, False, "above the catalogue", percent=percent, peak=use.peak, certain=certain)
    if math.isfinite(use.measured_peak_share):
        if use.measured_peak_share * slowest <= use.measured_slack:
            return Gate(name=BELOW_PEAK, passed=True)
        if why := _uncertain_product(use, slowest):
            return Gate.of(BELOW_PEAK, None, "uncertain product", why=why, share=use.measured_note)
        wrong = "one of the two is wrong" if use.product_share.known else CONTRADICTION
        far = use.measured_peak_share * slowest > FAR * use.measured_slack
        certain = step_s.has_interval and (far or use.product_share.known)  # a product of the same rounds is certain
        return Gate.of(BELOW_PEAK, False, "above a product", share=use.measured_note, so=wrong, certain=certain)
    return Gate(name=BELOW_PEAK, passed=None, reason=use.note)


def _uncertain_product(use: Utilisation, slowest: float) -> str:
    """Why a step above the rate of the product of its rounds may be right, as a clause; "" if it cannot.

    slowest: as in `step_below_peak`. The product is a measurement of seconds, and a neighbour may have disturbed it.
    """
    share, limit = use.product_share, SLACK["measured"]
    if not share.known:
        return ""
    if _ends(share)[0] <= limit:
        return REASONS["interval reaches"]
    if use.best_share * slowest <= limit:
        return REASONS["no faster than a block"]
    return REASONS["product disturbed"].format(why=use.product_disturbed) if use.product_disturbed else ""


def step_flops_done(point: MeasuredPoint) -> Gate:
    """As for a case, for whole steps. FLOPs in a branch that a step may skip do not count as done.

    Where every product is counted, the formula must agree with the count in both directions.
    """
    record = point.record
    if record is None:
        return Gate.of(FLOPS_DONE, None, "no compile report")
    beyond = sum(record.facts.get(name, 0.0) for name in BEYOND)
    stated = Stated(record.compile_report.flops_per_step, record.global_batch, record.devices, beyond)
    if (reason := stated.contradiction(record.work)) is not None:
        if reason:
            return Gate(name=FLOPS_DONE, passed=False, reason=reason, certain=True)  # counts have no noise
        gate = Gate(name=FLOPS_DONE, passed=True)
    else:
        gate = _less_than_stated(point, record)
    least = record.facts.get("least_work", 1.0)
    if gate.passed is False or least >= 1 / OVERSTATED or PART.of(point.levers) != "step":
        return gate
    # Not certain: it may, and nothing shows that it did.
    return Gate.of(FLOPS_DONE, False, "FLOPs skipped", percent=100 * (1 - least))


def _less_than_stated(point: MeasuredPoint, record: PointRecord) -> Gate:
    """The gate of a step with products that cannot all be counted, or of an older record."""
    if PART.of(point.levers) != "step":
        return Gate.of(FLOPS_DONE, None, "FLOPs of a part")
    compile_report = record.compile_report
    # The larger count: the compiler's own leaves out library calls, and the parsed one knows products only.
    counts = (compile_report.product_flops_per_step, compile_report.compiler_flops_per_step)
    # None: an opaque library call. XLA's own count on a GPU leaves such calls out, so a low one proves nothing there.
    if counts[0] is None and record.platform != "cpu" and compile_report.flops_per_step > OVERSTATED * (counts[1] or 0):
        return Gate.of(FLOPS_DONE, None, "FLOPs of a library")
    return flops_done(compile_report.flops_per_step, max((count for count in counts if count), default=None))


def not_above_ideal(efficiency: Estimate) -> Gate:
    """The interval of the efficiency is not entirely above ABOVE_IDEAL."""
    if not (efficiency.has_interval and efficiency.lo > ABOVE_IDEAL):
        return Gate(name=NOT_ABOVE_IDEAL, passed=True)
    return Gate.of(NOT_ABOVE_IDEAL, False, "above ideal", percent=100 * efficiency.value)
