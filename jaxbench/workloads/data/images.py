# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Images with labels, read from disk and checked: MNIST's IDX files, CIFAR-10, an .npz file, scikit-learn's digits.

Nothing is downloaded, and missing data is not replaced. Each split has "image", float32 (N, height, width, channels),
gray in [0, 1] or normalized, and "label", int32 (N,).
"""

from __future__ import annotations

import gzip
import math
import os
import struct
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.lib import format as npy

from jaxbench.core.workload import Splits
from jaxbench.errors import UserError
from jaxbench.workloads.data.order import permutation, words

Arrays = dict[str, np.ndarray]
Size = tuple[int, int]  # height, width


def load(path: str, *, seed: int, size: Size = (28, 28), channels: int = 1, classes: int = 10) -> Splits:
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
    if path and where.is_dir() and any((where / name).exists() for name in (*CIFAR_TRAIN, CIFAR_TEST)):
        return _cifar10(where, size=size, channels=channels, classes=classes)
    if not path:
        gray = _digits(seed=seed, size=size, classes=classes)
    elif where.is_dir():
        train, test = (_idx_split(where, part, size=size, classes=classes) for part in ("train", "t10k"))
        gray = Splits(train, test, where.resolve().name)
    elif where.is_file() and where.suffix == ".npz":
        gray = _npz(where, size=size, classes=classes)
    else:
        found = "is a file of another kind" if where.exists() else "does not exist"
        raise UserError(
            f"config.data.path '{path}' {found}: give a folder with the four MNIST IDX files or with CIFAR-10's six "
            ".bin files, an .npz file, or '' for the bundled digits."
        )
    if channels == 1:
        return gray
    train, test = ({**part, "image": part["image"].repeat(channels, axis=-1)} for part in (gray.train, gray.test))
    return Splits(train, test, gray.name)


def _bundle(image: np.ndarray, label: np.ndarray) -> Arrays:
    """One split in its final types. `image`: (N, height, width), uint8 (divided by 255) or a float in [0, 1]."""
    scaled = image.astype(np.float32)
    if image.dtype == np.uint8:
        scaled /= 255
    return {"image": np.ascontiguousarray(scaled[..., None]), "label": label.astype(np.int32)}


def _check_labels(label: np.ndarray, *, classes: int, where: str) -> None:
    """Raises a UserError that names `where` if a label is outside [0, classes)."""
    wrong = label[(label < 0) | (label >= classes)]
    if wrong.size:
        raise UserError(f"{where} holds the label {int(wrong[0])}: legal labels are 0 to {classes - 1}.")


def _check_pair(images: int, labels: int, *, where: str) -> None:
    """Raises a UserError that names `where` if a split is empty or lacks one label per image."""
    if images != labels:
        raise UserError(f"{where} has {images} images and {labels} labels: there must be one label for each image.")
    if images == 0:
        raise UserError(f"{where} has no images: there must be at least 1.")


# The 1,797 handwritten 8x8 digits that come with scikit-learn: real data without a network.
EDGE = 8  # pixels
LEVELS = 16  # the value of a black pixel
TEST_FRACTION = 0.2


def _digits(*, seed: int, size: Size, classes: int) -> Splits:
    """The digits enlarged to `size` and split 80/20 with equal shares of each class; order and split follow `seed`."""
    from sklearn.datasets import load_digits  # late: it takes a second to import

    if min(size) < EDGE:
        raise UserError(f"the bundled digits cannot be scaled to {size[0]}x{size[1]} pixels: at least 8x8 are needed.")
    if classes < 10:
        raise UserError(f"the bundled digits have 10 classes and the model has {classes}: give it at least 10.")
    pixels, label = load_digits(return_X_y=True)
    times = min(size) // EDGE  # each pixel is repeated as often as fits (3 times for 28), with an empty border
    image = (pixels / LEVELS).reshape(-1, EDGE, EDGE).repeat(times, axis=1).repeat(times, axis=2)
    spare = [edge - times * EDGE for edge in size]
    image = np.pad(image, [(0, 0), *((gap // 2, gap - gap // 2) for gap in spare)])
    train, test = _split_by_class(label, seed)
    return Splits(_bundle(image[train], label[train]), _bundle(image[test], label[test]), "digits")


def _split_by_class(label: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices (train, test), each shuffled, with `TEST_FRACTION` of every class in test."""
    drawn = permutation(len(label), seed)
    in_test = np.zeros(len(label), bool)
    for value in np.unique(label):
        members = drawn[label[drawn] == value]
        in_test[members[: round(TEST_FRACTION * len(members))]] = True
    # A new permutation, because the split takes its test set from the start of `drawn`.
    shuffled = permutation(len(label), seed, 1)
    return shuffled[~in_test[shuffled]], shuffled[in_test[shuffled]]


