# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Images with labels: their form in memory, and the checks that all readers share.

Each split has "image", float32 (N, height, width, channels), gray in [0, 1] or normalized, and "label", int32 (N,).
"""

from __future__ import annotations

import numpy as np

from jaxbench.errors import UserError


def bundle(image: np.ndarray, label: np.ndarray) -> dict[str, np.ndarray]:
    """One split in its final types. `image`: (N, height, width), uint8 (divided by 255) or a float in [0, 1]."""
    scaled = image.astype(np.float32)
    if image.dtype == np.uint8:
        scaled /= 255
    return {"image": np.ascontiguousarray(scaled[..., None]), "label": label.astype(np.int32)}


def check_labels(label: np.ndarray, *, classes: int, where: str) -> None:
    """Raises a UserError that names `where` if a label is outside [0, classes)."""
    wrong = label[(label < 0) | (label >= classes)]
    if wrong.size:
        raise UserError(f"{where} holds the label {int(wrong[0])}: legal labels are 0 to {classes - 1}.")


def check_pair(images: int, labels: int, *, where: str) -> None:
    """Raises a UserError that names `where` if a split is empty or lacks one label per image."""
    if images != labels:
        raise UserError(f"{where} has {images} images and {labels} labels: there must be one label for each image.")
    if images == 0:
        raise UserError(f"{where} has no images: there must be at least 1.")
