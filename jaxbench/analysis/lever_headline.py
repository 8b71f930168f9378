# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The headlines of a lever sweep, or why there is none.

They use only valid arms with a valid baseline. A difference is stated only if its whole interval supports it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from jaxbench.analysis import sharing
from jaxbench.analysis.arms import ArmGroup, ArmResult, arms_of
from jaxbench.analysis.batches import Knee, Latency
from jaxbench.analysis.headline import lacking, too_short
from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.phases import Phases
from jaxbench.analysis.quantities import interval, percent, scaled, seconds

MAX_PLACES = 3  # with more groups, only the largest valid device count of each strategy and scaling is reported
MAX_ARMS = 6
SELECTED = "selected and measured on the same rounds, so probably optimistic"  # if the best of more arms is reported


def headlines(
    view: str,
    places: Sequence[ArmGroup],
    *,
    phases: Sequence[Phases] = (),
    knees: Sequence[Knee] = (),
    latencies: Sequence[tuple[ArmGroup, list[Latency]]] = (),
) -> list[str]:
    """The headline sentences of a view; without any, one sentence that starts with "No headline" and the reason."""
    shown = _shown(places)
    if view == "phases":
        sentences = [each.sentence for each in phases if each.honest and each.place in shown]
    elif view == "batch":
        timed = [knee for knee in knees if knee.arm.timing.step_s.has_interval]
        sentences = [_knee(knee) for knee in timed if knee.place in shown and knee.arm.honest]
    elif view == "inference":
        sentences = [_prefix(place) + text for place, many in latencies if place in shown if (text := _latencies(many))]
    elif view == "ladder":
        sentences = [_prefix(place) + text for place in shown if (text := _ladder(place))]
    elif view == "sharing":
        sentences = [_prefix(place) + text for place in shown for text in sharing.sentences(pairs(place))]
    elif view == "compiler":
        sentences = [_prefix(place) + text for place in shown if (text := _ranking(place))]
    else:
        sentences = [_prefix(place) + text for place in shown for text in _compared(place, _SAY.get(view, _general))]
    return sentences or [too_short(arms_of(places)) or f"No headline: {_why_not(places)}."]


def _shown(places: Sequence[ArmGroup]) -> list[ArmGroup]:
    honest = [place for place in places if any(arm.honest for arm in place.arms)]
    if len(honest) <= MAX_PLACES:
        return honest
    largest: dict[tuple[str, str], ArmGroup] = {}
    for place in sorted(honest, key=lambda place: place.devices):
        largest[place.strategy, place.scaling] = place
    return list(largest.values())


def _prefix(place: ArmGroup) -> str:
    return f"{place.name}: " if place.name else ""


def pairs(place: ArmGroup) -> list[ArmResult]:
    """The arms that can be compared: the arm and its baseline are valid and measured."""
    arms = (arm for arm in place.arms if arm.verdict not in ("", "baseline"))
    return [arm for arm in arms if arm.honest and arm.baseline.honest and arm.ratio.known]


def _compared(place: ArmGroup, say: Callable[[ArmResult, str], str]) -> list[str]:
    arms, base = pairs(place), arm_name(place.arms[0])
    if len(arms) <= MAX_ARMS:
        return [say(arm, base) for arm in arms]
    fastest = max(arms, key=lambda arm: arm.speedup.value)
    return [f"The fastest of {len(arms)} arms ({SELECTED}): {say(fastest, base)}"]


def _ranking(place: ArmGroup) -> str:
    """The arms by verdict, fastest first, each with its time over the baseline's; "" without comparable arms."""
    arms = sorted(pairs(place), key=lambda arm: arm.ratio.value)
    parts = []
    for verdict, words in (("faster", "faster"), ("slower", "slower"), ("cannot tell", "no difference shown")):
        named = [f"{arm.label} {_ratio(arm.ratio)}" for arm in arms if arm.verdict == verdict]
        caveat = f" ({SELECTED})" if named and verdict == "faster" and len(arms) > MAX_ARMS else ""
        parts.append(f"{words}{caveat}: {', '.join(named)}" if named else "")
    text = "; ".join(filter(None, parts))
    return f"Time over that of {place.arms[0].label}: {text}." if text else ""