def _idx_split(folder: Path, part: str, *, size: Size, classes: int) -> Arrays:
    """One split of MNIST's files: ``{train,t10k}-{images-idx3,labels-idx1}-ubyte``, also with '.idx', also '.gz'."""
    image_path, label_path = (_idx_path(folder, part, kind, d) for kind, d in (("images", 3), ("labels", 1)))
    image, label = _read_idx(image_path, dims=3), _read_idx(label_path, dims=1)
    if image.shape[1:] != size:
        found = "x".join(map(str, image.shape[1:]))
        raise UserError(f"{image_path} holds images of {found} pixels: the model takes {size[0]}x{size[1]}.")
    _check_pair(len(image), len(label), where=f"{image_path} with {label_path.name}")
    _check_labels(label, classes=classes, where=str(label_path))
    return _bundle(image, label)


def _idx_path(folder: Path, part: str, kind: str, dims: int) -> Path:
    names = [f"{part}-{kind}{dot}idx{dims}-ubyte{gz}" for dot in "-." for gz in ("", ".gz")]
    present = [folder / name for name in names if (folder / name).is_file()]
    if not present:
        raise UserError(f"'{folder}' has no {kind} of the {part} split: it must hold {names[0]} or {names[1]}.")
    return present[0]


UBYTE = 0x08  # the only type code in MNIST
TYPES = {0x08: "uint8", 0x09: "int8", 0x0B: "int16", 0x0C: "int32", 0x0D: "float32", 0x0E: "float64"}
IDX_BYTES = 2**31  # more than any MNIST-like data; a file that declares more is damaged or hostile
_CHUNK, _GZIP = 2**20, b"\x1f\x8b"


def _read_idx(path: Path, *, dims: int) -> np.ndarray:
    """Reads one file of unsigned bytes with `dims` dimensions.

    Raises:
      UserError: no such file, not IDX, another type or number of dimensions, too short or too long.
    """
    try:
        with open(path, "rb") as raw:
            compressed = raw.read(2) == _GZIP
            raw.seek(0)
            if not compressed:
                return _parse_idx(raw, path, dims=dims)
            with gzip.open(raw) as file:
                return _parse_idx(file, path, dims=dims)  # type: ignore[arg-type]  # a GzipFile reads like any other
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError(f"{path} is a damaged gzip file ({error}): copy it again.") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read ({os.strerror(error.errno) if error.errno else error}).") from error


def _parse_idx(file: BinaryIO, path: Path, *, dims: int) -> np.ndarray:
    shape = _idx_header(file, path, dims=dims)
    declared = math.prod(shape)
    if declared > IDX_BYTES:
        raise UserError(f"{path} declares {_by(shape)} = {declared} bytes of values: at most {IDX_BYTES} are legal.")
    data = _read_up_to(file, declared + 1)  # one more byte detects trailing data without inflating a gzip bomb
    if len(data) != declared:
        found = "more" if len(data) > declared else f"only {len(data)}"
        raise UserError(f"{path} declares {_by(shape)} = {declared} bytes of values and holds {found}.")
    return np.frombuffer(data, np.uint8).reshape(shape)


