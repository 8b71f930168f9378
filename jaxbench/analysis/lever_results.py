# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Results of a lever sweep: sharing, batches, latency, phases, and the headlines, or why there is none."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from jaxbench.analysis.arms import ArmGroup, arms_of
from jaxbench.analysis.headline import lacking, too_short
from jaxbench.analysis.quantities import interval, percent, scaled, seconds, times
from jaxbench.analysis.run_rows import Row
from jaxbench.digits import counted
from jaxbench.levers import PART
from jaxbench.statistics import paired_ratio
from jaxbench.statistics.bootstrap import UNKNOWN, Estimate, estimate

NEAR = 0.9  # above this share of the best throughput, a larger batch makes steps longer and gains little
PREFIXES = ("forward", "gradient", "local", "step")  # values of the lever `part`: each does one phase more
PHASE_NAMES = ("forward", "backward", "update", "communication")
MAX_GROUPS = 3  # with more groups, only the largest valid device count of each strategy and scaling is reported
MAX_ARMS = 6  # with more arms, only the fastest is reported
INPUTS = {  # by the verdict of an arm
    "slower": "{arm} spends {share} of the step on input that {base} does not need.",
    "faster": "{arm} is no slower than {base}: {ratio} of its time.",
    "": "{arm} vs {base}: inconclusive ({share} of the step is spent on input; {why}).",
}
KNEES = {
    "rising": "Throughput still grows at the largest batch, {best}: no knee.",
    "best": "Throughput is best at batch {best} ({rate}, {step} per step); {rest}.",
    "knee": "The knee is batch {batch}: {share} of the best throughput, {rate} at batch {best}, at {step}.",
    "none smaller": "no smaller batch was measured",
    "smaller": "smaller batches reach less than 90 % of it",
    "rivals": "; cannot tell whether batch {rivals} is slower: the interval of the ratio contains 1.",
    "uncertain": " Inconclusive: an interval contains 90 %, so the knee may be a neighbouring batch.",
}
WHY_NOT = {
    "refused": "a gate refused {point}, {reason}",
    "baseline": "the baseline {point} has no trustworthy times",
    "none": "no two settings can be compared",
}
ADD_UP = {  # whether the phases of a step add up
    "unknown": "Whether they add up is unknown: there are too few shared rounds ({rounds}) for an interval.",
    "negative": "They do not add up: {names} {verb}, so a part is not a prefix of the next.",
    "unclear": "Inconclusive, because the interval contains 0: {names}.",
    "yes": "They add up: every interval is above 0.",
}
SELECTED = "selected and measured on the same rounds, so probably optimistic"  # if the best of more arms is reported


@dataclass(frozen=True, kw_only=True)
class SharingResult:
    """How trainings share their devices."""

    relative: tuple[float, ...]  # each training's time over the slowest's: median over rounds of its median block
    fairness: Estimate = UNKNOWN  # Jain's index of their rates: 1 if all are equally fast, 1 / k if one gets everything


def sharing_of(row: Row) -> SharingResult | None:
    """The sharing of a row's trainings; None for one training, and without rounds."""
    count = row.point.trainings
    pairs = zip(row.point.units, row.point.rounds, strict=True)
    usable = [(unit, each) for unit, each in pairs if count > 1 and len(each.process_block_s) == count]
    if not usable:
        return None
    units, rounds = zip(*usable, strict=True)
    blocks = [np.array(each.process_block_s) for each in rounds]  # each (trainings, blocks), in seconds
    samples = np.concatenate([jain(1 / times) for times in blocks])
    owners = np.repeat(np.arange(len(blocks)), [times.shape[1] for times in blocks])
    value, drawn = row.timing.resampling.centre(samples, owners, units)
    of_rounds = np.array([np.median(times / times.max(axis=0), axis=1) for times in blocks])
    return SharingResult(
        relative=tuple(np.median(of_rounds, axis=0).tolist()),
        # Jain's index cannot exceed 1, but the resampling adds variance between runs and would draw values above it.
        fairness=estimate(value, np.minimum(drawn, 1), rounds=len(units)),
    )


