# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Real data to train on, read from the disk and checked. Nothing here fetches anything or replaces what is missing."""

from __future__ import annotations

from pathlib import Path

from jaxbench.errors import UserError
from jaxbench.workloads.data.images import Images
from jaxbench.workloads.data.order import order

__all__ = ["Images", "load", "order"]


def load(path: str, *, seed: int, size: tuple[int, int] = (28, 28), channels: int = 1, classes: int = 10) -> Images:
    """Loads what `path` names.

    Args:
      path: "" for scikit-learn's bundled digits, a folder with the four MNIST IDX files (gz or not) or with the six
        files of CIFAR-10's binary version, or an .npz file with x_train, y_train, x_test and y_test.
      seed: of the split, where the data are not split already (the digits).
      size: height and width in pixels that the model takes.
      channels: what it takes of each pixel; 3 of a gray image are three times the same.
      classes: labels must lie in [0, classes).

    Raises:
      UserError: nothing is there, it is of no known kind, or it is damaged. Other data are never taken in its place.
    """
    where = Path(path).expanduser()
    if path and where.is_dir():
        from jaxbench.workloads.data import cifar10  # late, as below: only the reader that is asked for is imported

        if cifar10.holds(where):
            return cifar10.load(where, size=size, channels=channels, classes=classes)
    return _in_channels(_load_gray(path, where, seed=seed, size=size, classes=classes), channels)


def _load_gray(path: str, where: Path, *, seed: int, size: tuple[int, int], classes: int) -> Images:
    """Images of one channel."""
    if not path:
        from jaxbench.workloads.data import digits

        return digits.load(seed=seed, size=size, classes=classes)
    if where.is_dir():
        from jaxbench.workloads.data import idx

        return idx.load(where, size=size, classes=classes)
    if where.is_file() and where.suffix == ".npz":
        from jaxbench.workloads.data import npz

        return npz.load(where, size=size, classes=classes)
    found = "is a file of another kind" if where.exists() else "does not exist"
    raise UserError(
        f"config.data.path '{path}' {found}: give a folder with the four MNIST IDX files or with CIFAR-10's six .bin "
        "files, an .npz file, or '' for the bundled digits."
    )


def _in_channels(images: Images, channels: int) -> Images:
    """Gray images with their one channel repeated."""
    if channels == 1:
        return images
    train, test = ({**part, "image": part["image"].repeat(channels, axis=-1)} for part in (images.train, images.test))
    return Images(train, test, images.name)
