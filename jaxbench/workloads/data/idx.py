# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""MNIST's own files (IDX), compressed or not.

An IDX file is two zero bytes, a type code, the number of dimensions, each as a big-endian uint32, then the values.
"""

from __future__ import annotations

import gzip
import math
import os
import struct
import zlib
from pathlib import Path
from typing import BinaryIO

import numpy as np

from jaxbench.errors import UserError
from jaxbench.workloads.base import Splits
from jaxbench.workloads.data.images import bundle, check_labels, check_pair

UBYTE = 0x08  # the only type code in MNIST
TYPES = {0x08: "uint8", 0x09: "int8", 0x0B: "int16", 0x0C: "int32", 0x0D: "float32", 0x0E: "float64"}
MAX_BYTES = 2**31  # more than any MNIST-like data; a file that declares more is damaged or hostile
CHUNK = 2**20
GZIP_MAGIC = b"\x1f\x8b"


def load(folder: Path, *, size: tuple[int, int], classes: int) -> Splits:
    """Reads the four files of `folder`: ``{train,t10k}-{images-idx3,labels-idx1}-ubyte``, also with '.idx', also '.gz'.

    Raises:
      UserError: a file is missing or damaged, or its images or labels are not what the model takes.
    """
    train = _split(folder, "train", size=size, classes=classes)
    test = _split(folder, "t10k", size=size, classes=classes)
    return Splits(train, test, folder.resolve().name)


def _split(folder: Path, part: str, *, size: tuple[int, int], classes: int) -> dict[str, np.ndarray]:
    image_path, label_path = find(folder, part, "images", 3), find(folder, part, "labels", 1)
    image, label = read(image_path, dims=3), read(label_path, dims=1)
    if image.shape[1:] != size:
        found = "x".join(map(str, image.shape[1:]))
        raise UserError(f"{image_path} holds images of {found} pixels: the model takes {size[0]}x{size[1]}.")
    check_pair(len(image), len(label), where=f"{image_path} with {label_path.name}")
    check_labels(label, classes=classes, where=str(label_path))
    return bundle(image, label)


def find(folder: Path, part: str, kind: str, dims: int) -> Path:
    """The one file of `folder` that holds `kind` ("images" or "labels") of `part` ("train" or "t10k")."""
    stem = f"{part}-{kind}"
    names = [f"{stem}{dot}idx{dims}-ubyte{gz}" for dot in "-." for gz in ("", ".gz")]
    present = [folder / name for name in names if (folder / name).is_file()]
    if not present:
        raise UserError(f"'{folder}' has no {kind} of the {part} split: it must hold {names[0]} or {names[1]}.")
    return present[0]


def read(path: Path, *, dims: int) -> np.ndarray:
    """Reads one file of unsigned bytes with `dims` dimensions.

    Raises:
      UserError: no such file, not IDX, another type or number of dimensions, too short or too long.
    """
    try:
        with open(path, "rb") as raw:
            compressed = raw.read(2) == GZIP_MAGIC
            raw.seek(0)
            if not compressed:
                return _parse(raw, path, dims=dims)
            with gzip.open(raw) as file:
                return _parse(file, path, dims=dims)  # type: ignore[arg-type]  # a GzipFile reads like any other
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError(f"{path} is a damaged gzip file ({error}): copy it again.") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read ({os.strerror(error.errno) if error.errno else error}).") from error


def _parse(file: BinaryIO, path: Path, *, dims: int) -> np.ndarray:
    shape = _header(file, path, dims=dims)
    declared = math.prod(shape)
    if declared > MAX_BYTES:
        raise UserError(f"{path} declares {_by(shape)} = {declared} bytes of values: at most {MAX_BYTES} are legal.")
    data = _read_up_to(file, declared + 1)  # one more byte detects trailing data without inflating a gzip bomb
    if len(data) != declared:
        found = "more" if len(data) > declared else f"only {len(data)}"
        raise UserError(f"{path} declares {_by(shape)} = {declared} bytes of values and holds {found}.")
    return np.frombuffer(data, np.uint8).reshape(shape)


def _header(file: BinaryIO, path: Path, *, dims: int) -> tuple[int, ...]:
    """Checks the magic number and returns the shape."""
    legal = f"an MNIST file of this kind begins with {bytes((0, 0, UBYTE, dims)).hex(' ')}"
    magic = file.read(4)
    if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] not in TYPES:
        raise UserError(f"{path} is not an IDX file (it begins with '{magic.hex(' ')}'): {legal}.")
    if magic[2] != UBYTE:
        raise UserError(f"{path} holds {TYPES[magic[2]]} values (it begins with '{magic.hex(' ')}'): {legal}.")
    if magic[3] != dims:
        raise UserError(f"{path} has {magic[3]} dimensions (it begins with '{magic.hex(' ')}'): {legal}.")
    sizes = file.read(4 * dims)
    if len(sizes) < 4 * dims:
        raise UserError(f"{path} ends within its header, after {4 + len(sizes)} bytes: {4 + 4 * dims} are needed.")
    return struct.unpack(f">{dims}I", sizes)


def _read_up_to(file: BinaryIO, count: int) -> bytes:
    """At most `count` bytes, in pieces, because one large read would allocate whatever a damaged header declares."""
    pieces = []
    while count and (piece := file.read(min(CHUNK, count))):
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def _by(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))
