# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A comparison as JSON, for programs. `json_schema` describes it. Unknown values are null; names are not escaped."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

from jaxbench.analysis.intervals import Estimate
from jaxbench.records import documents
from jaxbench.records.documents import Count, NonNegative, Positive
from jaxbench.report.verdicts.notes import levels, paired
from jaxbench.verdicts.comparison import Comparison
from jaxbench.verdicts.judge import ALPHA, Answer

SCHEMA: Literal[1] = 1


@dataclass(frozen=True)
class Interval:
    """A value with its 95 % confidence interval."""

    value: float | None
    lo: float | None
    hi: float | None

    @classmethod
    def of(cls, estimate: Estimate) -> Interval:
        return cls(_finite(estimate.value), _finite(estimate.lo), _finite(estimate.hi))


@dataclass(frozen=True)
class Both:
    """Counts of A and of B."""

    a: Count
    b: Count


@dataclass(frozen=True, kw_only=True)
class AnswerEntry:
    """The answer for a point, or for the geometric mean over points.

    Attributes:
      a, b: the metric of each side in its unit; null in the overall answer of several points.
      ratio: B's metric over A's.
      why: why it cannot be told, with what would help; "" otherwise.
      processes, rounds: of the overall answer, those of the point with the fewest processes.
    """

    name: str
    verdict: Literal["faster", "slower", "same", "cannot tell"]
    a: Positive | None
    b: Positive | None
    ratio: Interval
    why: str
    processes: Both
    rounds: Both


@dataclass(frozen=True, kw_only=True)
class FactorEntry:
    """A factor of a point, or its time on one device, in both runs. faster: B's speed over A's by it alone."""

    point: str
    name: str
    a: Interval
    b: Interval
    faster: Interval


@dataclass(frozen=True, kw_only=True)
class MetricEntry:
    """What is compared."""

    name: str
    unit: str
    more_is_better: bool


@dataclass(frozen=True, kw_only=True)
class LevelEntry:
    """Confidence levels of an interval: as shown, and as the verdict uses it; null: there is no interval yet."""

    shown: Positive | None
    decides: Positive | None


@dataclass(frozen=True, kw_only=True)
class Confidence:
    """The confidence levels for a point, and for the overall answer."""

    point: LevelEntry
    overall: LevelEntry


@dataclass(frozen=True, kw_only=True)
class SpreadEntry:
    """Run-to-run variance, used if a side has fewer than 3 processes.

    Attributes:
      sd, df: of the logarithm of processes' medians; null if pairs of processes show it.
      source: calibrated or assumed, as a clause.
      session_sd: between two sessions; null if both sides were measured in one session.
    """

    sd: NonNegative | None
    df: Positive | None
    source: str
    session_sd: NonNegative | None


@dataclass(frozen=True, kw_only=True)
class ComparisonDocument:
    """Two runs, compared point by point.

    Attributes:
      a, b: names of the runs. B is judged against A.
      verdict: slower if any answer is, otherwise the overall one.
      exit_code: 0 same or faster, 1 slower, 2 cannot tell.
      margin: a smaller difference counts as none: ratios from 1 / (1 + margin) to 1 + margin.
      alpha: the largest chance of any false "faster" or "slower" in the table.
      paired: whether ratios are within pairs of processes, measured until the verdict was clear.
      autocorrelation: of neighbouring pairs; null without pairs.
      factors: of each point with a waterfall in both runs, in the order of the waterfall.
      across: the fields that were declared to differ.
      software: a sentence for each difference that may explain a difference in time.
      left_out: for each point that is not compared, its name and the reason.
    """

    schema: Literal[1]
    kind: Literal["comparison"]
    a: str
    b: str
    verdict: Literal["faster", "slower", "same", "cannot tell"]
    exit_code: Literal[0, 1, 2]
    metric: MetricEntry
    margin: NonNegative
    alpha: Positive
    paired: bool
    confidence: Confidence
    spread: SpreadEntry
    autocorrelation: float | None
    overall: AnswerEntry
    points: tuple[AnswerEntry, ...]
    factors: tuple[FactorEntry, ...]
    across: tuple[str, ...]
    software: tuple[str, ...]
    left_out: tuple[str, ...]


def json_schema() -> dict[str, Any]:
    """The JSON schema of a comparison."""
    definitions: dict[str, Any] = {}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"urn:jaxbench:comparison:{SCHEMA}"}
    return {**head, **documents.json_schema(ComparisonDocument, definitions), "$defs": definitions}


def as_json(comparison: Comparison) -> dict[str, Any]:
    answers, spread = comparison.answers, comparison.answers.spread
    point, overall = (LevelEntry(shown=level.shown, decides=level.decides) for level in levels(answers))
    metric = answers.metric
    document = ComparisonDocument(
        schema=SCHEMA,
        kind="comparison",
        a=comparison.a,
        b=comparison.b,
        verdict=comparison.verdict,  # type: ignore[arg-type]
        exit_code=comparison.exit_code,  # type: ignore[arg-type]
        metric=MetricEntry(name=metric.name, unit=metric.unit, more_is_better=metric.more_is_better),
        margin=answers.margin,
        alpha=ALPHA,
        paired=paired(answers),
        confidence=Confidence(point=point, overall=overall),
        spread=SpreadEntry(
            sd=_finite(spread.sd),
            df=_finite(spread.df),
            source=spread.source,
            session_sd=None if paired(answers) else _finite(spread.session_sd),
        ),
        autocorrelation=_finite(answers.autocorrelation),
        overall=_answer(answers.overall),
        points=tuple(_answer(each) for each in answers.points),
        factors=tuple(
            FactorEntry(
                point=each.point, name=each.name, a=Interval.of(each.a), b=Interval.of(each.b),
                faster=Interval.of(each.faster),
            )
            for each in comparison.factors
        ),
        across=comparison.across,
        software=comparison.software,
        left_out=tuple(str(each) for each in comparison.left_out),
    )  # fmt: skip
    return asdict(document)


def _answer(answer: Answer) -> AnswerEntry:
    return AnswerEntry(
        name=answer.name,
        verdict=answer.verdict,  # type: ignore[arg-type]
        a=_finite(answer.a),
        b=_finite(answer.b),
        ratio=Interval.of(answer.ratio),
        why=answer.why,
        processes=Both(*answer.processes),
        rounds=Both(*answer.rounds),
    )


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
