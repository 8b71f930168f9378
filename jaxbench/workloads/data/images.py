# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Images with labels, read from disk and checked: MNIST's IDX files, CIFAR-10, an .npz file, scikit-learn's digits.

Nothing is downloaded, and missing data is not replaced. Each split has "image", float32 (N, height, width, channels),
gray in [0, 1] or normalized, and "label", int32 (N,).
"""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from jaxbench.core.workload import Dataset
from jaxbench.errors import UserError
from jaxbench.records.reading import read_arrays
from jaxbench.workloads.data.input import permutation, words

Arrays = dict[str, np.ndarray]
Size = tuple[int, int]  # height, width

# The 1,797 handwritten 8x8 digits that come with scikit-learn: real data without a network.
EDGE = 8  # pixels
LEVELS = 16  # the value of a black pixel
TEST_FRACTION = 0.2  # 360 images: an accuracy of 95 % has a standard error of 1.1 points
UBYTE, GZIP = 0x08, b"\x1f\x8b"
# CIFAR-10 as published, in its binary version: six files of 10,000 rows. A row is one byte for the label, then 3,072
# for the image: its 32 x 32 red values row by row, then green, then blue.
CIFAR_SHAPE = (3, 32, 32)
CIFAR_ROWS = 10_000  # per file
CIFAR_TRAIN = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
CIFAR_TEST = "test_batch.bin"
NPZ_KEYS = ("x_train", "y_train", "x_test", "y_test")
# Images of digits with random captions that name them: image-text pairs without a network.
NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
PHRASES = ("{}", "a {}", "the digit {}", "a handwritten {}", "{} again", "{}, by hand", "this is {}", "it reads {}")
CASES = (str.lower, str.upper, str.capitalize)
LONGEST = max(len(phrase.format(name)) for phrase in PHRASES for name in NAMES)


def load(path: str, *, seed: int, size: Size = (28, 28), channels: int = 1, classes: int = 10) -> Dataset:
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
    where = Path(path).expanduser()  # of "" it is the current folder, hence `path and`
    if path and where.is_dir() and any((where / name).exists() for name in (*CIFAR_TRAIN, CIFAR_TEST)):
        return _cifar10(where, size=size, channels=channels, classes=classes)
    if not path:
        gray = _digits(seed=seed, size=size, classes=classes)
    elif where.is_dir():
        train, test = (_idx_split(where, split, size=size, classes=classes) for split in ("train", "t10k"))
        gray = Dataset(train, test, where.resolve().name)
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
    # A gray image in three equal channels: the models for CIFAR-10 then run on any of these data.
    train, test = ({**part, "image": part["image"].repeat(channels, axis=-1)} for part in (gray.train, gray.test))
    return Dataset(train, test, gray.name)


def _bundle(image: np.ndarray, label: np.ndarray, *, classes: int, where: str) -> Arrays:
    """One split in its final types. `image`: (N, height, width), uint8 (divided by 255) or a float in [0, 1].

    Raises a UserError that names `where` if there is not one label in [0, classes) for each image, or no image.
    """
    if len(image) != len(label) or not len(image):
        raise UserError(f"{where} has {len(image)} images and {len(label)} labels: each of at least 1 must have one.")
    _check_labels(label, classes=classes, where=where)
    scaled = image.astype(np.float32)
    if image.dtype == np.uint8:
        scaled /= 255
    return {"image": np.ascontiguousarray(scaled[..., None]), "label": label.astype(np.int32)}


def _check_labels(label: np.ndarray, *, classes: int, where: str) -> None:
    wrong = label[(label < 0) | (label >= classes)]
    if wrong.size:
        raise UserError(f"{where} holds the label {int(wrong[0])}: legal labels are 0 to {classes - 1}.")


def _digits(*, seed: int, size: Size, classes: int) -> Dataset:
    """The digits enlarged to `size` and split 80/20 with equal shares of each class; order and split follow `seed`."""
    from sklearn.datasets import load_digits  # late: it takes a second to import

    if min(size) < EDGE:
        raise UserError(f"the bundled digits cannot be scaled to {size[0]}x{size[1]} pixels: at least 8x8 are needed.")
    pixels, label = load_digits(return_X_y=True)
    times = min(size) // EDGE  # each pixel is repeated as often as fits (3 times for 28), with an empty border
    image = (pixels / LEVELS).reshape(-1, EDGE, EDGE).repeat(times, axis=1).repeat(times, axis=2)
    spare = [edge - times * EDGE for edge in size]
    image = np.pad(image, [(0, 0), *((gap // 2, gap - gap // 2) for gap in spare)])
    train, test = _split_by_class(label, seed)
    first, second = (
        _bundle(image[rows], label[rows], classes=classes, where="scikit-learn's digits") for rows in (train, test)
    )
    return Dataset(first, second, "digits")


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


def _idx_split(folder: Path, split: str, *, size: Size, classes: int) -> Arrays:
    """One split of MNIST's files: ``{train,t10k}-{images-idx3,labels-idx1}-ubyte``, also with '.idx', also '.gz'."""
    image_path, label_path = (_idx_path(folder, split, kind, d) for kind, d in (("images", 3), ("labels", 1)))
    image, label = _read_idx(image_path, dims=3), _read_idx(label_path, dims=1)
    if image.shape[1:] != size:
        found = "x".join(map(str, image.shape[1:]))
        raise UserError(f"{image_path} holds images of {found} pixels: the model takes {size[0]}x{size[1]}.")
    return _bundle(image, label, classes=classes, where=f"{image_path} with {label_path.name}")


