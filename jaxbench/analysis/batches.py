# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Effects of the batch size: the knee of throughput over batch, and the latency of single calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaxbench.analysis.arms import ArmGroup, ArmResult
from jaxbench.analysis.intervals import UNKNOWN, Estimate, estimate

NEAR = 0.9  # above this share of the best throughput, a larger batch makes steps longer and gains little
MIN_LATENCIES = 100  # with fewer single calls, the 99th percentile would be the maximum


@dataclass(frozen=True, kw_only=True, eq=False)
class Knee:
    """The smallest measured batch with at least `NEAR` of the best throughput of its group.

    Attributes:
      share: its throughput over the best throughput, from the rounds that both share.
      below: the next smaller measured batch and its share; None if the knee is the smallest.
      rising: the largest batch is the best by a factor above 1 / NEAR, so the true knee may be larger.
      certain: the whole interval of `share` is above NEAR, and the whole interval of the smaller batch is below it.
    """

    place: ArmGroup
    arm: ArmResult
    best: ArmResult
    share: Estimate
    below: ArmResult | None
    below_share: Estimate
    rising: bool

    @property
    def certain(self) -> bool:
        smaller = self.below is None or (self.below_share.has_interval and self.below_share.hi < NEAR)
        return smaller and (self.arm is self.best or (self.share.has_interval and self.share.lo >= NEAR))


def knee(place: ArmGroup) -> Knee | None:
    """The knee of a group of arms that differ only in the batch; None with fewer than three batches."""
    arms = sorted((arm for arm in place.arms if arm.believed), key=lambda arm: arm.point.global_batch)
    if len({arm.point.global_batch for arm in arms}) < 3:
        return None
    best = max(arms, key=lambda arm: arm.point.global_batch / arm.timing.step_s.value)
    shares = [Estimate(value=1.0) if arm is best else place.speedup(arm, best) for arm in arms]
    index = next(i for i, share in enumerate(shares) if share.value >= NEAR)
    rising = best is arms[-1] and shares[-2].value < NEAR
    return Knee(
        place=place, arm=arms[index], best=best, share=shares[index], below=arms[index - 1] if index else None,
        below_share=shares[index - 1] if index else UNKNOWN, rising=rising,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class Latency:
    """Percentiles of the wall time of single calls, in seconds. why_not: why p99 or both are unknown."""

    arm: ArmResult
    calls: int
    p50: Estimate = UNKNOWN
    p99: Estimate = UNKNOWN
    why_not: str = ""


def latency(arm: ArmResult) -> Latency:
    """The latency of an arm, from blocks of one call only: a longer block is an average and has no percentiles."""
    rounds = [(unit, r) for unit, r in zip(arm.point.units, arm.point.rounds, strict=True) if r.steps == 1]
    if not rounds:
        why = "its blocks have more than one call" if arm.point.rounds else "it was not measured"
        return Latency(arm=arm, calls=0, why_not=why)
    samples = np.concatenate([r.block_s for _, r in rounds])
    owners = np.repeat(np.arange(len(rounds)), [len(r.block_s) for _, r in rounds])
    draws, units = arm.timing.draws, [unit for unit, _ in rounds]
    weights, differing = draws.of(units), draws.differing(arm.point.point, units)
    values = [_quantile(samples, q) for q in (0.5, 0.99)]
    drawn = [
        draws.widened(v, quantile(samples, owners, weights, q), units) for v, q in zip(values, (0.5, 0.99), strict=True)
    ]
    p50, p99 = (estimate(v, d * differing, rounds=len(rounds)) for v, d in zip(values, drawn, strict=True))
    if len(samples) >= MIN_LATENCIES:
        return Latency(arm=arm, calls=len(samples), p50=p50, p99=p99)
    why = f"{len(samples)} single calls, and a 99th percentile needs {MIN_LATENCIES}"
    return Latency(arm=arm, calls=len(samples), p50=p50, why_not=why)


def _quantile(samples: np.ndarray, q: float) -> float:
    return float(np.quantile(samples, q, method="inverted_cdf"))


def quantile(samples: np.ndarray, owners: np.ndarray, weights: np.ndarray, q: float) -> np.ndarray:
    """The quantile `q` of each bootstrap sample: its smallest value that at least the share `q` does not exceed.

    Args:
      samples: (n,) values. owners: (n,) int, the column of `weights` of each value. weights: (draws, k) multiplicities.

    Returns:
      (draws,); NaN for a draw without samples.
    """
    order = np.argsort(samples, kind="stable")
    sizes = np.bincount(owners, minlength=weights.shape[1])
    result = np.full(len(weights), np.nan)
    for start in range(0, len(weights), 200):  # in chunks of draws, because a million calls would not fit in memory
        chunk = weights[start : start + 200]
        total = (chunk @ sizes).astype(np.float64)
        running = np.cumsum(chunk[:, owners[order]], axis=1)
        index = (running < np.ceil(q * total - 1e-6)[:, None]).sum(axis=1)
        values = samples[order][np.minimum(index, len(samples) - 1)]
        result[start : start + 200] = np.where(total > 0, values, np.nan)
    return result


def latencies(places: Sequence[ArmGroup]) -> list[tuple[ArmGroup, list[Latency]]]:
    """For every group, the latencies of its inference arms, by batch."""
    results = []
    for place in places:
        arms = [arm for arm in place.arms if arm.point.levers.get("part") == "inference"]
        arms.sort(key=lambda arm: arm.point.global_batch)
        if arms:
            results.append((place, [latency(arm) for arm in arms]))
    return results
