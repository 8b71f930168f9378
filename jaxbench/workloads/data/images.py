# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Images with labels: what they look like in memory, and what every reader checks."""

from __future__ import annotations

from dataclasses import dataclass

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