def jain(rates: np.ndarray) -> np.ndarray:
    """Jain's index of fairness of each column: (sum x)^2 / (k sum x^2). rates: (k, n). Returns (n,)."""
    return np.asarray(rates.sum(axis=0) ** 2 / (len(rates) * (rates**2).sum(axis=0)))


def sharing_sentences(arms: Sequence[Row]) -> list[str]:
    """A sentence for each arm with several trainings."""
    lines = []
    for arm in arms:
        if arm.gain.known and (found := sharing_of(arm)) is not None:
            unclear = f" (inconclusive: {arm.why})" if arm.verdict == "cannot tell" else ""
            lines.append(
                f"{arm.label} trainings at once: {times(arm.gain)} the throughput of running them in sequence"
                f"{unclear}; a step of the slowest takes {times(arm.ratio)} as long, and Jain's index of their rates "
                f"is {found.fairness.value:.3f}."
            )
    return lines


@dataclass(frozen=True, kw_only=True, eq=False)
class Knee:
    """The smallest measured batch with at least `NEAR` of the best throughput of its group."""

    group: ArmGroup
    arm: Row
    best: Row
    share: Estimate  # its throughput over the best throughput, from the rounds that both share
    below: Row | None  # the next smaller measured batch; None if the knee is the smallest
    below_share: Estimate
    rising: bool  # the largest batch is the best by a factor above 1 / NEAR, so the true knee may be larger
    rivals: tuple[Row, ...]  # larger batches than the best that may be faster, by the interval of the ratio

    @property
    def certain(self) -> bool:
        """Whether the whole interval of `share` is above NEAR, and that of the smaller batch below it."""
        smaller = self.below is None or (self.below_share.has_interval and self.below_share.hi < NEAR)
        return smaller and (self.arm is self.best or (self.share.has_interval and self.share.lo >= NEAR))


def knee(group: ArmGroup) -> Knee | None:
    """The knee of a group of arms that differ only in the batch; None with fewer than three batches."""
    arms = sorted((arm for arm in group.arms if arm.usable), key=lambda arm: arm.point.global_batch)
    # Of two batches the larger one is nearly always the better, and no knee is between them.
    if len({arm.point.global_batch for arm in arms}) < 3:
        return None
    best = max(arms, key=lambda arm: arm.point.global_batch / arm.timing.step_s.value)
    shares = [Estimate(value=1.0) if arm is best else group.speedup(arm, best) for arm in arms]
    index = next(i for i, share in enumerate(shares) if share.value >= NEAR)
    # Throughput still grows by more than 1 / NEAR from the last batch but one, so a batch that was not measured may
    # win.
    rising = best is arms[-1] and shares[-2].value < NEAR
    # Not interpolated: the knee is a batch that was measured and can be used.
    return Knee(
        group=group,
        arm=arms[index],
        best=best,
        share=shares[index],
        below=arms[index - 1] if index else None,
        below_share=shares[index - 1] if index else UNKNOWN,
        rising=rising,
        rivals=tuple(
            arm
            for arm, share in zip(arms, shares, strict=True)
            if arm.point.global_batch > best.point.global_batch and not (share.has_interval and share.hi < 1)
        ),
    )


def latencies(groups: Sequence[ArmGroup]) -> list[ArmGroup]:
    """The groups with only their inference arms, by batch; without groups that have none."""
    inferring = [(group, [arm for arm in group.arms if PART.of(arm.point.levers) == "inference"]) for group in groups]
    return [
        dataclasses.replace(group, arms=sorted(arms, key=lambda arm: arm.point.global_batch))
        for group, arms in inferring
        if arms
    ]


@dataclass(frozen=True, kw_only=True)
class Phase:
    """The difference of two prefixes of a step: backward = gradient - forward, communication = step - local."""

    name: str  # "update + communication" if the prefix between them was not measured
    indices: tuple[int, ...]  # which of `PHASE_NAMES` it has
    step_s: Estimate
    share: Estimate  # relative to the longest measured prefix

    @property
    def above_zero(self) -> bool:
        """Whether the whole interval is above 0."""
        return self.step_s.has_interval and self.step_s.lo > 0


