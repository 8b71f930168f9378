# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Whether a new run agrees with a card: each step time and each efficiency is within a margin of the card's or not.

Each question is a ratio, new over card. Its confidence interval comes from `jaxbench.verdicts` and covers the variation
between rounds and between processes. `judge.decide` answers the question. "within": the whole interval is within the
margin, so a larger difference would have been seen. "consistent": the interval contains 1 but reaches beyond the
margin, which proves nothing. A table asks several questions, so its intervals have a joint confidence of 95 %
(Bonferroni): 19 of 20 reproduced cards have no point outside, however many points they have.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass

from jaxbench.analysis import scaling
from jaxbench.analysis.points import CasePoint, MeasuredPoint
from jaxbench.analysis.scaling import Row
from jaxbench.statistics.bootstrap import UNKNOWN, Estimate
from jaxbench.statistics.variance import RunVariance
from jaxbench.verdicts import judge, samples
from jaxbench.verdicts import ratio as ratios
from jaxbench.verdicts.comparable import FinishedRun
from jaxbench.verdicts.judge import CANNOT_TELL
from jaxbench.verdicts.ratio import Drawn, Ratio

ALPHA = 0.05  # the probability that anything in a table is outside by chance
MARGIN = 0.2  # a smaller difference counts as reproduced
WITHIN, OUTSIDE, CONSISTENT, NOT_JUDGED = "within", "outside", "consistent", ""
_VERDICTS = {judge.SAME: WITHIN, judge.FASTER: OUTSIDE, judge.SLOWER: OUTSIDE}
Any_ = MeasuredPoint | CasePoint


@dataclass(frozen=True, kw_only=True)
class Question:
    """One ratio and its verdict.

    Attributes:
      card, now: seconds per step, or efficiencies.
      ratio: now over card, with the joint interval.
      why: what makes it inconclusive; "" otherwise.
    """

    verdict: str = NOT_JUDGED
    card: float = math.nan
    now: float = math.nan
    ratio: Estimate = UNKNOWN
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class PointAgreement:
    """The verdicts on one point. outcome: set if the point cannot be compared; OUTSIDE if it was correct in the card
    and is not now. why: the reason for `outcome`."""

    point: str
    time: Question = Question()
    efficiency: Question = Question()
    outcome: str = NOT_JUDGED
    why: str = ""

    @property
    def verdicts(self) -> tuple[str, ...]:
        return tuple(v for v in (self.outcome, self.time.verdict, self.efficiency.verdict) if v)


def agree(
    card: FinishedRun,
    now: FinishedRun,
    spreads: tuple[RunVariance, RunVariance],
    *,
    same_machine: bool,
    margin: float = MARGIN,
) -> list[PointAgreement]:
    """The verdicts on all points of both runs, the card's points first.

    spreads: the run-to-run variance of the card's machine and of this one. same_machine: whether to judge step times
    too; efficiencies are always judged. margin: as in `judge`.
    """
    mine, theirs = ({point.point: point for point in run.points} for run in (card, now))
    both = [name for name in mine if not _fault(mine[name]) and name in theirs and not _fault(theirs[name])]
    drawn = [_draw(run, both, spread, seed) for run, spread, seed in ((card, spreads[0], 0), (now, spreads[1], 1))]
    rows = [_rows(run) for run in (card, now)]
    times = {name: ratios.ratio([drawn[0][name]], [drawn[1][name]], spreads[1]) for name in both}
    shares = {name: quotient for name in both if (quotient := _share(name, rows, drawn)) is not None}
    alpha = ALPHA / max(1, (len(times) if same_machine else 0) + len(shares))
    answers = []
    for name in dict.fromkeys((*mine, *theirs)):
        if name not in times:
            answers.append(_absent(name, mine.get(name), theirs.get(name)))
            continue
        time = _question(times[name], alpha, margin, [math.exp(side[name].value) for side in drawn])
        if not same_machine:
            time = dataclasses.replace(time, verdict=NOT_JUDGED)
        share = Question()
        if name in shares:
            share = _question(shares[name], alpha, margin, [side[name].efficiency.value for side in rows])
        answers.append(PointAgreement(point=name, time=time, efficiency=share))
    return answers


def _fault(point: Any_) -> str:
    """Why the point has no time to compare; "" if it has a correct time."""
    if not point.rounds or point.status in ("failed", "unsupported"):
        return f"{point.status} ({point.reason})"
    return f"wrong ({point.reason})" if point.check_ok is False else ""


