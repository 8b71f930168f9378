# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Times of cases over chosen rounds: ratios over the rounds that two share, and a best that does not flatter."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from jaxbench.analysis.case_rows import CaseRow
from jaxbench.analysis.intervals import MIN_ROUNDS, Draws, Estimate, Unit, estimate, weighted_median

MIN_SPLIT = 4  # rounds: from so many on, one half chooses and the other measures


@dataclass(frozen=True, kw_only=True)
class Best:
    """The fastest of several rows.

    rate: work per second, measured on the rounds that had no part in the choice. note: "" when nothing was chosen
    (one candidate), else which rounds chose and which measured.
    """

    row: CaseRow
    rate: Estimate
    rounds: int
    note: str


def ratio(top: CaseRow, bottom: CaseRow) -> Estimate:
    """Seconds per call of `top` over those of `bottom`, from the rounds that both were measured in together.

    With fewer than MIN_ROUNDS of those, drift does not cancel: the value of all rounds stands without an interval.
    """
    units = [set(row.point.units) for row in (top, bottom)]
    shared = units[0] & units[1]
    value = top.timing.step_s.value / bottom.timing.step_s.value
    if len(shared) < MIN_ROUNDS:
        return Estimate(value=value)
    if units[0] == units[1]:
        return estimate(value, top.timing.step_draws / bottom.timing.step_draws, rounds=len(shared))
    draws = Draws(shared)
    (over, over_draws), (under, under_draws) = (step_s(row, shared, draws) for row in (top, bottom))
    return estimate(over / under, over_draws / under_draws, rounds=len(shared))


def step_s(row: CaseRow, units: Collection[Unit], draws: Draws) -> tuple[float, np.ndarray]:
    """Median seconds per call over the rounds of `units` alone, of which the row has at least one, and its draws."""
    held = [(u, r) for u, r in zip(row.point.units, row.point.rounds, strict=True) if u in units]
    owners = np.repeat(np.arange(len(held)), [len(r.block_s) for _, r in held])
    samples = np.concatenate([np.array(r.block_s) / r.steps for _, r in held])
    return float(np.median(samples)), weighted_median(samples, owners, draws.of([u for u, _ in held]))


def best(rows: list[CaseRow], work: Callable[[CaseRow], float | None]) -> Best | None:
    """The row with the most work per second; None when there is none.

    The largest of many noisy medians is too large even if every median is right. So one half of the rounds chooses and
    the other half measures: every second of all (session, round) of the rows chooses. The odd one out measures, because
    an interval needs 3 rounds and a choice none.
    """
    rows = [row for row in rows if row.timing.step_s.known and (work(row) or 0) > 0]
    if not rows:
        return None
    if len(rows) == 1:
        return _whole(rows[0], work, note="")
    units = sorted({unit for row in rows for unit in row.point.units})
    measuring, choosing = set(units[::2]), set(units[1::2])
    split = [row for row in rows if measuring & set(row.point.units) and choosing & set(row.point.units)]
    if len(units) < MIN_SPLIT or not split:
        winner = max(rows, key=lambda row: float(work(row) or 0) / row.timing.step_s.value)
        return _whole(winner, work, note=f"chosen among {len(rows)} and measured on the same rounds: it may be extreme")
    draws = Draws(measuring)
    winner = max(split, key=lambda row: float(work(row) or 0) / _median(row, choosing))
    value, seconds = step_s(winner, measuring, draws)
    done, rounds = float(work(winner) or 0), len(measuring & set(winner.point.units))
    chosen = f"chosen among {len(rows)} on {len(choosing)} rounds, measured on the other {rounds}"
    return Best(row=winner, rate=estimate(done / value, done / seconds, rounds=rounds), rounds=rounds, note=chosen)


def _median(row: CaseRow, units: Collection[Unit]) -> float:
    held = (r for u, r in zip(row.point.units, row.point.rounds, strict=True) if u in units)
    return float(np.median(np.concatenate([np.array(r.block_s) / r.steps for r in held])))


def _whole(row: CaseRow, work: Callable[[CaseRow], float | None], *, note: str) -> Best:
    return Best(row=row, rate=per_second(float(work(row) or 0), row), rounds=row.timing.rounds, note=note)


def per_second(done: float, row: CaseRow) -> Estimate:
    """`done` per call over seconds per call: the ends of the interval swap."""
    t = row.timing.step_s
    if not t.has_interval or not math.isfinite(done):
        return Estimate(value=done / t.value)
    return Estimate(value=done / t.value, lo=done / t.hi, hi=done / t.lo)
