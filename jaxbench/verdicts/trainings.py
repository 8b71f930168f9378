# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Which of two trainings reaches its target sooner: B's seconds and steps over A's, with an interval over seeds.

The value of a side is the geometric mean over its seeds. The interval of the ratio is Student's t on the logarithms,
with Welch's degrees of freedom. A seed that did not reach the target is censored: it counts with the time or steps that
it used, which is a lower limit. So only a verdict against its own side stands.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaxbench.errors import UserError
from jaxbench.records.learned import Learned, position
from jaxbench.verdicts.judge import ALPHA, CANNOT_TELL, FASTER, SLOWER, decide
from jaxbench.verdicts.ratio import Ratio, of_seeds


@dataclass(frozen=True, kw_only=True)
class Reached:
    """The answer in one unit.

    Attributes:
      what: "seconds" or "steps".
      a, b: geometric means over seeds, in that unit.
      times: B over A.
      a_lost, b_lost: how many seeds did not reach the target.
      seeds: how many seeds A and B have.
    """

    what: str
    verdict: str
    a: float
    b: float
    times: Ratio
    a_lost: int
    b_lost: int
    seeds: tuple[int, int]

    @property
    def sentence(self) -> str:
        """The answer as a sentence."""
        words = {FASTER: "B reaches the target sooner", SLOWER: "A reaches the target sooner"}
        answer = words.get(self.verdict, "both reach the target equally soon" if self.verdict != CANNOT_TELL else "")
        limits = ["at least " if lost else "" for lost in (self.a_lost, self.b_lost)]
        numbers = f"A {limits[0]}{self.a:.4g}, B {limits[1]}{self.b:.4g}"
        if not answer:
            lost = self.a_lost or self.b_lost
            answer = "cannot tell which reaches the target sooner"
            answer += f" ({'a seed did not reach it' if lost else self._why()})"
        interval = ""
        if self.times.se > 0 and not (self.a_lost or self.b_lost):
            found = self.times.estimate()
            interval = f"; B over A is {found.value:.3g} [{found.lo:.3g}, {found.hi:.3g}]"
        return f"In {self.what}: {answer}. {numbers}{interval}."

    def _why(self) -> str:
        if min(self.seeds) < 2:
            return "one seed does not show how much seeds differ: train more with --config.seed=1, and so on"
        return "the difference is within the variation between seeds"


def compare(a: Sequence[Learned], b: Sequence[Learned], *, margin: float) -> tuple[Reached, Reached]:
    """The answers in seconds and in steps. a, b: the seeds of each side. margin: as in `judge`.

    Raises UserError if the targets differ, or if a training has no evaluation.
    """
    targets = sorted({f"{one.metric} {one.target:g}" for one in (*a, *b)})
    if len(targets) > 1:
        raise UserError(f"the trainings have different targets, {targets[0]} and {targets[1]}: give equal ones.")
    if empty := [one.name for one in (*a, *b) if not one.rows]:
        raise UserError(f"the training '{empty[0]}' has no evaluation yet: let it go on.")
    return _answer("seconds", a, b, margin), _answer("steps", a, b, margin)


def _answer(what: str, a: Sequence[Learned], b: Sequence[Learned], margin: float) -> Reached:
    sides = [np.log([_taken(one, what) for one in side]) for side in (a, b)]
    lost = [sum(one.at_target() is None for one in side) for side in (a, b)]
    times = of_seeds(*sides)
    verdict = decide(times, ALPHA, margin)
    if any(lost):
        stands = {SLOWER} if not lost[0] else {FASTER} if not lost[1] else set()
        verdict = verdict if verdict in stands else CANNOT_TELL
    return Reached(
        what=what, verdict=verdict, a=math.exp(float(np.mean(sides[0]))), b=math.exp(float(np.mean(sides[1]))),
        times=times, a_lost=lost[0], b_lost=lost[1], seeds=(len(a), len(b)),
    )  # fmt: skip


def _taken(one: Learned, what: str) -> float:
    """The seconds or steps that a training needed to its target, or has used so far."""
    return position(one.at_target() or one.rows[-1], what, one.batch)
