# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Whether the last third of a point's rounds took as long as the first: docs/metrics, First and last third.

Rounds are not independent: processes differ, and noise lasts. So the variance of the difference is averaged over the
sizes of both that explain the rounds, as for an interval (`turns`). The mean of each third is a parameter of its own,
so a change during the run is not taken for lasting noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from jaxbench.statistics import turns
from jaxbench.statistics.bootstrap import Estimate

LEAST_ROUNDS = 9  # three in each third
CHANCE = 0.05  # of any false alarm in a run, divided by its points
LEAST_CHANGE = 0.02  # a smaller one moves no efficiency by more than its interval is wide


@dataclass(frozen=True, kw_only=True)
class Thirds:
    """ratio: the geometric mean of the last third over that of the first. chance: the probability of a ratio at least
    as far from 1 if nothing changed."""

    ratio: Estimate
    chance: float

    def differ(self, points: int) -> bool:
        """Whether chance does not explain the change. points: of the run that are compared in this way."""
        return self.chance * points <= CHANCE and abs(self.ratio.value - 1) >= LEAST_CHANGE


def compare(process: np.ndarray, logs: np.ndarray) -> Thirds | None:
    """None with fewer than LEAST_ROUNDS.

    Args:
      process: (n,) int, the process of each round, in order of time.
      logs: (n,) the logarithm of the time of the point in each round.
    """
    if len(logs) < LEAST_ROUNDS:
        return None
    _, influence = turns.influences(logs)  # one interrupted round is no change
    columns, values = turns.averaged(process, np.arange(len(logs)), len(logs) * influence)
    count = len(values)
    if not values.any():
        return Thirds(ratio=Estimate(value=1.0, lo=1.0, hi=1.0), chance=1.0)
    third, freedom = count // 3, count - 3
    level = np.repeat([0, 1, 2], [third, count - 2 * third, third])
    levels = np.equal.outer(level, np.arange(3)).astype(float)  # (n, 3): the mean of each third
    contrast = (levels[:, 2] - levels[:, 0]) / third
    change, sets = float(contrast @ values), len(np.unique(process)) > 1
    layout = turns.layout_of(process[columns].tobytes(), sets)
    whitened, design = layout.inverse @ values, layout.inverse @ levels  # (G, n), (G, n, 3)
    cross = np.einsum("gnk,gn->gk", design, whitened)
    normal = np.einsum("gnk,gnl->gkl", design, design)
    fitted = np.linalg.solve(normal, cross[:, :, None])[:, :, 0]
    square = np.einsum("gn,gn->g", whitened, whitened) - np.einsum("gk,gk->g", cross, fitted)
    # The restricted likelihood has three means in place of one.
    evidence = layout.prior + np.log(layout.precision) / 2 - np.linalg.slogdet(normal)[1] / 2
    evidence = evidence - freedom / 2 * np.log(square)
    weights = np.exp(evidence - evidence.max())
    seen = weights > turns.NEGLIGIBLE
    weights = weights[seen] / weights[seen].sum()
    variance = turns.variance_of_sum(contrast, process[columns], sets=sets)
    scales = np.sqrt(square / freedom * variance)[seen]
    half = turns.quantile(weights, np.full(len(weights), freedom), scales)
    ratio = Estimate(value=math.exp(change), lo=math.exp(change - half), hi=math.exp(change + half))
    return Thirds(ratio=ratio, chance=float(2 * weights @ special.stdtr(freedom, -abs(change) / scales)))