def arm_name(arm: ArmResult) -> str:
    """The arm's name in a sentence: the value alone if it is clear, such as "bfloat16", else "lever=value"."""
    return (
        arm.label if arm.point.arm in (f"precision={arm.label}", f"remat={arm.label}") else arm.point.arm or arm.label
    )


def _time(arm: ArmResult, base: str) -> str:
    """A clause: "bfloat16 takes 0.61 [0.59, 0.63] of default's time", or that the comparison is inconclusive."""
    same = arm.point.examples == arm.baseline.point.examples
    value, quantity = (arm.ratio, "time") if same else (arm.speedup.under(1.0), "time per example")
    ratio = _ratio(value)
    if arm.verdict == "cannot tell":
        return f"{arm_name(arm)} vs {base}: inconclusive ({ratio} of its {quantity}; {arm.why})"
    return f"{arm_name(arm)} takes {ratio} of {base}'s {quantity}"


def _ratio(value: Estimate) -> str:
    ends = f" [{value.lo:.2f}, {value.hi:.2f}]" if value.has_interval else ""
    return f"{value.value:.2f}{ends}"


def _sentence(*parts: str) -> str:
    return f"{'; '.join(filter(None, parts))}."


def _memory(arm: ArmResult, base: str) -> str:
    return f"its memory is {arm.memory_ratio:.2f} of {base}'s" if math.isfinite(arm.memory_ratio) else ""


def _outcome(arm: ArmResult) -> str:
    """The result of its short training and of the baseline's. There is one training each, so no interval."""
    for name, words in (("final_accuracy", "final accuracy"), ("final_loss", "final loss")):
        value, baseline = arm.outcome(name), arm.baseline.point.outcome(name)
        if math.isfinite(value) and math.isfinite(baseline):
            skipped = arm.outcome("skipped_steps")
            skips = f", {skipped:.0f} of {arm.outcome('steps'):.0f} steps skipped" if skipped > 0 else ""
            return f"{words} {value:.3f} vs {baseline:.3f} (one training each{skips})"
    return ""


def _general(arm: ArmResult, base: str) -> str:
    return _sentence(_time(arm, base), _memory(arm, base), _outcome(arm))


def _remat(arm: ArmResult, base: str) -> str:
    temp = arm.baseline.point.temp_bytes
    share = arm.temp_bytes / temp if temp else math.nan
    memory = f"{share:.2f} of {base}'s scratch memory" if math.isfinite(share) else ""
    extra = arm.ratio
    between = f" [{100 * (extra.lo - 1):.0f}, {100 * (extra.hi - 1):.0f}]" if extra.has_interval else ""
    if arm.verdict == "cannot tell":
        return _sentence(_time(arm, base), f"it holds {memory}" if memory else "")
    costs = f"{100 * (extra.value - 1):+.0f} %{between} time"
    return f"{arm_name(arm)} holds {memory} at {costs}." if memory else f"{arm_name(arm)}: {costs} over {base}."


def _freeze(arm: ArmResult, base: str) -> str:
    record, other = arm.point.record, arm.baseline.point.record
    if record is None or other is None:
        return _general(arm, base)
    passport, baseline = record.passport, other.passport
    counts = (passport.product_flops_per_step, baseline.product_flops_per_step)
    flops = f"{counts[0] / counts[1]:.2f} of the compiled program's products" if counts[0] and counts[1] else ""
    share = f"{100 * (1 - passport.parameters / baseline.parameters):.0f} % fewer trained parameters"
    return _sentence(_time(arm, base), share, flops, _outcome(arm))


def bound(arm: ArmResult) -> Estimate:
    """The share of the step that waits for input: 1 - T(baseline) / T(arm)."""
    value = arm.ratio.under(1.0)
    return Estimate(value=1 - value.value, lo=1 - value.hi, hi=1 - value.lo)


