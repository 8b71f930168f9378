# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One point's clocks: step time, spread, throughput, and whether the second clock agrees with the first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxbench.analysis.intervals import MIN_ROUNDS, UNKNOWN, Draws, Estimate, estimate, weighted_median, weighted_ratio
from jaxbench.analysis.measured import Measured
from jaxbench.records.schema import RoundRecord

CLOCK_LIMIT = 0.05  # relative difference of the two clocks from which a row has a note


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Statistics of a point's samples. Times in seconds per step; NaN or `UNKNOWN` without samples.

    Attributes:
      samples: how many blocks of K steps.
      step_s: median of block_s / K over all blocks; p95 and cv (standard deviation over mean) of the same.
      examples_per_s: all examples over all seconds of the K blocks.
      clock_ratio: slope between K and 2 K steps, over step_s; 1 when both clocks agree.
      draws: of the run. step_draws: (draws,) step_s of each of them, NaN for a draw without samples.
    """

    samples: int = 0
    rounds: int = 0
    step_s: Estimate = UNKNOWN
    step_s_p95: float = math.nan
    step_s_cv: float = math.nan
    examples_per_s: Estimate = UNKNOWN
    clock_ratio: Estimate = UNKNOWN
    clock_note: str = ""
    draws: Draws
    step_draws: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Loop:
    """The slope between K and 2 K iterations of a jitted loop; UNKNOWN without one.

    Attributes:
      iteration_s: seconds per iteration, without the overhead of a call, which cancels in the slope.
      ratio: iteration_s over the seconds per call; 1 when a call has no overhead.
    """

    iteration_s: Estimate = UNKNOWN
    ratio: Estimate = UNKNOWN


def measure(point: Measured[Any], draws: Draws, *, examples: float) -> Timing:
    """Reduces a point's rounds. draws: with all its units. examples: per step or call."""
    rounds = point.rounds
    if not rounds:
        return Timing(draws=draws, step_draws=np.full(len(draws.weights), np.nan))
    count = len(rounds)
    weights = draws.of(point.units)
    steps = np.array([r.steps for r in rounds], dtype=np.float64)
    blocks = np.array([len(r.block_s) for r in rounds])
    owners = np.repeat(np.arange(count), blocks)
    block_s = np.concatenate([r.block_s for r in rounds])
    samples = block_s / steps[owners]
    step_draws = weighted_median(samples, owners, weights)
    step_s = estimate(float(np.median(samples)), step_draws, rounds=count)

    done = examples * steps * blocks
    seconds = np.bincount(owners, weights=block_s, minlength=count)
    rate = estimate(done.sum() / seconds.sum(), weighted_ratio(done, seconds, weights), rounds=count)
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
        draws=draws,
        step_draws=step_draws,
    )


def measure_loop(point: Measured[Any], timing: Timing) -> Loop:
    """Reduces the loops of a point's rounds. timing: of the same point."""
    indices = [i for i, r in enumerate(point.rounds) if r.loop_steps and r.loop_s and r.double_loop_s]
    if not indices:
        return Loop()
    rounds = [point.rounds[i] for i in indices]
    per_round = _slopes([r.loop_s for r in rounds], [r.double_loop_s for r in rounds], [r.loop_steps for r in rounds])
    slope_draws = _slope_draws(per_round, indices, timing.draws.of(point.units))
    slope, step_s = float(np.median(per_round)), timing.step_s.value
    return Loop(
        iteration_s=estimate(slope, slope_draws, rounds=len(indices)),
        ratio=estimate(slope / step_s, slope_draws / timing.step_draws, rounds=len(indices)),
    )


def _clock_ratio(rounds: Sequence[RoundRecord], weights: np.ndarray, step_s: float, step_draws: np.ndarray) -> Estimate:
    """The second clock: the cost of one more step, from blocks of K and 2 K steps of the same round, over step_s."""
    indices = [i for i, r in enumerate(rounds) if r.double_block_s]
    if not indices:
        return UNKNOWN
    doubled = [rounds[i] for i in indices]
    slopes = _slopes([r.block_s for r in doubled], [r.double_block_s for r in doubled], [r.steps for r in doubled])
    slope_draws = _slope_draws(slopes, indices, weights)
    return estimate(float(np.median(slopes)) / step_s, slope_draws / step_draws, rounds=len(indices))


def _slopes(single: Sequence[Sequence[float]], double: Sequence[Sequence[float]], steps: Sequence[int]) -> np.ndarray:
    """The cost of one more step in each round: (rounds,) seconds, from the medians of K and of 2 K steps."""
    return (medians(double) - medians(single)) / np.array(steps)


def _slope_draws(slopes: np.ndarray, indices: list[int], weights: np.ndarray) -> np.ndarray:
    """The median slope of each draw. indices: the column of `weights` of each slope."""
    columns = weights if len(indices) == weights.shape[1] else weights[:, indices]
    return weighted_median(slopes, np.arange(len(slopes)), columns)


def _clock_note(ratio: Estimate, step_s: float, steps: float) -> str:
    text = f"clocks disagree: one more step costs {100 * ratio.value:.0f} % of the step time"
    if ratio.hi < 1 - CLOCK_LIMIT:
        fixed = (1 - ratio.value) * step_s * steps
        fixed_ms = f"{fixed * 1e3:.3g} ms of each block of {steps:.0f} steps"
        return f"{text}, so about {fixed_ms} is a fixed cost (start or fence) that the step time includes"
    if ratio.lo > 1 + CLOCK_LIMIT:
        why = "work queued before the clock started, or the device slowed down"
        return f"{text}, so steps late in a block are slower than early ones ({why})"
    return ""


def no_interval(timing: Timing) -> list[str]:
    """A note on too few rounds, or none."""
    if not (timing.step_s.known and timing.rounds < MIN_ROUNDS):
        return []
    return [f"no interval: it has {timing.rounds} of the {MIN_ROUNDS} rounds that an interval needs"]


def unsettled(point: Measured[Any]) -> list[str]:
    count = sum(not r.settled for r in point.rounds)
    return [f"warm-up had not settled in {count} of {len(point.rounds)} rounds"] if count else []


def medians(groups: Sequence[Sequence[float]]) -> np.ndarray:
    """The median of each group. Returns (len(groups),). Groups must not be empty."""
    lengths = np.array([len(g) for g in groups])
    table = np.full((len(groups), lengths.max()), np.inf)
    table[np.arange(table.shape[1]) < lengths[:, None]] = np.concatenate(groups)
    table.sort(axis=1)
    rows = np.arange(len(groups))
    return (table[rows, (lengths - 1) // 2] + table[rows, lengths // 2]) / 2