def _idx_header(file: BinaryIO, path: Path, *, dims: int) -> tuple[int, ...]:
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
    while count and (piece := file.read(min(_CHUNK, count))):
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def _by(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


# CIFAR-10 as published, in its binary version: six files of 10,000 rows. A row is one byte for the label, then 3,072
# for the image: its 32 x 32 red values row by row, then green, then blue.
CIFAR_SHAPE = (3, 32, 32)
CIFAR_ROWS = 10_000  # per file
CIFAR_TRAIN = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
CIFAR_TEST = "test_batch.bin"


def _cifar10(folder: Path, *, size: Size, channels: int, classes: int) -> Splits:
    """Reads the six files. Each colour is shifted by its mean over the training images and divided by its deviation."""
    if (channels, *size) != CIFAR_SHAPE:
        takes = "x".join(map(str, (*size, channels)))
        raise UserError(f"'{folder}' holds images of 32x32x3: the model takes {takes}.")
    train = np.concatenate([_cifar_rows(folder / name, classes) for name in CIFAR_TRAIN])
    test = _cifar_rows(folder / CIFAR_TEST, classes)
    values = np.arange(256) / 255
    planes = train[:, 1:].reshape(len(train), 3, -1)
    counts = np.stack([np.bincount(planes[:, colour].ravel(), minlength=256) for colour in range(3)])
    share = counts / counts.sum(axis=1, keepdims=True)
    centered = values - (share @ values)[:, None]
    deviation = np.sqrt((share * centered**2).sum(axis=1))
    table = (centered / np.maximum(deviation, 1 / 255)[:, None]).astype(np.float32)  # of each byte, by colour

    def bundle(rows: np.ndarray) -> Arrays:
        planes = rows[:, 1:].reshape(len(rows), *CIFAR_SHAPE)
        image = np.stack([table[colour][planes[:, colour]] for colour in range(3)], axis=-1)
        return {"image": image, "label": rows[:, 0].astype(np.int32)}

    return Splits(bundle(train), bundle(test), folder.resolve().name)


def _cifar_rows(path: Path, classes: int) -> np.ndarray:
    """One file, uint8 (CIFAR_ROWS, 3073). Raises UserError for a missing file, a wrong length or an illegal label."""
    if not path.is_file():
        raise UserError(
            f"'{path.parent}' has no {path.name}: it must hold data_batch_1.bin to data_batch_5.bin and {CIFAR_TEST}."
        )
    length = 1 + 3 * 32 * 32
    try:
        rows = np.fromfile(path, np.uint8)
    except OSError as error:
        raise UserError(f"{path} cannot be read ({os.strerror(error.errno) if error.errno else error}).") from error
    if len(rows) != CIFAR_ROWS * length:
        raise UserError(
            f"{path} holds {len(rows)} bytes: {CIFAR_ROWS} rows of {length} bytes, {CIFAR_ROWS * length}, are needed."
        )
    rows = rows.reshape(CIFAR_ROWS, length)
    _check_labels(rows[:, 0], classes=min(classes, 10), where=str(path))
    return rows


NPZ_KEYS = ("x_train", "y_train", "x_test", "y_test")
NPZ_BYTES = 2**33  # of one array; a file that declares more is damaged or hostile
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


@dataclass(frozen=True)
class NpzHeader:
    shape: tuple[int, ...]
    dtype: np.dtype


def _npz(path: Path, *, size: Size, classes: int) -> Splits:
    """Reads uint8 images (0 to 255) or float images (0 to 1), (N, height, width) or (N, height, width, 1).

    Raises:
      UserError: not an .npz file, a missing key, or an illegal type, shape or value in an array.
    """
    try:
        with zipfile.ZipFile(path) as file:
            _check_npz_keys(file, path)
            train = _npz_split(file, path, "train", size=size, classes=classes)
            test = _npz_split(file, path, "test", size=size, classes=classes)
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError) as error:
        raise UserError(f"{path} is a damaged .npz file ({error}): copy it again.") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}).") from error
    return Splits(train, test, path.stem)


def _check_npz_keys(file: zipfile.ZipFile, path: Path) -> None:
    present = {name.removesuffix(".npy") for name in file.namelist()}
    missing = [key for key in NPZ_KEYS if key not in present]
    if missing:
        raise UserError(f"{path} has no array '{missing[0]}': it must hold {', '.join(NPZ_KEYS)}.")