@dataclass(frozen=True, kw_only=True)
class Phases:
    """The phases of one arm group and setting of the other levers. They add up to `whole` by construction."""

    group: ArmGroup
    setting: str  # such as "batch=64" if the run has several settings
    phases: list[Phase]
    whole: Estimate  # the time of the longest measured prefix
    last: str  # its name
    rounds: int  # that all prefixes share
    arms: list[Row]

    @property
    def name(self) -> str:
        return ", ".join(filter(None, [self.group.name, self.setting]))

    @property
    def quotable(self) -> bool:
        return all(arm.quotable for arm in self.arms)

    @property
    def sentence(self) -> str:
        """The phases with their intervals and shares, and whether each is above 0, as sentences."""
        times = [f"{phase.name} {interval(phase.step_s, _signed_seconds)}" for phase in self.phases]
        parts = [f"{t} ({percent(phase.share, fine=False)})" for t, phase in zip(times, self.phases, strict=True)]
        whole = f"{self.name}: " * bool(self.name) + interval(self.whole, _signed_seconds)
        return f"{whole} per {self.last} = {' + '.join(parts)}. {self._verdict()}"

    def _verdict(self) -> str:
        """Whether the differences between prefixes add up to the whole step."""
        negative = [p.name for p in self.phases if p.step_s.has_interval and p.step_s.hi < 0]
        unclear = [p.name for p in self.phases if not p.above_zero and p.name not in negative]
        names = " and ".join(negative or unclear)
        verb = "has a negative time" if len(negative) == 1 else "have negative times"
        kind = "negative" if negative else "unclear" if unclear else "yes"
        return ADD_UP[kind if self.whole.has_interval else "unknown"].format(rounds=self.rounds, names=names, verb=verb)


def find_phases(groups: Sequence[ArmGroup]) -> list[Phases]:
    """The phases of every arm group and setting with at least two measured prefixes."""
    results = []
    for group in groups:
        settings: dict[tuple[tuple[str, str], ...], list[Row]] = {}
        for arm in group.arms:
            if arm.point.levers.get("part") in PREFIXES and arm.usable:
                others = tuple(item for item in sorted(arm.point.levers.items()) if item[0] != "part")
                settings.setdefault(others, []).append(arm)
        varying = {item for others in settings for item in others if any(item not in other for other in settings)}
        for others, arms in settings.items():
            # Reversed, so that of two arms with the same part the first one stays.
            by_part = {arm.point.levers["part"]: arm for arm in reversed(arms)}
            ordered = [by_part[part] for part in PREFIXES if part in by_part]
            if len(ordered) > 1:
                setting = ", ".join(f"{name}={value}" for name, value in others if (name, value) in varying)
                results.append(_phases(group, setting, ordered))
    return results


def _phases(group: ArmGroup, setting: str, arms: list[Row]) -> Phases:
    """The time of each phase of a step: the difference between two prefixes."""
    measured = paired_ratio.times(arms)  # over the rounds that all parts share, so that differences are of one time
    # From 0, so that the first prefix, the forward pass, is a difference like all others.
    step_s = np.concatenate([[0.0], measured.step_s])
    draws = np.concatenate([np.zeros_like(measured.draws[:1]), measured.draws])
    stops = [-1, *(PREFIXES.index(arm.point.levers["part"]) for arm in arms)]
    phases = []
    for i in range(1, len(stops)):
        indices = tuple(range(stops[i - 1] + 1, stops[i] + 1))
        value, drawn = step_s[i] - step_s[i - 1], draws[i] - draws[i - 1]
        phases.append(
            Phase(
                name=" + ".join(PHASE_NAMES[index] for index in indices),
                indices=indices,
                step_s=measured.estimate(value, drawn),
                share=measured.estimate(value / step_s[-1], drawn / draws[-1]),
            )
        )
    return Phases(
        group=group,
        setting=setting,
        phases=phases,
        whole=measured.estimate(float(step_s[-1]), draws[-1]),
        last=arms[-1].point.levers["part"],
        rounds=measured.rounds,
        arms=arms,
    )


