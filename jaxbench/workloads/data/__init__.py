# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Real data to train on, read from disk and checked. Nothing is downloaded, and missing data is not replaced."""

from __future__ import annotations

from pathlib import Path

from jaxbench.errors import UserError
from jaxbench.workloads.base import Splits
from jaxbench.workloads.data import cifar10, digits, idx, npz
from jaxbench.workloads.data.order import order

__all__ = ["load", "order"]


def load(path: str, *, seed: int, size: tuple[int, int] = (28, 28), channels: int = 1, classes: int = 10) -> Splits:
    """Loads the images that `path` names.

    Args:
      path: "" for scikit-learn's bundled digits, a folder with the four MNIST IDX files (gz or not) or with the six
        files of CIFAR-10's binary version, or an .npz file with x_train, y_train, x_test and y_test.
      seed: of the split, for data that is not already split (the digits).
      size: height and width in pixels that the model takes.
      channels: per pixel, for the model; a gray channel is repeated.
      classes: labels must be in [0, classes).

    Raises:
      UserError: `path` does not exist, is of no known kind, or is damaged. There is no fallback to other data.
    """
    where = Path(path).expanduser()
    if path and where.is_dir() and cifar10.holds(where):
        return cifar10.load(where, size=size, channels=channels, classes=classes)
    if not path:
        gray = digits.load(seed=seed, size=size, classes=classes)
    elif where.is_dir():
        gray = idx.load(where, size=size, classes=classes)
    elif where.is_file() and where.suffix == ".npz":
        gray = npz.load(where, size=size, classes=classes)
    else:
        found = "is a file of another kind" if where.exists() else "does not exist"
        raise UserError(
            f"config.data.path '{path}' {found}: give a folder with the four MNIST IDX files or with CIFAR-10's six "
            ".bin files, an .npz file, or '' for the bundled digits."
        )
    return _in_channels(gray, channels)


def _in_channels(images: Splits, channels: int) -> Splits:
    """Gray images with their one channel repeated."""
    if channels == 1:
        return images
    train, test = ({**part, "image": part["image"].repeat(channels, axis=-1)} for part in (images.train, images.test))
    return Splits(train, test, images.name)
