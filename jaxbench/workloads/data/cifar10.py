# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""CIFAR-10 as published, in its binary version: six files of 10,000 rows.

A row is one byte for the label, then 3,072 for the image: its 32 x 32 red values row by row, then green, then blue.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from jaxbench.errors import UserError
from jaxbench.workloads.base import Splits
from jaxbench.workloads.data.images import check_labels

EDGE, CHANNELS, CLASSES = 32, 3, 10
ROWS = 10_000  # per file
TRAIN = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
TEST = "test_batch.bin"


def holds(folder: Path) -> bool:
    """Whether `folder` holds one of the files."""
    return any((folder / name).exists() for name in (*TRAIN, TEST))


def load(folder: Path, *, size: tuple[int, int], channels: int, classes: int) -> Splits:
    """Reads the six files, split as published; "image" is float32 (N, 32, 32, 3), each colour normalised.

    Each colour is shifted by its mean over the training images and divided by its standard deviation.

    Raises:
      UserError: a file is missing, has a wrong length or an illegal label, or the model takes other images.
    """
    if (*size, channels) != (EDGE, EDGE, CHANNELS):
        takes = "x".join(map(str, (*size, channels)))
        raise UserError(f"'{folder}' holds images of {EDGE}x{EDGE}x{CHANNELS}: the model takes {takes}.")
    train, test = np.concatenate([_rows(folder / name, classes) for name in TRAIN]), _rows(folder / TEST, classes)
    table = _normalised_values(train)
    return Splits(_bundle(train, table), _bundle(test, table), folder.resolve().name)


def _rows(path: Path, classes: int) -> np.ndarray:
    """One file, uint8 (ROWS, 3073)."""
    length = 1 + CHANNELS * EDGE * EDGE
    if not path.is_file():
        raise UserError(
            f"'{path.parent}' has no {path.name}: it must hold data_batch_1.bin to data_batch_5.bin and {TEST}."
        )
    try:
        found = path.stat().st_size
        if found != ROWS * length:
            raise UserError(f"{path} holds {found} bytes: {ROWS} rows of {length} bytes, {ROWS * length}, are needed.")
        rows = np.fromfile(path, np.uint8).reshape(ROWS, length)
    except OSError as error:
        raise UserError(f"{path} cannot be read ({os.strerror(error.errno) if error.errno else error}).") from error
    check_labels(rows[:, 0], classes=min(classes, CLASSES), where=str(path))
    return rows


def _normalised_values(rows: np.ndarray) -> np.ndarray:
    """The normalized value of each byte, for each colour: float32 (3, 256). `rows`: the training rows."""
    values = np.arange(256) / 255
    planes = rows[:, 1:].reshape(len(rows), CHANNELS, -1)
    counts = np.stack([np.bincount(planes[:, colour].ravel(), minlength=256) for colour in range(CHANNELS)])
    share = counts / counts.sum(axis=1, keepdims=True)
    mean = share @ values
    deviation = np.sqrt((share * (values - mean[:, None]) ** 2).sum(axis=1))
    return ((values - mean[:, None]) / np.maximum(deviation, 1 / 255)[:, None]).astype(np.float32)


def _bundle(rows: np.ndarray, table: np.ndarray) -> dict[str, np.ndarray]:
    image = np.empty((len(rows), EDGE, EDGE, CHANNELS), np.float32)
    planes = rows[:, 1:].reshape(len(rows), CHANNELS, EDGE, EDGE)
    for colour in range(CHANNELS):
        image[..., colour] = table[colour][planes[:, colour]]
    return {"image": image, "label": rows[:, 0].astype(np.int32)}
