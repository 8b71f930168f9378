# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The best of several peers over the suite, without the advantage that the best of noisy medians has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

DRAWS = 4000


@dataclass(frozen=True)
class Ratio:
    """A median ratio of times.

    Attributes:
      best: the peer that the first, third, ... rounds chose.
      middle: the median over the other rounds of (time of `best` / time of the suite): above 1, the suite is faster.
      draws: (DRAWS,), the same with both kinds of rounds resampled, the choice included.
      rounds: how many rounds `middle` is of.
    """

    best: str
    middle: float
    draws: np.ndarray
    rounds: int

    def interval(self) -> tuple[float, float]:
        """95 %."""
        low, high = np.percentile(self.draws, [2.5, 97.5])
        return float(low), float(high)


def best_over(suite: np.ndarray, peers: dict[str, np.ndarray], random: np.random.Generator) -> Ratio:
    """`suite`, and each of `peers`: seconds per step in each round, (rounds,), at least two.

    The peer is chosen by its median in one half of the rounds and its ratio is measured in the other half: had both the
    same rounds, the peer that was lucky in them would be chosen for it.
    """
    names = list(peers)
    seconds = np.stack([peers[name] for name in names])  # (peers, rounds)
    choosing, ratios = seconds[:, 0::2], (seconds / suite)[:, 1::2]
    chosen = int(np.argmin(np.median(choosing, axis=1)))
    one, other = (random.integers(n, size=(DRAWS, n)) for n in (choosing.shape[1], ratios.shape[1]))
    again = np.argmin(np.median(choosing[:, one], axis=-1), axis=0)  # (DRAWS,)
    draws = np.median(ratios[:, other], axis=-1)[again, np.arange(DRAWS)]
    return Ratio(names[chosen], float(np.median(ratios[chosen])), draws, ratios.shape[1])


def geometric_mean(ratios: list[Ratio]) -> Ratio:
    """Of the ratios of several models, which were measured one after the other: their draws are independent."""
    middle = np.exp(np.mean([np.log(ratio.middle) for ratio in ratios]))
    draws = np.exp(np.mean([np.log(ratio.draws) for ratio in ratios], axis=0))
    return Ratio("", float(middle), draws, min(ratio.rounds for ratio in ratios))
