# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Images in an .npz file with x_train, y_train, x_test and y_test. Headers are checked before any value is read."""

from __future__ import annotations

import math
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

from jaxbench.errors import UserError
from jaxbench.workloads.base import Splits
from jaxbench.workloads.data.images import bundle, check_labels, check_pair

KEYS = ("x_train", "y_train", "x_test", "y_test")
MAX_BYTES = 2**33  # per array; a file that declares more is damaged or hostile
HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


@dataclass(frozen=True)
class Header:
    shape: tuple[int, ...]
    dtype: np.dtype


def load(path: Path, *, size: tuple[int, int], classes: int) -> Splits:
    """Reads uint8 images (0 to 255) or float images (0 to 1), (N, height, width) or (N, height, width, 1).

    Raises:
      UserError: not an .npz file, a missing key, or an illegal type, shape or value in an array.
    """
    try:
        with zipfile.ZipFile(path) as file:
            _check_keys(file, path)
            train = _split(file, path, "train", size=size, classes=classes)
            test = _split(file, path, "test", size=size, classes=classes)
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError) as error:
        raise UserError(f"{path} is a damaged .npz file ({error}): copy it again.") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}).") from error
    return Splits(train, test, path.stem)


def _check_keys(file: zipfile.ZipFile, path: Path) -> None:
    present = {name.removesuffix(".npy") for name in file.namelist()}
    missing = [key for key in KEYS if key not in present]
    if missing:
        raise UserError(f"{path} has no array '{missing[0]}': it must hold {', '.join(KEYS)}.")


def _split(
    file: zipfile.ZipFile, path: Path, part: str, *, size: tuple[int, int], classes: int
) -> dict[str, np.ndarray]:
    x_key, y_key = f"x_{part}", f"y_{part}"
    x, y = _header(file, path, x_key), _header(file, path, y_key)
    if x.dtype != np.uint8 and x.dtype.kind != "f":
        raise UserError(f"{path}: {x_key} is {x.dtype}: legal are uint8 (0 to 255) and floats (0 to 1).")
    if len(x.shape) not in (3, 4) or x.shape[1:3] != size or x.shape[3:] not in ((), (1,)):
        raise UserError(f"{path}: {x_key} has shape {x.shape}: the model takes (N, {size[0]}, {size[1]}).")
    if y.dtype.kind not in "iu" or len(y.shape) != 1:
        raise UserError(f"{path}: {y_key} is {y.dtype} of shape {y.shape}: legal are integers of shape (N,).")
    check_pair(x.shape[0], y.shape[0], where=f"{path}: the {part} split")
    image, label = _values(file, x_key), _values(file, y_key)
    # NaN fails both comparisons, so it is caught too.
    if image.dtype.kind == "f" and not (image.min() >= 0 and image.max() <= 1):
        raise UserError(f"{path}: {x_key} has values from {image.min():g} to {image.max():g}: floats must be 0 to 1.")
    check_labels(label, classes=classes, where=f"{path}: {y_key}")
    return bundle(image.reshape(-1, *size), label)


def _header(file: zipfile.ZipFile, path: Path, key: str) -> Header:
    """Type and shape as declared, without reading the values or unpickling anything."""
    with file.open(f"{key}.npy") as member:
        version = npy.read_magic(member)
        if version not in HEADERS:
            raise UserError(f"{path}: {key} is of .npy version {version}: legal are {', '.join(map(str, HEADERS))}.")
        shape, _, dtype = HEADERS[version](member)
        stored = file.getinfo(f"{key}.npy").file_size - member.tell()
    if dtype.hasobject:
        raise UserError(f"{path}: {key} holds Python objects: legal are arrays of numbers.")
    declared = math.prod(shape) * dtype.itemsize
    if declared > MAX_BYTES:
        raise UserError(f"{path}: {key} declares {declared} bytes: at most {MAX_BYTES} are legal.")
    if declared != stored:
        raise UserError(f"{path}: {key} declares {declared} bytes of values and holds {stored}.")
    return Header(shape, dtype)


def _values(file: zipfile.ZipFile, key: str) -> np.ndarray:
    with file.open(f"{key}.npy") as member:
        return npy.read_array(member, allow_pickle=False)