def _npz_split(file: zipfile.ZipFile, path: Path, part: str, *, size: Size, classes: int) -> Arrays:
    x_key, y_key = f"x_{part}", f"y_{part}"
    x, y = _npz_header(file, path, x_key), _npz_header(file, path, y_key)
    if x.dtype != np.uint8 and x.dtype.kind != "f":
        raise UserError(f"{path}: {x_key} is {x.dtype}: legal are uint8 (0 to 255) and floats (0 to 1).")
    if len(x.shape) not in (3, 4) or x.shape[1:3] != size or x.shape[3:] not in ((), (1,)):
        raise UserError(f"{path}: {x_key} has shape {x.shape}: the model takes (N, {size[0]}, {size[1]}).")
    if y.dtype.kind not in "iu" or len(y.shape) != 1:
        raise UserError(f"{path}: {y_key} is {y.dtype} of shape {y.shape}: legal are integers of shape (N,).")
    _check_pair(x.shape[0], y.shape[0], where=f"{path}: the {part} split")
    image, label = _npz_values(file, x_key), _npz_values(file, y_key)
    # NaN fails both comparisons, so it is caught too.
    if image.dtype.kind == "f" and not (image.min() >= 0 and image.max() <= 1):
        raise UserError(f"{path}: {x_key} has values from {image.min():g} to {image.max():g}: floats must be 0 to 1.")
    _check_labels(label, classes=classes, where=f"{path}: {y_key}")
    return _bundle(image.reshape(-1, *size), label)


def _npz_header(file: zipfile.ZipFile, path: Path, key: str) -> NpzHeader:
    """Type and shape as declared, without reading the values or unpickling anything."""
    with file.open(f"{key}.npy") as member:
        version = npy.read_magic(member)
        if version not in _HEADERS:
            raise UserError(f"{path}: {key} is of .npy version {version}: legal are {', '.join(map(str, _HEADERS))}.")
        shape, _, dtype = _HEADERS[version](member)
        stored = file.getinfo(f"{key}.npy").file_size - member.tell()
    if dtype.hasobject:
        raise UserError(f"{path}: {key} holds Python objects: legal are arrays of numbers.")
    declared = math.prod(shape) * dtype.itemsize
    if declared > NPZ_BYTES:
        raise UserError(f"{path}: {key} declares {declared} bytes: at most {NPZ_BYTES} are legal.")
    if declared != stored:
        raise UserError(f"{path}: {key} declares {declared} bytes of values and holds {stored}.")
    return NpzHeader(shape, dtype)


def _npz_values(file: zipfile.ZipFile, key: str) -> np.ndarray:
    with file.open(f"{key}.npy") as member:
        return npy.read_array(member, allow_pickle=False)


# Images of digits with random captions that name them: image-text pairs without a network.
NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
PHRASES = ("{}", "a {}", "the digit {}", "a handwritten {}", "{} again", "{}, by hand", "this is {}", "it reads {}")
CASES = (str.lower, str.upper, str.capitalize)
LONGEST = max(len(phrase.format(name)) for phrase in PHRASES for name in NAMES)


def load_captioned(path: str, *, seed: int, size: int, length: int) -> Splits:
    """The images that `load` reads from `path`, each with the bytes of a caption.

    Adds "caption" to train and test, int32 (N, length), padded with 0.

    Raises:
      UserError: as `load`, or `length` is less than that of the longest caption.
    """
    if length < LONGEST:
        raise UserError(f"--config.model.length={length} cannot hold a caption: it must be at least {LONGEST}.")
    images = load(path, seed=seed, size=(size, size))
    train, test = (
        {**part, "caption": _captions(part["label"], length, seed, number)}
        for number, part in enumerate((images.train, images.test))
    )
    return Splits(train, test, f"{images.name} with drawn captions")


def _captions(label: np.ndarray, length: int, *entropy: int) -> np.ndarray:
    phrase, case, numeral = words(3 * len(label), *entropy).reshape(3, -1)
    out = np.zeros((len(label), length), np.int32)
    for i, digit in enumerate(label):
        name = str(digit) if numeral[i] % 4 == 0 else NAMES[digit]
        text = CASES[case[i] % len(CASES)](PHRASES[phrase[i] % len(PHRASES)].format(name)).encode()
        out[i, : len(text)] = np.frombuffer(text, np.uint8)
    return out