def _idx_path(folder: Path, split: str, kind: str, dims: int) -> Path:
    names = [f"{split}-{kind}{dot}idx{dims}-ubyte{gz}" for dot in "-." for gz in ("", ".gz")]
    present = [folder / name for name in names if (folder / name).is_file()]
    if not present:
        raise UserError(f"'{folder}' has no {kind} of the {split} split: it must hold {names[0]} or {names[1]}.")
    return present[0]


def _read_idx(path: Path, *, dims: int) -> np.ndarray:
    """One file of unsigned bytes with `dims` dimensions. Raises UserError for any other file."""
    try:
        data = path.read_bytes()
        data = gzip.decompress(data) if data.startswith(GZIP) else data
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path} cannot be read ({error}): copy it again.") from error
    magic, header = bytes((0, 0, UBYTE, dims)), 4 + 4 * dims  # then each size as a big-endian uint32
    if not data.startswith(magic) or len(data) < header:
        found, legal = data[:4].hex(" "), magic.hex(" ")
        raise UserError(f"{path} is not an MNIST file of this kind: it begins with '{found}' and not with '{legal}'.")
    shape = struct.unpack(f">{dims}I", data[4:header])
    if len(data) - header != math.prod(shape):
        declared = f"{' x '.join(map(str, shape))} = {math.prod(shape)}"
        raise UserError(f"{path} declares {declared} bytes of values and holds {len(data) - header}: copy it again.")
    return np.frombuffer(data, np.uint8, offset=header).reshape(shape)


def _cifar10(folder: Path, *, size: Size, channels: int, classes: int) -> Dataset:
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
    deviation = np.sqrt((share * centered**2).sum(axis=1))  # from the counts: no float copy of 50,000 images
    # Only 256 values a colour exist, so a table is built once and pixels are looked up.
    # At least one level, so that images of a single colour do not divide by 0.
    table = (centered / np.maximum(deviation, 1 / 255)[:, None]).astype(np.float32)  # of each byte, by colour

    def bundle(rows: np.ndarray) -> Arrays:
        planes = rows[:, 1:].reshape(len(rows), *CIFAR_SHAPE)
        image = np.stack([table[colour][planes[:, colour]] for colour in range(3)], axis=-1)
        return {"image": image, "label": rows[:, 0].astype(np.int32)}

    return Dataset(bundle(train), bundle(test), folder.resolve().name)