def _signed_seconds(value: float) -> str:  # `seconds` finds no unit for a negative time
    return seconds(value) if value >= 0 else f"-{seconds(-value)}"


def headlines(view: str, groups: Sequence[ArmGroup]) -> list[str]:
    """The headline sentences of a view; without any, one sentence that starts with "No headline" and the reason.

    They use only quotable arms with a quotable baseline, and state a difference only if its whole interval supports it.
    """
    shown = _shown(groups)
    if view == "phases":
        sentences = [each.sentence for each in find_phases(shown) if each.quotable]
    elif view == "batch":
        timed = [found for found in map(knee, shown) if found is not None and found.arm.timing.step_s.has_interval]
        sentences = [_knee(found) for found in timed if found.arm.quotable]
    elif view == "inference":
        sentences = [_prefix(group) + text for group in latencies(shown) if (text := _latencies(group.arms))]
    elif view == "ladder":
        sentences = [_prefix(group) + text for group in shown if (text := _ladder(group))]
    elif view == "sharing":
        sentences = [_prefix(group) + text for group in shown for text in sharing_sentences(pairs(group))]
    elif view == "compiler":
        sentences = [_prefix(group) + text for group in shown if (text := _ranking(group))]
    else:
        say = {"remat": _remat, "freeze": _freeze, "inputs": _inputs}.get(view, _general)
        sentences = [_prefix(group) + text for group in shown for text in _compared(group, say)]
    return sentences or [too_short(arms_of(groups)) or f"No headline: {_why_not(groups)}."]


def _shown(groups: Sequence[ArmGroup]) -> list[ArmGroup]:
    """At most MAX_GROUPS groups: of each strategy and scaling, the one with the most devices."""
    quotable = [group for group in groups if any(arm.quotable for arm in group.arms)]
    if len(quotable) <= MAX_GROUPS:
        return quotable
    ascending = sorted(quotable, key=lambda group: group.devices)  # of equal keys, the last and largest one stays
    return list({(group.strategy, group.scaling): group for group in ascending}.values())


def _prefix(group: ArmGroup) -> str:
    """The name of the group before a sentence; nothing if the run has only one group."""
    return f"{group.name}: " if group.name else ""


def pairs(group: ArmGroup) -> list[Row]:
    """The arms that can be compared: the arm and its baseline are valid and measured."""
    arms = (arm for arm in group.arms if arm.verdict not in ("", "baseline"))
    return [arm for arm in arms if arm.quotable and arm.baseline.quotable and arm.ratio.known]


def _compared(group: ArmGroup, say: Callable[[Row, str], str]) -> list[str]:
    """A sentence for each arm, or one for the fastest of many."""
    arms, base = pairs(group), arm_name(group.arms[0])
    if len(arms) <= MAX_ARMS:
        return [say(arm, base) for arm in arms]
    # The best of many noisy values is too good by chance, so the sentence says that it was selected (winner's curse).
    fastest = max(arms, key=lambda arm: arm.gain.value)
    return [f"The fastest of {len(arms)} arms ({SELECTED}): {say(fastest, base)}"]


def _ranking(group: ArmGroup) -> str:
    """The arms by verdict, fastest first, each with its time over the baseline's; "" without comparable arms."""
    arms = sorted(pairs(group), key=lambda arm: arm.ratio.value)
    parts = []
    for verdict, words in (("faster", "faster"), ("slower", "slower"), ("cannot tell", "no difference shown")):
        named = [f"{arm.label} {_ratio_text(arm.ratio)}" for arm in arms if arm.verdict == verdict]
        caveat = f" ({SELECTED})" if named and verdict == "faster" and len(arms) > MAX_ARMS else ""
        parts.append(f"{words}{caveat}: {', '.join(named)}" if named else "")
    text = "; ".join(filter(None, parts))
    return f"Time over that of {group.arms[0].label}: {text}." if text else ""


