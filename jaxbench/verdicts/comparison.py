# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Compares two run folders: the answers, and the facts that a reader needs to judge them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxbench.verdicts import calibration, comparable, factors, judge
from jaxbench.verdicts.comparable import LeftOut
from jaxbench.verdicts.factors import Change, WaterfallPair
from jaxbench.verdicts.judge import EXIT, Answers
from jaxbench.verdicts.metric import Metric


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two runs, compared.

    Attributes:
      a, b: names of the runs, such as their paths.
      left_out: the points that are not compared.
      software: a sentence for each difference in software, which may explain a difference in time.
      across: the fields that were declared to differ.
      waterfalls: one pair for each point with a waterfall in both runs.
    """

    a: str
    b: str
    answers: Answers
    left_out: tuple[LeftOut, ...]
    software: tuple[str, ...]
    across: tuple[str, ...] = ()
    waterfalls: tuple[WaterfallPair, ...] = ()

    @property
    def factors(self) -> tuple[Change, ...]:
        """How much faster B is by each factor of the waterfalls."""
        return factors.changes(self.waterfalls)

    @property
    def verdict(self) -> str:
        return self.answers.verdict

    @property
    def exit_code(self) -> int:
        return EXIT[self.verdict]


def compare(a: Path, b: Path, metric: Metric, *, margin: float, across: Sequence[str] = ()) -> Comparison:
    """Compares the run folders `a` and `b`.

    margin: the relative difference that counts as none, between 0 and 1. across: as in `comparable.pair`.
    Raises NotComparable.
    """
    left, right = comparable.read(a), comparable.read(b)
    pair = comparable.pair(left, right, across)
    known = calibration.spread_of(right.manifest, str(right.config.get("experiment", "")))
    answers = judge.judge(pair.a, pair.b, metric, known, margin=margin)
    return Comparison(
        a=str(a), b=str(b), answers=answers, left_out=pair.left_out, software=pair.software, across=tuple(across),
        waterfalls=factors.pairs(left, right, across),
    )  # fmt: skip
