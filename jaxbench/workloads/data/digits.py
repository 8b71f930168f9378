# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The 1,797 handwritten 8x8 digits that come with scikit-learn: real data without a network."""

from __future__ import annotations

import numpy as np

from jaxbench.errors import UserError
from jaxbench.workloads.base import Splits
from jaxbench.workloads.data.images import bundle
from jaxbench.workloads.data.order import permutation

EDGE = 8  # pixels
LEVELS = 16  # the value of a black pixel
CLASSES = 10
TEST_FRACTION = 0.2


def load(*, seed: int, size: tuple[int, int], classes: int) -> Splits:
    """The digits enlarged to `size` and split 80/20 with equal shares of each class; order and split follow `seed`.

    Raises:
      UserError: `size` is below 8x8, or the model has fewer than 10 classes.
    """
    from sklearn.datasets import load_digits  # late: it takes a second to import

    if min(size) < EDGE:
        raise UserError(f"the bundled digits cannot be scaled to {size[0]}x{size[1]} pixels: at least 8x8 are needed.")
    if classes < CLASSES:
        raise UserError(f"the bundled digits have {CLASSES} classes and the model has {classes}: give it at least 10.")
    pixels, label = load_digits(return_X_y=True)
    image = _enlarge((pixels / LEVELS).reshape(-1, EDGE, EDGE), size)
    train, test = _split(label, seed)
    return Splits(bundle(image[train], label[train]), bundle(image[test], label[test]), "digits")


def _enlarge(image: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """(N, 8, 8) -> (N, *size): each pixel repeated as often as fits (3 times for 28), with an empty border."""
    times = min(size) // EDGE
    large = image.repeat(times, axis=1).repeat(times, axis=2)
    spare = [edge - times * EDGE for edge in size]
    border = [(gap // 2, gap - gap // 2) for gap in spare]
    return np.pad(large, [(0, 0), *border])


def _split(label: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices (train, test), each shuffled, with `TEST_FRACTION` of every class in test."""
    drawn = permutation(len(label), seed)
    in_test = np.zeros(len(label), bool)
    for value in np.unique(label):
        members = drawn[label[drawn] == value]
        in_test[members[: round(TEST_FRACTION * len(members))]] = True
    # A new permutation, because the split takes its test set from the start of `drawn`.
    shuffled = permutation(len(label), seed, 1)
    return shuffled[~in_test[shuffled]], shuffled[in_test[shuffled]]
