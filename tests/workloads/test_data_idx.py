# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""MNIST's files: read to the byte; each possible error gives a sentence that names the file."""

from __future__ import annotations

import gzip
import struct
import tracemalloc

import numpy as np
import pytest

from jaxbench.errors import UserError
from jaxbench.workloads.data import load

NAMES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "t10k": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}


def idx(array, code=0x08):
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, code, array.ndim, *array.shape) + array.tobytes()


def draw(count, seed):
    random = np.random.default_rng(seed)
    return random.integers(0, 256, (count, 28, 28), np.uint8), random.integers(0, 10, count, np.uint8)


@pytest.fixture
def mnist(tmp_path):
    """A folder with 7 training and 3 test images."""
    for part, count in (("train", 7), ("t10k", 3)):
        for name, array in zip(NAMES[part], draw(count, count), strict=True):
            (tmp_path / name).write_bytes(idx(array))
    return tmp_path


IMAGES = NAMES["train"][0]
LABELS = NAMES["train"][1]


def test_written_files_are_read(mnist):
    data = load(str(mnist), seed=0)
    image, label = draw(7, 7)
    assert data.train["image"].shape == (7, 28, 28, 1) and data.train["image"].dtype == np.float32
    np.testing.assert_array_equal(data.train["image"][..., 0], image.astype(np.float32) / 255)
    np.testing.assert_array_equal(data.train["label"], label)
    assert data.train["label"].dtype == np.int32 and len(data.test["label"]) == 3
    assert data.name == mnist.name


def test_compressed_files_and_the_other_spelling_are_read_too(mnist):
    plain = load(str(mnist), seed=0)
    for path in list(mnist.iterdir()):
        target = path.with_name(path.name.replace("-idx", ".idx") + ".gz")
        target.write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    packed = load(str(mnist), seed=0)
    np.testing.assert_array_equal(packed.train["image"], plain.train["image"])


def test_a_compressed_file_is_known_by_its_content(mnist):
    path = mnist / IMAGES
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert len(load(str(mnist), seed=0).train["image"]) == 7


def test_a_missing_file_is_named(mnist):
    (mnist / LABELS).unlink()
    with pytest.raises(UserError, match="has no labels of the train split: it must hold train-labels-idx1-ubyte or "):
        load(str(mnist), seed=0)


def with_header(code, dims, *sizes):
    return lambda data: struct.pack(f">BBBB{len(sizes)}I", 0, 0, code, dims, *sizes) + data[16:]


BAD = {
    "png": (lambda data: b"\x89PNG" + data, "is not an IDX file .it begins with '89 50 4e 47'.: .* 00 00 08 03"),
    "empty": (lambda data: b"", "is not an IDX file"),
    "unknown type": (with_header(0x07, 3, 7, 28, 28), "is not an IDX file"),
    "float": (
        with_header(0x0D, 3, 7, 28, 28),
        "holds float32 values .*: an MNIST file of this kind begins with 00 00 08 03",
    ),
    "labels": (lambda data: idx(draw(7, 7)[1]), "has 1 dimensions"),
    "cut header": (lambda data: data[:9], "ends within its header, after 9 bytes: 16 are needed"),
    "short": (lambda data: data[:-1], "declares 7 x 28 x 28 = 5488 bytes of values and holds only 5487"),
    "long": (lambda data: data + b"\0", "declares 7 x 28 x 28 = 5488 bytes of values and holds more"),
    "other size": (
        lambda data: idx(np.zeros((7, 14, 56), np.uint8)),
        "holds images of 14x56 pixels: the model takes 28x28",
    ),
    "other count": (lambda data: idx(draw(6, 7)[0]), "has 6 images and 7 labels"),
    "huge": (
        with_header(0x08, 3, 2**32 - 1, 28, 28),
        "declares .* = 3367254359280 bytes of values: at most 2147483648",
    ),
}


@pytest.mark.parametrize("compress", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_is_named_with_what_was_found(mnist, kind, compress):
    change, message = BAD[kind]
    data = change((mnist / IMAGES).read_bytes())
    (mnist / IMAGES).write_bytes(gzip.compress(data) if compress else data)
    with pytest.raises(UserError, match=f"{IMAGES}.*{message}"):
        load(str(mnist), seed=0)


def test_no_images_at_all(mnist):
    (mnist / IMAGES).write_bytes(idx(np.zeros((0, 28, 28), np.uint8)))
    (mnist / LABELS).write_bytes(idx(np.zeros(0, np.uint8)))
    with pytest.raises(UserError, match="has no images"):
        load(str(mnist), seed=0)


def test_a_label_that_is_no_class(mnist):
    (mnist / LABELS).write_bytes(idx(np.array([0, 1, 2, 3, 4, 5, 11], np.uint8)))
    with pytest.raises(UserError, match=f"{LABELS} holds the label 11: legal labels are 0 to 9"):
        load(str(mnist), seed=0)


@pytest.mark.parametrize("cut", [slice(0, 40), slice(0, -4)], ids=["data", "trailer"])
def test_a_cut_gzip_file(mnist, cut):
    data = gzip.compress((mnist / IMAGES).read_bytes())
    (mnist / IMAGES).write_bytes(data[cut])
    with pytest.raises(UserError, match="is a damaged gzip file"):
        load(str(mnist), seed=0)


def test_a_flipped_bit_in_a_gzip_file(mnist):
    data = bytearray(gzip.compress((mnist / IMAGES).read_bytes()))
    data[len(data) // 2] ^= 1
    (mnist / IMAGES).write_bytes(data)
    with pytest.raises(UserError, match="is a damaged gzip file"):
        load(str(mnist), seed=0)


def test_a_gzip_bomb_is_read_no_further_than_it_declares(mnist):
    bomb = (mnist / IMAGES).read_bytes() + bytes(200 * 2**20)
    (mnist / IMAGES).write_bytes(gzip.compress(bomb, compresslevel=1))
    tracemalloc.start()
    with pytest.raises(UserError, match="holds more"):
        load(str(mnist), seed=0)
    assert tracemalloc.get_traced_memory()[1] < 10 * 2**20
    tracemalloc.stop()


def test_an_unreadable_file(mnist):
    (mnist / IMAGES).unlink()
    (mnist / IMAGES).mkdir()
    with pytest.raises(UserError, match="has no images of the train split"):
        load(str(mnist), seed=0)