def arm_name(arm: Row) -> str:
    """The arm's name in a sentence: the value alone if it is clear, such as "bfloat16", else "lever=value"."""
    clear = arm.point.arm in (f"precision={arm.label}", f"remat={arm.label}")
    return arm.label if clear else arm.point.arm or arm.label


def _time(arm: Row, base: str) -> str:
    """A clause: "bfloat16 takes 0.61 [0.59, 0.63] of default's time", or that the comparison is inconclusive."""
    # Another batch makes another step: only times per example compare.
    same = arm.point.examples == arm.baseline.point.examples
    value, quantity = (arm.ratio, "time") if same else (arm.gain.under(1.0), "time per example")
    ratio = _ratio_text(value)
    if arm.verdict == "cannot tell":
        return f"{arm_name(arm)} vs {base}: inconclusive ({ratio} of its {quantity}; {arm.why})"
    return f"{arm_name(arm)} takes {ratio} of {base}'s {quantity}"


def _ratio_text(value: Estimate) -> str:
    ends = f" [{value.lo:.2f}, {value.hi:.2f}]" if value.has_interval else ""
    return f"{value.value:.2f}{ends}"


def _sentence(*parts: str) -> str:
    """The parts that are not empty, as one sentence."""
    return f"{'; '.join(filter(None, parts))}."


def _outcome(arm: Row) -> str:
    """The result of its short training and of the baseline's. There is one training each, so no interval."""
    for name, words in (("final_accuracy", "final accuracy"), ("final_loss", "final loss")):
        value, baseline = arm.point.outcome(name), arm.baseline.point.outcome(name)
        if math.isfinite(value) and math.isfinite(baseline):
            skipped = arm.point.outcome("skipped_steps")
            skips = f", {skipped:.0f} of {counted(arm.point.outcome('steps'), 'step')} skipped" if skipped > 0 else ""
            return f"{words} {value:.3f} vs {baseline:.3f} (one training each{skips})"
    return ""


def _general(arm: Row, base: str) -> str:
    """Time, memory and outcome: what is said of a lever without a sentence of its own."""
    memory = f"its memory is {arm.memory_ratio:.2f} of {base}'s" if math.isfinite(arm.memory_ratio) else ""
    return _sentence(_time(arm, base), memory, _outcome(arm))


def _remat(arm: Row, base: str) -> str:
    """How much scratch memory recomputation saves, and the time it costs."""
    temp = arm.baseline.point.temp_bytes
    share = arm.point.temp_bytes / temp if temp else math.nan  # 0 bytes: there is nothing to save
    memory = f"{share:.2f} of {base}'s scratch memory" if math.isfinite(share) else ""
    extra = arm.ratio
    between = f" [{100 * (extra.lo - 1):.0f}, {100 * (extra.hi - 1):.0f}]" if extra.has_interval else ""
    if arm.verdict == "cannot tell":
        return _sentence(_time(arm, base), f"it holds {memory}" if memory else "")
    costs = f"{100 * (extra.value - 1):+.0f} %{between} time"
    return f"{arm_name(arm)} holds {memory} at {costs}." if memory else f"{arm_name(arm)}: {costs} over {base}."


def _freeze(arm: Row, base: str) -> str:
    """How many parameters and products freezing saves, and the time."""
    compiled, baseline = arm.point.compile_report, arm.baseline.point.compile_report
    if compiled is None or baseline is None:
        return _general(arm, base)
    counts = (compiled.product_flops_per_step, baseline.product_flops_per_step)
    flops = f"{counts[0] / counts[1]:.2f} of the compiled program's products" if counts[0] and counts[1] else ""
    share = f"{100 * (1 - compiled.parameters / baseline.parameters):.0f} % fewer trained parameters"
    return _sentence(_time(arm, base), share, flops, _outcome(arm))


def bound(arm: Row) -> Estimate:
    """The share of the step that waits for input: 1 - T(baseline) / T(arm)."""
    value = arm.ratio.under(1.0)
    return Estimate(value=1 - value.value, lo=1 - value.hi, hi=1 - value.lo)  # a difference swaps the ends


