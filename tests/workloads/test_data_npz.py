# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Data in an .npz file, and each possible error."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

from jaxbench.errors import UserError
from jaxbench.workloads.data import load


def arrays(**changes):
    random = np.random.default_rng(0)
    good = {
        "x_train": random.integers(0, 256, (9, 28, 28), np.uint8),
        "y_train": random.integers(0, 10, 9),
        "x_test": random.integers(0, 256, (4, 28, 28), np.uint8),
        "y_test": random.integers(0, 10, 4),
    }
    return {name: array for name, array in {**good, **changes}.items() if array is not None}


def write(tmp_path, **changes):
    path = tmp_path / "data.npz"
    np.savez_compressed(path, **arrays(**changes))
    return str(path)


def test_written_files_are_read(tmp_path):
    data = load(write(tmp_path), seed=0)
    np.testing.assert_array_equal(data.train["image"][..., 0], arrays()["x_train"].astype(np.float32) / 255)
    np.testing.assert_array_equal(data.test["label"], arrays()["y_test"])
    assert data.train["label"].dtype == np.int32 and data.name == "data"


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ">f4"])
def test_floats_from_0_to_1_and_a_channel_axis_are_unchanged(tmp_path, dtype):
    x = np.linspace(0, 1, 9 * 784).reshape(9, 28, 28, 1).astype(dtype)
    image = load(write(tmp_path, x_train=x), seed=0).train["image"]
    assert image.dtype == np.float32 and image.shape == (9, 28, 28, 1)
    np.testing.assert_array_equal(image, x.astype(np.float32))


def test_arrays_in_column_order_are_read_right(tmp_path):
    x = np.asfortranarray(arrays()["x_train"])
    image = load(write(tmp_path, x_train=x), seed=0).train["image"]
    np.testing.assert_array_equal(image[..., 0], x.astype(np.float32) / 255)


BAD = {
    "missing": ({"y_test": None}, "has no array 'y_test': it must hold x_train, y_train, x_test, y_test"),
    "objects": ({"y_train": np.array([None] * 9)}, "y_train holds Python objects"),
    "integers": ({"x_train": np.zeros((9, 28, 28), np.int32)}, "x_train is int32: legal are uint8"),
    "flat": ({"x_train": np.zeros((9, 784), np.uint8)}, r"x_train has shape \(9, 784\): the model takes \(N, 28, 28\)"),
    "colour": ({"x_test": np.zeros((4, 28, 28, 3), np.uint8)}, r"x_test has shape \(4, 28, 28, 3\)"),
    "scaled to 255": ({"x_train": np.full((9, 28, 28), 255.0)}, "x_train has values from 255 to 255: floats must be"),
    "not a number": ({"x_train": np.full((9, 28, 28), np.nan)}, "x_train has values from nan"),
    "one-hot": ({"y_train": np.zeros((9, 10), int)}, r"y_train is int64 of shape \(9, 10\): legal are integers"),
    "float labels": ({"y_test": np.zeros(4)}, "y_test is float64"),
    "count": ({"y_train": np.zeros(8, int)}, "the train split has 9 images and 8 labels"),
    "empty": ({"x_test": np.zeros((0, 28, 28), np.uint8), "y_test": np.zeros(0, int)}, "the test split has no images"),
    "label": ({"y_test": np.array([1, 2, 3, -1])}, "y_test holds the label -1: legal labels are 0 to 9"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_array_is_named_with_what_was_found(tmp_path, kind):
    changes, message = BAD[kind]
    with pytest.raises(UserError, match=f"data.npz.*{message}"):
        load(write(tmp_path, **changes), seed=0)


def test_a_file_that_is_no_archive_or_half_of_one(tmp_path):
    path = tmp_path / "data.npz"
    for data in (b"", b"hello", (tmp_path / write(tmp_path)).read_bytes()[:3000]):
        path.write_bytes(data)
        with pytest.raises(UserError, match="data.npz is a damaged .npz file"):
            load(str(path), seed=0)


def test_a_flipped_bit_is_seen(tmp_path):
    path = tmp_path / write(tmp_path)
    data = bytearray(path.read_bytes())
    data[2000] ^= 8
    path.write_bytes(data)
    with pytest.raises(UserError, match="damaged"):
        load(str(path), seed=0)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((2**40, 28, 28), "declares .* bytes: at most"),
        ((9**4, 28, 28), "declares 5143824 bytes of values and holds 99"),
    ],
)
def test_a_header_that_declares_too_much_is_not_believed(tmp_path, shape, message):
    path = tmp_path / write(tmp_path)
    member = io.BytesIO()
    np.lib.format.write_array_header_1_0(member, {"descr": "|u1", "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(path, "w") as file:
        for name, array in arrays().items():
            buffer = io.BytesIO()
            np.save(buffer, array)
            file.writestr(f"{name}.npy", member.getvalue() + bytes(99) if name == "x_train" else buffer.getvalue())
    with pytest.raises(UserError, match=f"x_train {message}"):
        load(str(path), seed=0)