def _cifar_rows(path: Path, classes: int) -> np.ndarray:
    """One file, uint8 (CIFAR_ROWS, 3073). Raises UserError for a missing file, a wrong length or an illegal label."""
    if not path.is_file():
        raise UserError(
            f"'{path.parent}' has no {path.name}: it must hold data_batch_1.bin to data_batch_5.bin and {CIFAR_TEST}."
        )
    length, rows = 1 + 3 * 32 * 32, np.fromfile(path, np.uint8)
    if len(rows) != CIFAR_ROWS * length:
        raise UserError(
            f"{path} holds {len(rows)} bytes: {CIFAR_ROWS} rows of {length} bytes, {CIFAR_ROWS * length}, are needed."
        )
    rows = rows.reshape(CIFAR_ROWS, length)
    _check_labels(rows[:, 0], classes=min(classes, 10), where=str(path))  # a model may have more outputs
    return rows


def _npz(path: Path, *, size: Size, classes: int) -> Dataset:
    """Reads uint8 images (0 to 255) or float images (0 to 1), (N, height, width) or (N, height, width, 1).

    Raises:
      UserError: not an .npz file, a missing key, or an illegal type, shape or value in an array.
    """

    def wanted(file: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        if missing := [key for key in NPZ_KEYS if key not in file]:
            raise UserError(f"{path} has no array '{missing[0]}': it must hold {', '.join(NPZ_KEYS)}.")
        return [file[key] for key in NPZ_KEYS]

    x_train, y_train, x_test, y_test = read_arrays(path, wanted, "save it again as an .npz file of numbers.")
    train = _npz_split(path, x_train, y_train, "train", size, classes)
    return Dataset(train, _npz_split(path, x_test, y_test, "test", size, classes), path.stem)


def _npz_split(path: Path, x: np.ndarray, y: np.ndarray, split: str, size: Size, classes: int) -> Arrays:
    where = f"{path}: x_{split} with y_{split}"
    if x.dtype != np.uint8 and x.dtype.kind != "f":
        raise UserError(f"{path}: x_{split} is {x.dtype}: legal are uint8 (0 to 255) and floats (0 to 1).")
    if x.shape[1:3] != size or x.shape[3:] not in ((), (1,)):
        raise UserError(f"{path}: x_{split} has shape {x.shape}: the model takes (N, {size[0]}, {size[1]}).")
    if y.dtype.kind not in "iu" or y.ndim != 1:
        raise UserError(f"{path}: y_{split} is {y.dtype} of shape {y.shape}: legal are integers of shape (N,).")
    # Pixels from 0 to 255 as floats would train, and badly. NaN fails both comparisons, so it is caught too.
    if x.dtype.kind == "f" and x.size and not (x.min() >= 0 and x.max() <= 1):
        raise UserError(f"{path}: x_{split} has values from {x.min():g} to {x.max():g}: floats must be 0 to 1.")
    return _bundle(x.reshape(-1, *size), y, classes=classes, where=where)


def load_captioned(path: str, *, seed: int, size: int, length: int) -> Dataset:
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
    return Dataset(train, test, f"{images.name} with drawn captions")


def _captions(label: np.ndarray, length: int, *entropy: int) -> np.ndarray:
    """(examples, length): a caption of each digit as bytes, in a drawn wording."""
    # Drawn wordings: with ten fixed captions the text tower would have only ten inputs to learn.
    phrase, case, numeral = words(3 * len(label), *entropy).reshape(3, -1)
    out = np.zeros((len(label), length), np.int32)
    for i, digit in enumerate(label):
        name = str(digit) if numeral[i] % 4 == 0 else NAMES[digit]
        text = CASES[case[i] % len(CASES)](PHRASES[phrase[i] % len(PHRASES)].format(name)).encode()
        out[i, : len(text)] = np.frombuffer(text, np.uint8)
    return out
