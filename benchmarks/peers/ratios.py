# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The best of several peers over the best of the suite, without the advantage that the best of noisy medians has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

DRAWS = 4000


@dataclass(frozen=True)
class Ratio:
    """A median ratio of times.

    Attributes:
      best: the peer that the first, third, ... rounds chose. ours: the form of the suite that they chose.
      middle: the median over the other rounds of (time of `best` / time of `ours`): above 1, the suite is faster.
      draws: (DRAWS,), the same with both kinds of rounds resampled, the choice included.
      rounds: how many rounds `middle` is of.
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
    """`ours`, `peers`: of each form of the suite and of each peer the seconds per step in each round, (rounds,), >= 2.

    On both sides the faster one is chosen by its median in one half of the rounds, and the ratio is measured in the
    other half: had both the same rounds, whatever was lucky in them would be chosen for it.
    """
    mine, theirs = np.stack(list(ours.values())), np.stack(list(peers.values()))  # (arms, rounds)
    rounds = mine.shape[1]
    one, other = (random.integers(n, size=(DRAWS, n)) for n in (len(range(0, rounds, 2)), rounds // 2))
    best = [int(np.argmin(np.median(times[:, 0::2], axis=1))) for times in (mine, theirs)]
    again = [np.argmin(np.median(times[:, 0::2][:, one], axis=-1), axis=0) for times in (mine, theirs)]  # (DRAWS,)
    ratios = theirs[None, :, 1::2] / mine[:, None, 1::2]  # (ours, peers, rounds / 2)
    draws = np.median(ratios[again[0], again[1]][np.arange(DRAWS)[:, None], other], axis=-1)
    middle = float(np.median(ratios[best[0], best[1]]))
    return Ratio(list(peers)[best[1]], list(ours)[best[0]], middle, draws, ratios.shape[2])


def geometric_mean(ratios: list[Ratio]) -> Ratio:
    """Of the ratios of several models, which were measured one after the other: their draws are independent."""
    middle = np.exp(np.mean([np.log(ratio.middle) for ratio in ratios]))
    draws = np.exp(np.mean([np.log(ratio.draws) for ratio in ratios], axis=0))
    return Ratio("", "", float(middle), draws, min(ratio.rounds for ratio in ratios))
