# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Images with labels: what they look like in memory, and which reader a path asks for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jaxbench.errors import UserError


@dataclass(frozen=True)
class Images:
    """Images with labels in host memory, already split into what is trained on and what is tested on.

    Attributes:
      train, test: "image" float32 (N, height, width, channels), gray in [0, 1] or colour normalised, and "label" int32
        (N,).
      name: what a report calls the data.
    """

    train: dict[str, np.ndarray]
    test: dict[str, np.ndarray]
    name: str


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


def bundle(image: np.ndarray, label: np.ndarray) -> dict[str, np.ndarray]:
    """One split in its final types. `image`: (N, height, width), uint8 (divided by 255) or a float in [0, 1]."""
    scaled = image.astype(np.float32)
    if image.dtype == np.uint8:
        scaled /= 255
    return {"image": np.ascontiguousarray(scaled[..., None]), "label": label.astype(np.int32)}


def check_labels(label: np.ndarray, *, classes: int, where: str) -> None:
    """Raises a UserError that names `where` when a label lies outside [0, classes)."""
    wrong = label[(label < 0) | (label >= classes)]
    if wrong.size:
        raise UserError(f"{where} holds the label {int(wrong[0])}: legal labels are 0 to {classes - 1}.")


def check_pair(images: int, labels: int, *, where: str) -> None:
    """Raises a UserError that names `where` when a split is empty or has not one label for each image."""
    if images != labels:
        raise UserError(f"{where} has {images} images and {labels} labels: there must be one label for each image.")
    if images == 0:
        raise UserError(f"{where} has no images: there must be at least 1.")
