# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What runs of training steps and of cases should show on any machine, and what they actually show."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jaxbench.analysis import quantities, roofline
from jaxbench.analysis.points import MeasuredPoint
from jaxbench.analysis.run_rows import Row
from jaxbench.digits import digits
from jaxbench.records.manifest import Manifest

YES, NO, CANNOT_TELL = "yes", "NO", "cannot tell"
IDEAL = 1.05  # an efficiency with its whole interval above this is implausible
ADDS_UP = 0.01  # relative to the wall time: the tolerance for the sum of the op categories in a trace
IDLE = "idle"
_RUNS = "Every program compiles and runs to the end."
_VERDICTS = {
    "parameters": "After three updates the parameters equal those of one device, within the model's tolerance.",
    "optimizer": "After three updates the optimizer state equals that of one device.",
    "collectives": "The compiled step sends exactly the bytes that the strategy's formula gives, and nothing else.",
    "state": "After three updates the model's state, such as batch statistics, equals that of one device.",
    "products": "The matrix products of a 16-bit step are in 16 bits.",
    "part": "A part of a step computes the same as that part on one device.",
    "host": "Nothing comes from the host while a step runs.",
    "devices": "Each requested device works on its own part of the batch or of the model.",
    "inputs": "The batch is not all zeros.",
    "finite": "The parameters are finite after the timed steps.",
    "steps": "Each timed step is one update.",
    "timed update": "One more update of the timed state equals that of one device.",
}
_STEADY = "Nothing is compiled while steps are timed."
_CLOCKS = "Two clocks agree: one more step takes as long as the reported step time."
_EFFICIENCY = "No speed-up is above the ideal: no efficiency has its whole confidence interval above 105 %."
_PROFILE = "In a trace, the op categories and the idle time add up to the wall time, and the devices are busy."
UNIT = "cases"
NOTHING = "nothing that could be judged was measured."
_CASES_RUN = "Every kernel, transfer and collective that fits runs to the end."
_CASES_RIGHT = "Every result is correct."
_CASES_GATED = "No number is impossible: the clocks agree, and nothing is faster than the hardware's peaks allow."
_CASES_PEAK = "No matrix product is faster than the vendor's stated peak."


@dataclass(frozen=True, kw_only=True)
class Item:
    """One expectation of one run."""

    expected: str  # a sentence
    found: str  # the result, as a clause
    agrees: str  # YES, NO or CANNOT_TELL
    judged: int = 1  # how many programs were judged
    right: int = 0  # how many of them are as expected
    detail: str = ""  # numbers of interest
    why: tuple[str, ...] = ()  # a sentence for each violation, or the reason why it cannot be judged


def of_training(rows: Sequence[Row]) -> list[Item]:
    """The expectations that every program runs and is correct."""
    measured = [row.point for row in rows if row.point.rounds]
    compiled = [(p.point, sum(r.compilations for r in p.rounds)) for p in measured]
    wrong = [f"{point}: {count} programs were compiled" for point, count in compiled if count]
    steady = item(_STEADY, len(measured), wrong)
    return [complete(_RUNS, [row.point for row in rows]), *_verdicts(rows), steady]


def of_scaling(rows: Sequence[Row]) -> list[Item]:
    """The expectations that the speeds are plausible."""
    timed = [row for row in rows if row.timing.step_s.known]
    wrong = [f"{row.point_id}: {row.timing.clock_note}" for row in timed if row.timing.clock_note]
    return [item(_CLOCKS, len(timed), wrong), _efficiency(rows)]


def grid(rows: Iterable[Row]) -> dict[str, str]:
    """{strategy: YES, NO or CANNOT_TELL}: whether all of its points ran and passed every check."""
    answers: dict[str, str] = {}
    for row in rows:
        p = row.point
        answer = NO if p.check_ok is False or p.status == "failed" else YES if p.status == "ok" and p.check_ok else ""
        answers[p.strategy] = worst((answers.get(p.strategy, YES), answer or CANNOT_TELL))
    return answers


def worst(answers: Iterable[str]) -> str:
    """NO if any answer is NO, else CANNOT_TELL if any is, else YES."""
    return max(answers, key=(YES, CANNOT_TELL, NO).index, default=YES)


def complete(expected: str, points: Sequence[MeasuredPoint], *, unit: str = "programs") -> Item:
    """The expectation that all of these points were measured. A failed point is a violation, and a missing point is
    unknown. Unsupported points are left out."""
    # A strategy that cannot run a model, and says so, is no fault of either.
    points = [point for point in points if point.status != "unsupported"]
    failed, partial, missing = (
        [f"{p.point}: {p.reason}" for p in points if p.status == status] for status in ("failed", "partial", "missing")
    )
    return item(expected, len(points), failed, unknown=[*partial, *missing], unit=unit)


def item(
    expected: str,
    judged: int,
    wrong: Sequence[str],
    detail: str = "",
    *,
    unknown: Sequence[str] = (),
    unit: str = "programs",
) -> Item:
    """An expectation about `judged` programs. wrong: a sentence for each violation. unknown: one for each program that
    could not be judged."""
    if not judged:
        return _unknown(expected, NOTHING)
    why = (*wrong, *unknown)
    # A program may have several violations, so there may be more sentences than programs.
    right, agrees = max(0, judged - len(why)), NO if wrong else CANNOT_TELL if unknown else YES
    found = f"{right} of {judged} {unit}"
    return Item(expected=expected, found=found, agrees=agrees, judged=judged, right=right, detail=detail, why=why)


def _unknown(expected: str, why: str) -> Item:
    """An expectation that cannot be judged, with the reason."""
    return Item(expected=expected, found="not known", agrees=CANNOT_TELL, judged=0, why=(why,))


