# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A comparison as JSON, for programs; described in ``report/schemas/comparison.schema.json``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from jaxbench.analysis.intervals import Estimate
from jaxbench.report.verdicts.notes import levels, paired
from jaxbench.verdicts.comparison import Comparison
from jaxbench.verdicts.factors import Change
from jaxbench.verdicts.judge import ALPHA, Answer

SCHEMA = 1
SCHEMA_FILE = Path(__file__).parents[1] / "schemas" / "comparison.schema.json"


def as_json(comparison: Comparison) -> dict[str, Any]:
    """The comparison as JSON values. Unknown values are null. Names are not escaped: readers must escape them."""
    answers = comparison.answers
    spread, (point, overall) = answers.spread, levels(answers)
    return {
        "schema": SCHEMA,
        "kind": "comparison",
        "a": comparison.a,
        "b": comparison.b,
        "verdict": comparison.verdict,
        "exit_code": comparison.exit_code,
        "metric": {name: getattr(answers.metric, name) for name in ("name", "unit", "more_is_better")},
        "margin": answers.margin,
        "alpha": ALPHA,
        "paired": paired(answers),
        "confidence": {"point": point._asdict(), "overall": overall._asdict()},
        "spread": {
            "sd": _finite(spread.sd),
            "df": _finite(spread.df),
            "source": spread.source,
            "session_sd": None if paired(answers) else _finite(spread.session_sd),
        },
        "autocorrelation": _finite(answers.autocorrelation),
        "overall": _answer(answers.overall),
        "points": [_answer(each) for each in answers.points],
        "factors": [_change(each) for each in comparison.factors],
        "across": list(comparison.across),
        "software": list(comparison.software),
        "left_out": [str(each) for each in comparison.left_out],
    }


def _answer(answer: Answer) -> dict[str, Any]:
    return {
        "name": answer.name,
        "verdict": answer.verdict,
        "a": _finite(answer.a),
        "b": _finite(answer.b),
        "ratio": _estimate(answer.ratio),
        "why": answer.why,
        "processes": {"a": answer.processes[0], "b": answer.processes[1]},
        "rounds": {"a": answer.rounds[0], "b": answer.rounds[1]},
    }


def _change(change: Change) -> dict[str, Any]:
    estimates = {name: _estimate(getattr(change, name)) for name in ("a", "b", "faster")}
    return {"point": change.point, "name": change.name, **estimates}


def _estimate(estimate: Estimate) -> dict[str, float | None]:
    return {name: _finite(getattr(estimate, name)) for name in ("value", "lo", "hi")}


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