def _inputs(arm: Row, base: str) -> str:
    """The share of the step that waits for input, or the ratio of the times if the arm is no slower."""
    facts = {"arm": arm_name(arm), "base": base, "share": percent(bound(arm), fine=False), "why": arm.why}
    return INPUTS.get(arm.verdict, INPUTS[""]).format(ratio=_ratio_text(arm.ratio), **facts)


def _knee(knee: Knee) -> str:
    """A sentence on the batch above which a larger batch gains little throughput."""
    arm, best = knee.arm, knee.best
    text = KNEES["rising" if knee.rising else "best" if arm is best else "knee"].format(
        batch=arm.point.global_batch,
        best=best.point.global_batch,
        rate=f"{scaled(best.timing.examples_per_s.value, '').strip()} {best.point.unit}/s",
        step=interval(arm.timing.step_s, seconds),
        share=percent(knee.share, fine=False),
        rest=KNEES["none smaller" if knee.below is None else "smaller"],
    )
    if not knee.rising and arm is best and knee.rivals:
        named = " or ".join(str(rival.point.global_batch) for rival in knee.rivals)
        text = f"{text[:-1]}{KNEES['rivals'].format(rivals=named)}"
    return f"{_prefix(knee.group)}{text}{'' if knee.certain else KNEES['uncertain']}"


def _latencies(latencies: Sequence[Row]) -> str:
    """The latencies of the smallest and the largest batch."""
    quotable = [arm for arm in latencies if arm.quotable and arm.p50.known]
    parts = []
    for arm in dict.fromkeys((quotable[0], quotable[-1])) if quotable else ():
        p99 = f", p99 {interval(arm.p99, seconds)}" if arm.p99.known else f", no p99 ({arm.why_no_p99})"
        rate = scaled(arm.timing.examples_per_s.value, "").strip()
        what = f"batch {arm.point.global_batch}: p50 {interval(arm.p50, seconds)}{p99}"
        parts.append(f"{what}, {rate} {arm.point.unit}/s")
    return f"{'; '.join(parts)}." if parts else ""


def _ladder(group: ArmGroup) -> str:
    """A sentence on the speed-up from the first rung to the last, and on the rung that gains most."""
    arms = pairs(group)
    if not arms or arms[-1] is not group.arms[-1]:  # without its last rung, there is no whole ladder to speak of
        return ""
    top, first = arms[-1], group.arms[0]
    text = f"The whole ladder is {_ratio_text(top.gain)} x as fast as {first.label}"
    if top.verdict == "cannot tell":
        text = f"The whole ladder vs {first.label}: inconclusive"
    rungs = zip(group.arms, group.arms[1:], strict=False)
    steps = [(group.speedup(b, a), b) for a, b in rungs if a.usable and b.usable]
    gains = [(value, arm) for value, arm in steps if value.has_interval and value.lo > 1]
    if gains:
        value, arm = max(gains, key=lambda one: one[0].value)
        text += f"; the rung that gains most is {arm.label}, {_ratio_text(value)} x"
    unclear = [arm.label for value, arm in steps if not value.has_interval or value.lo <= 1 <= value.hi]
    slower = [arm.label for value, arm in steps if value.has_interval and value.hi < 1]
    named = (("inconclusive", unclear), ("slower", slower))
    return _sentence(text, *(f"{word}: {', '.join(labels)}" for word, labels in named if labels))


def _why_not(groups: Sequence[ArmGroup]) -> str:
    arms = arms_of(groups)
    if why := lacking(arms):
        return why
    if not any(arm.quotable for arm in arms):
        return WHY_NOT["refused"].format(point=arms[0].point_id, reason=arms[0].gate_reason)
    bad_baselines = {arm.baseline.point_id for arm in arms if arm.quotable and not arm.baseline.quotable}
    return WHY_NOT["baseline"].format(point=min(bad_baselines)) if bad_baselines else WHY_NOT["none"]
