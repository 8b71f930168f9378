# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One point's clocks: step time, spread, throughput, and whether the second clock agrees with the first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaxbench.analysis.intervals import UNKNOWN, Draws, Estimate, estimate, weighted_median, weighted_ratio
from jaxbench.analysis.points import Point
from jaxbench.records.schema import RoundRecord

CLOCK_LIMIT = 0.05  # how far apart the two clocks may be before the row says so


@dataclass(frozen=True, kw_only=True)
class Timing:
    """What a point's raw samples say. Times in seconds per step; NaN or `UNKNOWN` where there are no samples.

    Attributes:
      samples: how many blocks of K steps.
      step_s: median of block_s / K over all blocks; p95 and cv (standard deviation over mean) of the same.
      examples_per_s: all examples over all seconds of the K blocks.
      clock_ratio: slope between K and 2 K steps, over step_s; 1 when both clocks agree.
      step_draws: (draws,) step_s of each bootstrap draw, for ratios of points; NaN where a draw says nothing.
    """

    samples: int
    rounds: int
    step_s: Estimate
    step_s_p95: float
    step_s_cv: float
    examples_per_s: Estimate
    clock_ratio: Estimate
    clock_note: str
    step_draws: np.ndarray


def measure(point: Point, draws: Draws) -> Timing:
    """Reduces a point's rounds. `draws` must know all its units."""
    rounds = point.rounds
    if not rounds:
        nothing = np.full(len(draws.weights), np.nan)
        return Timing(
            samples=0,
            rounds=0,
            step_s=UNKNOWN,
            step_s_p95=math.nan,
            step_s_cv=math.nan,
            examples_per_s=UNKNOWN,
            clock_ratio=UNKNOWN,
            clock_note="",
            step_draws=nothing,
        )
    count = len(rounds)
    weights = draws.of(point.units)
    steps = np.array([r.steps for r in rounds], dtype=np.float64)
    blocks = np.array([len(r.block_s) for r in rounds])
    owners = np.repeat(np.arange(count), blocks)
    block_s = np.concatenate([r.block_s for r in rounds])
    samples = block_s / steps[owners]
    step_draws = weighted_median(samples, owners, weights)
    step_s = estimate(float(np.median(samples)), step_draws, rounds=count)

    examples = point.global_batch * steps * blocks
    seconds = np.bincount(owners, weights=block_s, minlength=count)
    rate = estimate(examples.sum() / seconds.sum(), weighted_ratio(examples, seconds, weights), rounds=count)
    ratio = _clock_ratio(rounds, weights, step_s.value, step_draws)
    spread = samples.std(ddof=1) / samples.mean() if len(samples) > 1 else math.nan
    return Timing(
        samples=len(samples),
        rounds=count,
        step_s=step_s,
        step_s_p95=float(np.percentile(samples, 95)),
        step_s_cv=float(spread),
        examples_per_s=rate,
        clock_ratio=ratio,
        clock_note=_clock_note(ratio, step_s.value, float(np.median(steps))),
        step_draws=step_draws,
    )


def _clock_ratio(rounds: Sequence[RoundRecord], weights: np.ndarray, step_s: float, step_draws: np.ndarray) -> Estimate:
    """The second clock: what one more step costs, from blocks of K and 2 K steps of the same round, over step_s."""
    with_both = np.array([i for i, r in enumerate(rounds) if r.double_block_s], dtype=np.int64)
    if len(with_both) == 0:
        return UNKNOWN
    single = medians([rounds[i].block_s for i in with_both])
    double = medians([rounds[i].double_block_s for i in with_both])
    slope = (double - single) / np.array([rounds[i].steps for i in with_both])
    held = weights if len(with_both) == len(rounds) else weights[:, with_both]
    slope_draws = weighted_median(slope, np.arange(len(slope)), held)
    return estimate(float(np.median(slope)) / step_s, slope_draws / step_draws, rounds=len(with_both))


def _clock_note(ratio: Estimate, step_s: float, steps: float) -> str:
    said = f"clocks disagree: one more step costs {100 * ratio.value:.0f} % of the step time"
    if ratio.hi < 1 - CLOCK_LIMIT:
        fixed = (1 - ratio.value) * step_s * steps
        fixed_ms = f"{fixed * 1e3:.3g} ms of each block of {steps:.0f} steps"
        return f"{said}, so about {fixed_ms} is a fixed cost (start or fence) that the step time includes"
    if ratio.lo > 1 + CLOCK_LIMIT:
        why = "work queued before the clock started, or the device slowed down"
        return f"{said}, so steps late in a block are slower than early ones ({why})"
    return ""


def medians(groups: Sequence[Sequence[float]]) -> np.ndarray:
    """The median of each group. Returns (len(groups),). Groups must not be empty."""
    lengths = np.array([len(g) for g in groups])
    table = np.full((len(groups), lengths.max()), np.inf)
    table[np.arange(table.shape[1]) < lengths[:, None]] = np.concatenate(groups)
    table.sort(axis=1)
    rows = np.arange(len(groups))
    return (table[rows, (lengths - 1) // 2] + table[rows, lengths // 2]) / 2