def _absent(name: str, card: Any_ | None, now: Any_ | None) -> PointAgreement:
    """The answer for a point without a correct time on at least one side."""
    then, here = (None if point is None else _fault(point) for point in (card, now))
    if then is None:
        return PointAgreement(point=name, outcome=CANNOT_TELL, why="the card does not have it")
    if then and (here is None or here):
        return PointAgreement(point=name, outcome=CANNOT_TELL, why=f"in the card {then}, now {here or 'missing'}")
    if then:
        return PointAgreement(point=name, outcome=CANNOT_TELL, why=f"now right, in the card {then}")
    if here is None:  # such as more devices than this machine has
        return PointAgreement(point=name, outcome=CANNOT_TELL, why="this run does not have it")
    return PointAgreement(point=name, outcome=OUTSIDE, why=f"right in the card, now {here}")


def _draw(run: FinishedRun, names: list[str], spread: RunVariance, seed: int) -> dict[str, Drawn]:
    side = {point.point: samples.of_rounds(point.rounds) for point in run.points if point.point in names}
    return ratios.draw(side, spread, seed)


def _rows(run: FinishedRun) -> dict[str, Row]:
    """The rows of a training by point; {} for a run of cases."""
    training = [point for point in run.points if isinstance(point, MeasuredPoint)]
    return {row.point.point: row for row in scaling.analyse(training, config=run.config)} if training else {}


def _share(name: str, rows: list[dict[str, Row]], drawn: list[dict[str, Drawn]]) -> Ratio | None:
    """The ratio of the efficiencies; None for a base, for different bases, and for more devices than cores.

    An efficiency is (work / devices) x (base time / point time), and the work is the same on both sides. So only the
    quotient of the times remains.
    """
    pair = [side.get(name) for side in rows]
    bases = {row.base.point for row in pair if row is not None and row.base is not None}
    if None in pair or len(bases) != 1 or name in bases:
        return None
    if any(row is None or row.base is None or row.point.oversubscribed for row in pair):
        return None
    (base,) = bases
    if any(base not in side for side in drawn):
        return None
    one, two = ([_over(side[base], side[name])] for side in drawn)
    return ratios.ratio(one, two)


def _over(base: Drawn, point: Drawn) -> Drawn:
    return Drawn(value=base.value - point.value, draws=base.draws - point.draws, df=min(base.df, point.df))


def _question(quotient: Ratio, alpha: float, margin: float, values: list[float]) -> Question:
    half = quotient.half(alpha)
    card, now = values
    if not math.isfinite(half):
        return Question(verdict=CANNOT_TELL, card=card, now=now, why="one side has only 1 round: measure at least 2")
    ratio = quotient.estimate(alpha) if half < 700 else Estimate(value=math.exp(quotient.log))  # else exp overflows
    unclear = CONSISTENT if abs(quotient.log) <= half else CANNOT_TELL
    verdict = _VERDICTS.get(judge.decide(quotient, alpha, margin), unclear)
    why = "it differs, but by more or by less than the margin" if verdict == CANNOT_TELL else ""
    return Question(verdict=verdict, card=card, now=now, ratio=ratio, why=why)


def exit_code(answers: list[PointAgreement]) -> int:
    """0: all within; 1: some outside; 2: some inconclusive; 3: nothing could be judged."""
    verdicts = [verdict for answer in answers for verdict in answer.verdicts]
    judged = [verdict for verdict in verdicts if verdict in (WITHIN, OUTSIDE, CONSISTENT)]
    if OUTSIDE in verdicts:
        return 1
    if not judged and not any(q.verdict for a in answers for q in (a.time, a.efficiency)):
        return 3
    return 2 if {CANNOT_TELL, CONSISTENT} & {*verdicts} else 0


def widest(answers: list[PointAgreement]) -> Mapping[str, float]:
    """The largest relative difference that an interval could hide, for "time" and for "efficiency"."""
    reaches: dict[str, float] = {}
    for name in ("time", "efficiency"):
        questions = [getattr(answer, name) for answer in answers]
        known = [q.ratio for q in questions if q.verdict in (WITHIN, CONSISTENT) and q.ratio.has_interval]
        reach = [ratio.hi / ratio.value - 1 for ratio in known]
        if reach:
            reaches[name] = max(reach)
    return reaches
