# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The phases of a training step, from the times of its prefixes: forward, gradient, local update, whole step.

Each prefix adds one phase to the previous prefix, so a phase is the difference of two times:
forward, backward = gradient - forward, update = local - gradient, communication = step - local.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaxbench.analysis import paired_ratio
from jaxbench.analysis.arms import ArmGroup, ArmResult
from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.quantities import interval, percent, seconds

PARTS = ("forward", "gradient", "local", "step")
NAMES = ("forward", "backward", "update", "communication")


@dataclass(frozen=True, kw_only=True)
class Phase:
    """The difference of two prefixes.

    name: "update + communication" if the prefix between them was not measured. indices: which of `NAMES` it contains.
    """

    name: str
    indices: tuple[int, ...]
    step_s: Estimate
    share: Estimate  # relative to the longest measured prefix

    @property
    def above_zero(self) -> bool:
        """Whether the whole interval is above 0."""
        return self.step_s.has_interval and self.step_s.lo > 0


@dataclass(frozen=True, kw_only=True)
class Phases:
    """The phases of one arm group and setting of the other levers. They add up to `whole` by construction.

    Attributes:
      setting: such as "batch=64" if the run has several settings.
      whole: the time of the longest measured prefix. last: its name.
      rounds: the number of rounds that all prefixes share.
    """

    place: ArmGroup
    setting: str
    phases: list[Phase]
    whole: Estimate
    last: str
    rounds: int
    arms: list[ArmResult]

    @property
    def name(self) -> str:
        return ", ".join(filter(None, [self.place.name, self.setting]))

    @property
    def honest(self) -> bool:
        return all(arm.honest for arm in self.arms)

    @property
    def sentence(self) -> str:
        """The phases with their intervals and shares, and whether each is above 0, as sentences."""
        parts = [f"{p.name} {interval(p.step_s, _time)} ({percent(p.share, fine=False)})" for p in self.phases]
        begin = f"{self.name}: " if self.name else ""
        return f"{begin}{interval(self.whole, _time)} per {self.last} = {' + '.join(parts)}. {self._verdict()}"

    def _verdict(self) -> str:
        negative = [p.name for p in self.phases if p.step_s.has_interval and p.step_s.hi < 0]
        unclear = [p.name for p in self.phases if not p.above_zero and p.name not in negative]
        if not self.whole.has_interval:
            return f"Whether they add up is unknown: there are too few shared rounds ({self.rounds}) for an interval."
        if negative:
            verb = "has a negative time" if len(negative) == 1 else "have negative times"
            return f"They do not add up: {' and '.join(negative)} {verb}, so a part is not a prefix of the next."
        if unclear:
            return f"Inconclusive, because the interval contains 0: {' and '.join(unclear)}."
        return "They add up: every interval is above 0."


def find(places: Sequence[ArmGroup]) -> list[Phases]:
    """The phases of every arm group and setting with at least two measured prefixes."""
    results = []
    for place in places:
        settings: dict[tuple[tuple[str, str], ...], list[ArmResult]] = {}
        for arm in place.arms:
            if arm.point.levers.get("part") in PARTS and arm.believed:
                others = tuple(item for item in sorted(arm.point.levers.items()) if item[0] != "part")
                settings.setdefault(others, []).append(arm)
        varying = {item for others in settings for item in others if any(item not in other for other in settings)}
        for others, arms in settings.items():
            by_part = {arm.point.levers["part"]: arm for arm in reversed(arms)}
            ordered = [by_part[part] for part in PARTS if part in by_part]
            if len(ordered) > 1:
                setting = ", ".join(f"{name}={value}" for name, value in others if (name, value) in varying)
                results.append(_phases(place, setting, ordered))
    return results


def _phases(place: ArmGroup, setting: str, arms: list[ArmResult]) -> Phases:
    measured = paired_ratio.times(arms)
    step_s = np.concatenate([[0.0], measured.step_s])
    draws = np.concatenate([np.zeros_like(measured.draws[:1]), measured.draws])
    stops = [-1, *(PARTS.index(arm.point.levers["part"]) for arm in arms)]
    phases = []
    for i in range(1, len(stops)):
        indices = tuple(range(stops[i - 1] + 1, stops[i] + 1))
        value, drawn = step_s[i] - step_s[i - 1], draws[i] - draws[i - 1]
        phases.append(
            Phase(
                name=" + ".join(NAMES[index] for index in indices),
                indices=indices,
                step_s=measured.estimate(value, drawn),
                share=measured.estimate(value / step_s[-1], drawn / draws[-1]),
            )
        )
    whole = measured.estimate(float(step_s[-1]), draws[-1])
    last = arms[-1].point.levers["part"]
    return Phases(
        place=place, setting=setting, phases=phases, whole=whole, last=last, rounds=measured.rounds, arms=arms
    )


def _time(value: float) -> str:
    return seconds(value) if value >= 0 else f"-{seconds(-value)}"