def _inputs(arm: ArmResult, base: str) -> str:
    share = percent(bound(arm), fine=False)
    if arm.verdict == "slower":
        return f"{arm_name(arm)} spends {share} of the step on input that {base} does not need."
    if arm.verdict == "faster":
        return f"{arm_name(arm)} is no slower than {base}: {_ratio(arm.ratio)} of its time."
    return f"{arm_name(arm)} vs {base}: inconclusive ({share} of the step is spent on input; {arm.why})."


_SAY: dict[str, Callable[[ArmResult, str], str]] = {"remat": _remat, "freeze": _freeze, "inputs": _inputs}


def _knee(knee: Knee) -> str:
    """A sentence on the batch above which a larger batch gains little throughput."""
    arm, best = knee.arm, knee.best
    step, rate = interval(arm.timing.step_s, seconds), scaled(best.timing.examples_per_s.value, "")
    unit = best.point.record.unit if best.point.record is not None else "examples"
    of_best = f"of the best throughput, {rate.strip()} {unit}/s at batch {best.point.global_batch}"
    if knee.rising:
        return f"{_prefix(knee.place)}Throughput still grows at the largest batch, {best.point.global_batch}: no knee."
    if arm is best:
        text = f"Throughput is best at batch {best.point.global_batch} ({rate.strip()} {unit}/s, {step} per step);"
        text += " smaller batches reach less than 90 % of it."
    else:
        text = f"The knee is batch {arm.point.global_batch}: {percent(knee.share, fine=False)} {of_best}, at {step}."
    if knee.certain:
        return f"{_prefix(knee.place)}{text}"
    return f"{_prefix(knee.place)}{text} Inconclusive: an interval contains 90 %, so it may be a neighbouring batch."


def _latencies(latencies: Sequence[Latency]) -> str:
    """The latencies of the smallest and the largest batch."""
    honest = [each for each in latencies if each.arm.honest and each.p50.known]
    parts = []
    for each in dict.fromkeys((honest[0], honest[-1])) if honest else ():
        p99 = f", p99 {interval(each.p99, seconds)}" if each.p99.known else f", no p99 ({each.why_not})"
        unit = each.arm.point.record.unit if each.arm.point.record is not None else "examples"
        rate = scaled(each.arm.timing.examples_per_s.value, "").strip()
        parts.append(f"batch {each.arm.point.global_batch}: p50 {interval(each.p50, seconds)}{p99}, {rate} {unit}/s")
    return f"{'; '.join(parts)}." if parts else ""


def _ladder(place: ArmGroup) -> str:
    """A sentence on the speed-up from the first rung to the last, and on the rung that gains most."""
    arms = pairs(place)
    if not arms or arms[-1] is not place.arms[-1]:
        return ""
    top, first = arms[-1], place.arms[0]
    text = f"The whole ladder is {_ratio(top.speedup)} x as fast as {first.label}"
    if top.verdict == "cannot tell":
        text = f"The whole ladder vs {first.label}: inconclusive"
    steps = [
        (place.speedup(b, a), b) for a, b in zip(place.arms, place.arms[1:], strict=False) if a.believed and b.believed
    ]
    gains = [(value, arm) for value, arm in steps if value.has_interval and value.lo > 1]
    if gains:
        value, arm = max(gains, key=lambda one: one[0].value)
        text += f"; the rung that gains most is {arm.label}, {_ratio(value)} x"
    unclear = [arm.label for value, arm in steps if not value.has_interval or value.lo <= 1 <= value.hi]
    slower = [arm.label for value, arm in steps if value.has_interval and value.hi < 1]
    return _sentence(
        text,
        f"inconclusive: {', '.join(unclear)}" if unclear else "",
        f"slower: {', '.join(slower)}" if slower else "",
    )


def _why_not(places: Sequence[ArmGroup]) -> str:
    arms = arms_of(places)
    if why := lacking(arms):
        return why
    if not any(arm.honest for arm in arms):
        return f"a gate refused {arms[0].point.point}, {arms[0].row.gate_reason}"
    bad_baselines = {arm.baseline.point.point for arm in arms if arm.honest and not arm.baseline.honest}
    if bad_baselines:
        return f"the baseline {sorted(bad_baselines)[0]} has no trustworthy times"
    return "no two arms can be compared"
