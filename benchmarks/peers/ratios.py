# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Ratios of times: medians with bootstrap intervals, and the best peer over the best suite without selection bias."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

DRAWS = 4000


def median_and_interval(ratios: np.ndarray, digits: int) -> str:
    """The median of `ratios`, (rounds,), with its 95 % bootstrap interval: "0.991 [0.985, 0.997]"."""
    median, low, high = (f"{value:.{digits}f}" for value in median_of(ratios))
    return f"{median} [{low}, {high}]"


def median_of(ratios: np.ndarray) -> tuple[float, float, float]:
    """(median, lower end, upper end): the 95 % bootstrap interval of `ratios`, (rounds,)."""
    medians = np.median(np.random.default_rng(0).choice(ratios, (DRAWS, len(ratios))), axis=1)
    low, high = np.percentile(medians, [2.5, 97.5])
    return float(np.median(ratios)), float(low), float(high)


@dataclass(frozen=True)
class Ratio:
    """A median ratio of times.

    Attributes:
      best: the peer that the first, third, ... rounds selected. ours: the variant of the suite that they selected.
      middle: the median over the other rounds of (time of `best` / time of `ours`); above 1 the suite is faster.
      draws: (DRAWS,), the same with both kinds of rounds resampled, selection included.
      rounds: the number of rounds that `middle` uses.
    """

    best: str
    ours: str
    middle: float
    draws: np.ndarray
    rounds: int

    def interval(self) -> tuple[float, float]:
        """95 %."""
        low, high = np.percentile(self.draws, [2.5, 97.5])
        return float(low), float(high)


def best_over(ours: dict[str, np.ndarray], peers: dict[str, np.ndarray], random: np.random.Generator) -> Ratio:
    """The ratio of the best of `peers` to the best of `ours`, both seconds per step by name, (rounds,), at least 2.

    One half of the rounds selects the fastest arm on each side by its median. The other half measures the ratio. If the
    same rounds did both, the selection would favour arms that were fast by chance.
    """
    suite, peer = np.stack(list(ours.values())), np.stack(list(peers.values()))  # (arms, rounds)
    rounds = suite.shape[1]
    selecting, measuring = (random.integers(n, size=(DRAWS, n)) for n in (len(range(0, rounds, 2)), rounds // 2))
    best = [int(np.argmin(np.median(times[:, 0::2], axis=1))) for times in (suite, peer)]
    # for each bootstrap sample, (DRAWS,), the index of the arm that it would have selected
    fastest = [np.argmin(np.median(times[:, 0::2][:, selecting], axis=-1), axis=0) for times in (suite, peer)]
    ratios = peer[None, :, 1::2] / suite[:, None, 1::2]  # (ours, peers, rounds / 2)
    draws = np.median(ratios[fastest[0], fastest[1]][np.arange(DRAWS)[:, None], measuring], axis=-1)
    middle = float(np.median(ratios[best[0], best[1]]))
    return Ratio(list(peers)[best[1]], list(ours)[best[0]], middle, draws, ratios.shape[2])


def geometric_mean(ratios: list[Ratio]) -> Ratio:
    """The mean over models. They were measured one after the other, so their bootstrap samples are independent."""
    middle = np.exp(np.mean([np.log(ratio.middle) for ratio in ratios]))
    draws = np.exp(np.mean([np.log(ratio.draws) for ratio in ratios], axis=0))
    return Ratio("", "", float(middle), draws, min(ratio.rounds for ratio in ratios))
