# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The order in which examples are visited, as a pure function of the seed and the epoch."""

from __future__ import annotations

import numpy as np


def words(count: int, *entropy: int) -> np.ndarray:
    """Random words, shape (count,), uint64; the same for the same non-negative `entropy`, also in later numpys."""
    return np.random.Philox(np.random.SeedSequence(entropy)).random_raw(count)


def permutation(examples: int, *entropy: int) -> np.ndarray:
    """A permutation of ``range(examples)``, shape (examples,), int64; the same for the same non-negative `entropy`."""
    # Raw generator words are sorted, because numpy guarantees these across versions, but not its own `permutation`.
    return np.argsort(words(examples, *entropy), kind="stable")


def order(examples: int, batch: int, *, seed: int, epoch: int) -> np.ndarray:
    """The batches of one epoch: indices of shape (examples // batch, batch), int64.

    A resumed run sees the same batches as an uninterrupted run.
    """
    steps = examples // batch  # a step has one shape, so the remainder is dropped: other examples in each epoch
    return permutation(examples, seed, epoch)[: steps * batch].reshape(steps, batch)
