# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A small table, and one tree from a plain reference that reads every row."""

from __future__ import annotations

import numpy as np

from jaxbench.workloads.sums import trees

ROWS, DEPTH = 300, 3
SETTINGS = trees.TreeSettings(columns=4, depth=DEPTH, l2=1 / ROWS, min_hessian=2 / ROWS)


def table(rows=ROWS, seed=0, columns=4):
    """Few bins, so that rows share them, and classes that depend on two columns."""
    random = np.random.default_rng(seed)
    bins = random.integers(0, 16, (rows, columns))
    odds = (bins[:, 0] > 7) ^ (bins[:, 1] > 4)
    return np.column_stack([bins, odds ^ (random.random(rows) < 0.2)]).astype(np.uint8)


def grown(settings, bins, g, h, level=0):
    """The value of each row in one tree, by recursion over its rows; sums, l2 and min_hessian are not per row here."""
    rows = len(bins)
    smallest, penalty = settings.min_hessian * ROWS, settings.l2 * ROWS
    best = None
    for column in range(bins.shape[1]):
        for cut in range(15):
            left = bins[:, column] <= cut
            if min(h[left].sum(), h[~left].sum()) < smallest - 1e-9:
                continue
            gain = sum(g[side].sum() ** 2 / (h[side].sum() + penalty) for side in (left, ~left))
            gain -= g.sum() ** 2 / (h.sum() + penalty)
            if gain > (best[0] + 1e-9 if best else 1e-12):
                best = gain, left
    if best is None or level == settings.depth:
        return np.full(rows, -settings.rate * g.sum() / (h.sum() + penalty))
    values = np.empty(rows)
    for side in (best[1], ~best[1]):
        values[side] = grown(settings, bins[side], g[side], h[side], level + 1)
    return values