def _verdicts(rows: Sequence[Row]) -> list[Item]:
    """One item for each kind of check that any point has. The first three are always there: every point needs them."""
    checks = [(row.point_id, check) for row in rows if row.point.record for check in row.point.checks]
    alone = bool(rows) and all(row.point.devices == 1 for row in rows)
    names = dict.fromkeys([*list(_VERDICTS)[:3], *(check.name for _, check in checks)])
    items = []
    for name in names:
        if name == "collectives" and alone:
            items.append(_unknown(_VERDICTS[name], "one device does not communicate."))
            continue
        matches = [(point, check) for point, check in checks if check.name == name]
        wrong = [f"{point}: {check.reason}" for point, check in matches if not check.ok and not check.unchecked]
        unknown = [f"{point}: {check.reason}" for point, check in matches if check.unchecked]
        passed = [check for _, check in matches if check.ok and name == "parameters"]
        shares = [check.value / check.limit for check in passed if check.value is not None and check.limit]
        nearest = f"at most {100 * max(shares):.2g} % of the tolerance" if shares else ""
        expected = _VERDICTS.get(name, f"The check '{name}' passes.")
        items.append(item(expected, len(matches), wrong, nearest, unknown=unknown))
    return items


def _efficiency(rows: Sequence[Row]) -> Item:
    """Judges points that are not oversubscribed, against their base. Without an interval nothing is proven."""
    known = [r for r in rows if r.base not in (None, r.point) and r.efficiency.known and not r.point.oversubscribed]
    judged = [row for row in known if row.efficiency.has_interval]
    wrong = [f"{row.point_id}: efficiency {_efficiency_interval(row)}" for row in judged if row.efficiency.lo > IDEAL]
    ends = {(r.point.strategy, r.point.scaling): r for r in judged}  # the last row of a family has the most devices
    shown = [f"{r.point.scaling} on {r.point.devices} devices {_efficiency_interval(r)}" for r in ends.values()]
    if not judged:
        why = "no interval: too few rounds" if known else "efficiency needs two device counts without oversubscription"
        return _unknown(_EFFICIENCY, f"{why}.")
    return item(_EFFICIENCY, len(judged), wrong, ", ".join(shown))


def _efficiency_interval(row: Row) -> str:
    value = row.efficiency
    return f"{100 * value.value:.0f} % [{100 * value.lo:.0f}, {100 * value.hi:.0f}]"


def of_profile(rows: Sequence[Row]) -> Item:
    """The expectation that the times in the traces add up."""
    traced = [(row.point_id, row.point.profile) for row in rows if row.point.profile is not None]
    if not traced:
        return _unknown(_PROFILE, "no trace was recorded.")
    wrong, shown = [], []
    for point, profile in traced:
        total, busy = math.fsum(profile.kinds.values()), 1 - profile.kinds.get(IDLE, 0.0) / profile.wall_s
        step = f"{digits(1e3 * profile.wall_s / profile.steps)} ms a step"
        shown.append(f"{100 * total / profile.wall_s:.1f} % of {step}, devices busy {100 * busy:.0f} %")
        if abs(total / profile.wall_s - 1) > ADDS_UP or not busy > 0:
            wrong.append(f"{point}: {shown[-1]}")
    return item(_PROFILE, len(traced), wrong, ", ".join(shown))


def of_cases(rows: Sequence[Row]) -> list[Item]:
    """Whether all rows were measured, are correct, and passed every gate."""
    checked = [row for row in rows if row.point.check_ok is not None]
    wrong = [f"{row.point_id}: {row.point.reason}" for row in checked if row.point.check_ok is False]
    gated = [row for row in rows if row.gate and row.point.check_ok is not False]
    refused = [f"{row.point_id}: {row.gate_reason}" for row in gated if row.gate == "refused"]
    return [
        complete(_CASES_RUN, [row.point for row in rows], unit=UNIT),
        item(_CASES_RIGHT, len(checked), wrong, unit=UNIT),
        item(_CASES_GATED, len(gated), refused, unit=UNIT),
    ]


def of_peak(rows: Sequence[Row], manifest: Manifest) -> Item:
    """The fastest product of each dtype against the catalogued peak, including products that a gate refused.

    rows: the rows of the experiment `matmul`. manifest: the manifest of its run.
    """
    platform, kind = str(manifest.get("platform", "")), str(manifest.get("device_kind", ""))
    timed = [row for row in rows if row.flop_per_s.known and row.point.platform == platform]
    shown, wrong, known = [], [], 0
    for dtype in dict.fromkeys(row.point.dtype for row in timed):
        best = max((row for row in timed if row.point.dtype == dtype), key=lambda row: row.flop_per_s.value)
        peak = roofline.catalogued_ceilings(platform, kind, dtype)
        rate = quantities.flops(best.flop_per_s.value, dtype)
        if not peak.flop.source:
            shown.append(f"{dtype} {rate}")
            continue
        known += 1
        share = 100 * best.flop_per_s.value / peak.flop.rate
        shown.append(f"{dtype} {rate}, {share:.0f} % of {quantities.flops(peak.flop.rate, dtype)}")
        # The fastest of many products is fast by chance, too, so the lower end of its interval must be above the peak.
        lower = best.flop_per_s.lo if best.flop_per_s.has_interval else best.flop_per_s.value
        if lower > roofline.SLACK["catalogue"] * peak.flop.rate:
            wrong.append(f"{best.point_id}: {shown[-1]}")
    agrees = NO if wrong else YES if known else CANNOT_TELL
    why = tuple(wrong) if known else (f"the catalogue has no peak for '{kind}'.",)
    found = "; ".join(shown) or "nothing was measured"
    return Item(expected=_CASES_PEAK, found=found, agrees=agrees, judged=known, right=known - len(wrong), why=why)
