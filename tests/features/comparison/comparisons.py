# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Comparisons to display, from fabricated times and the real judge."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.verdicts import of_times
from jaxbench.features.comparison import judge, sequential
from jaxbench.features.comparison.comparable import LeftOut
from jaxbench.features.comparison.comparison import Comparison
from jaxbench.features.comparison.judge import METRICS
from jaxbench.features.comparison.ratio import Sample
from jaxbench.statistics.bootstrap import ASSUMED, CALIBRATED, RunVariance

STEADY = RunVariance(
    sd=0.03, df=7, session_sd=0.002, session_df=9, session_kind=CALIBRATED, source="calibrated here"
)  # fmt: skip
HOSTILE = "<script>alert(1)</script>|a]]>\x00\x1b[31m\u202e\ud800\uffff é 日本 `x` **b** &amp; [red]$y$"


def times(step_s: float, seed: int, *, processes: int = 5, rounds: int = 4, between: float = 0.004) -> Sample:
    """A point with a difference of `between` between processes, and half of that between blocks."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(processes):
        own = step_s * np.exp(between * random.standard_normal())
        found.append((own * np.exp(between / 2 * random.standard_normal((rounds, 6)))).tolist())
    return of_times(found, name=f"process of {seed}")


def compared(
    factors: Sequence[float], *, metric: str = "step_s", names: Sequence[str] = (), processes: int = 5, rounds: int = 4,
    between: float = 0.004, left_out: tuple[LeftOut, ...] = (), software: tuple[str, ...] = (), a: str = "results/a",
    paired: bool = False,
) -> Comparison:  # fmt: skip
    """factors: B's time over A's, of each point."""
    names = names or [f"data_parallel/strong/{i + 1}" for i in range(len(factors))]
    how: Any = dict(processes=processes, rounds=rounds, between=between)
    left = {n: times(0.0123 * (i + 1), 2 * i, **how) for i, n in enumerate(names)}
    pairs = enumerate(zip(names, factors, strict=True))
    right = {n: times(0.0123 * (i + 1) * factor, 2 * i + 1, **how) for i, (n, factor) in pairs}
    if metric == "throughput":
        left, right = ({n: dataclasses.replace(s, work=256.0) for n, s in side.items()} for side in (left, right))
    if paired:
        answers = sequential.judge_pairs(left, right, METRICS[metric], margin=judge.MARGIN)
    else:
        answers = judge.judge(left, right, METRICS[metric], STEADY if processes > 2 else ASSUMED)
    return Comparison(a=a, b="results/b", answers=answers, left_out=left_out, software=software, across=())


def renamed(comparison: Comparison, name: str) -> Comparison:
    """The comparison with this name everywhere."""
    answers = comparison.answers
    points = tuple(dataclasses.replace(point, name=name) for point in answers.points)
    answers = dataclasses.replace(answers, points=points)
    said = dict(a=name, b=name, left_out=(LeftOut(name, "not in B"),), software=(name,), across=(name,))
    return dataclasses.replace(comparison, answers=answers, **said)  # type: ignore[arg-type]


MIXED = (1.0, 1.001, 1.08, 0.9, 1.03, 0.985)
CASES = {
    "normal": compared(MIXED, software=("versions.jax: 0.10.2 in A, 0.12.0 in B",)),
    "one point": compared((1.2,)),
    "few processes": compared(MIXED, processes=1),
    "nothing told": compared((1.0, 1.1), processes=1, rounds=1),
    "hostile": compared(
        (1.0, 1.3), names=(HOSTILE, "\x01"), left_out=(LeftOut(HOSTILE, "not in B"),), software=(HOSTILE,), a=HOSTILE
    ),
    "throughput": compared(MIXED, metric="throughput"),
    "left out": compared(
        (1.0, 0.8), left_out=(LeftOut("tensor/strong/4", "not in B"), LeftOut("fsdp/weak/2", "wrong in A (off by 3)"))
    ),
    "slow in one": compared((1.3, 0.7, 0.7)),
    "forty": compared([1 + 0.004 * (i - 20) for i in range(40)]),
    "pairs": compared(MIXED, processes=13, paired=True),
    "pairs of one point": compared((1.05,), processes=8, paired=True, metric="throughput"),
    "few pairs": compared((1.05, 1.0), processes=2, paired=True),
    "hundred": compared([1 + 0.002 * (i % 37 - 18) for i in range(100)], between=0.02),
}
