# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A comparison as JSON, for programs. `json_schema` describes it. Unknown values are null; names are not escaped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from jaxbench.records import documents
from jaxbench.report.verdicts.notes import Level, levels, paired
from jaxbench.verdicts.comparison import Change, Comparison
from jaxbench.verdicts.judge import ALPHA, Answer

SCHEMA: Literal[1] = 1


@dataclass(frozen=True, kw_only=True)
class MetricEntry:
    """What is compared. more_is_better: a ratio above 1 is faster."""

    name: str
    unit: str
    more_is_better: bool


@dataclass(frozen=True, kw_only=True)
class Confidence:
    """The confidence levels of the intervals for a point, and for the overall answer."""

    point: Level
    overall: Level


@dataclass(frozen=True, kw_only=True)
class SpreadEntry:
    """Run-to-run variance, used if a side has fewer than 3 processes.

    Attributes:
      sd, df: of the logarithm of processes' medians; null if pairs of processes show it.
      source: whether it was calibrated or assumed, as a clause.
      session_sd: between sessions, such as two days; null if pairs were measured at the same time.
    """

    sd: float
    df: float
    source: str
    session_sd: float | None


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
      overall: the geometric mean over points; processes and rounds are those of the point with the fewest processes.
      factors: of each point with ablations in both runs, in the order of its waterfall.
      across: the fields that were declared to differ.
      software: software differences that may change the time.
      left_out: each point that is not compared: name, colon, reason.
    """

    schema: Literal[1] = SCHEMA
    kind: Literal["comparison"] = "comparison"
    a: str
    b: str
    verdict: str
    exit_code: int
    metric: MetricEntry
    margin: float
    alpha: float = ALPHA
    paired: bool
    confidence: Confidence
    spread: SpreadEntry
    autocorrelation: float
    overall: Answer
    points: tuple[Answer, ...]
    factors: tuple[Change, ...]
    across: tuple[str, ...]
    software: tuple[str, ...]
    left_out: tuple[str, ...]


def json_schema() -> dict[str, Any]:
    """The JSON schema of a comparison."""
    definitions: dict[str, Any] = {}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"urn:jaxbench:comparison:{SCHEMA}"}
    return {**head, **documents.json_schema(ComparisonDocument, definitions, written=True), "$defs": definitions}


def as_json(comparison: Comparison) -> dict[str, Any]:
    answers, metric, spread = comparison.answers, comparison.answers.metric, comparison.answers.spread
    point, overall = levels(answers)
    document = ComparisonDocument(
        a=comparison.a,
        b=comparison.b,
        verdict=comparison.verdict,
        exit_code=comparison.exit_code,
        metric=MetricEntry(name=metric.name, unit=metric.unit, more_is_better=metric.more_is_better),
        margin=answers.margin,
        paired=paired(answers),
        confidence=Confidence(point=point, overall=overall),
        spread=SpreadEntry(
            sd=spread.sd, df=spread.df, source=spread.source,
            session_sd=None if paired(answers) else spread.session_sd,
        ),
        autocorrelation=answers.autocorrelation,
        overall=answers.overall,
        points=answers.points,
        factors=comparison.factors,
        across=comparison.across,
        software=comparison.software,
        left_out=tuple(str(each) for each in comparison.left_out),
    )  # fmt: skip
    return dict(documents.plain(document))
