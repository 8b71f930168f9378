# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""CIFAR-10's binary files: read to the byte, in the right order of colours; errors are named."""

from __future__ import annotations

import numpy as np
import pytest

from jaxbench.errors import UserError
from jaxbench.workloads.data import cifar10, load

ROWS = 20
COLOUR = {"size": (32, 32), "channels": 3}


@pytest.fixture
def cifar(tmp_path, monkeypatch):
    """A folder with files of 20 rows each."""
    monkeypatch.setattr(cifar10, "ROWS", ROWS)
    random = np.random.default_rng(0)
    for name in (*cifar10.TRAIN, cifar10.TEST):
        pixels = random.integers(0, 256, (ROWS, 3072), np.uint8) // [[3] * 1024 + [2] * 1024 + [1] * 1024]
        label = random.integers(0, 10, (ROWS, 1))
        (tmp_path / name).write_bytes(np.concatenate([label, pixels], axis=1).astype(np.uint8).tobytes())
    return tmp_path


def test_written_files_are_read_and_normalised(cifar):
    data = load(str(cifar), seed=0, **COLOUR)
    assert data.train["image"].shape == (5 * ROWS, 32, 32, 3) and data.train["image"].dtype == np.float32
    assert data.test["image"].shape == (ROWS, 32, 32, 3) and data.name == cifar.name
    np.testing.assert_allclose(data.train["image"].mean((0, 1, 2), np.float64), 0, atol=1e-5)
    np.testing.assert_allclose(data.train["image"].std((0, 1, 2), np.float64), 1, atol=1e-5)
    files = [np.fromfile(cifar / name, np.uint8).reshape(ROWS, 3073) for name in (*cifar10.TRAIN, cifar10.TEST)]
    np.testing.assert_array_equal(data.train["label"], np.concatenate(files[:5])[:, 0])
    assert data.train["label"].dtype == np.int32
    for colour in range(3):
        seen = np.concatenate(files[:5])[:, 1 + 1024 * colour : 1025 + 1024 * colour] / 255
        for row in (0, 7):
            for column in (0, 31):
                value = files[5][3, 1 + 1024 * colour + 32 * row + column] / 255
                expected = (value - seen.mean()) / seen.std()
                np.testing.assert_allclose(data.test["image"][3, row, column, colour], expected, atol=1e-5)


def test_one_colour_everywhere_is_not_divided_by_zero(cifar):
    for name in (*cifar10.TRAIN, cifar10.TEST):
        (cifar / name).write_bytes(bytes(ROWS * 3073))
    assert np.isfinite(load(str(cifar), seed=0, **COLOUR).train["image"]).all()


@pytest.mark.parametrize("name", ["data_batch_3.bin", "test_batch.bin"])
def test_a_missing_file_is_named(cifar, name):
    (cifar / name).unlink()
    with pytest.raises(UserError, match=f"has no {name}: it must hold data_batch_1.bin to data_batch_5.bin and test_b"):
        load(str(cifar), seed=0, **COLOUR)


@pytest.mark.parametrize("change", [lambda d: d[:-1], lambda d: d[:-3073], lambda d: d + b"\0", lambda d: b""])
def test_another_length_is_named(cifar, change):
    path = cifar / "data_batch_5.bin"
    path.write_bytes(change(path.read_bytes()))
    found = path.stat().st_size
    with pytest.raises(UserError, match=f"data_batch_5.bin holds {found} bytes: 20 rows of 3073 bytes, 61460, are nee"):
        load(str(cifar), seed=0, **COLOUR)


def test_a_label_that_is_no_class(cifar):
    path = cifar / "test_batch.bin"
    path.write_bytes(b"\x0b" + path.read_bytes()[1:])
    with pytest.raises(UserError, match="test_batch.bin holds the label 11: legal labels are 0 to 9"):
        load(str(cifar), seed=0, **COLOUR)


def test_a_model_of_other_images_is_told_so(cifar):
    with pytest.raises(UserError, match="holds images of 32x32x3: the model takes 28x28x1"):
        load(str(cifar), seed=0)
    with pytest.raises(UserError, match="holds images of 32x32x3: the model takes 224x224x3"):
        load(str(cifar), seed=0, size=(224, 224), channels=3)


def test_a_folder_that_is_not_there_or_has_other_files(tmp_path):
    with pytest.raises(UserError, match="absent' does not exist: .* CIFAR-10's six .bin files"):
        load(str(tmp_path / "absent"), seed=0, **COLOUR)
    with pytest.raises(UserError, match="has no images of the train split"):  # an empty folder counts as MNIST
        load(str(tmp_path), seed=0, **COLOUR)


def test_gray_images_have_three_equal_colours_for_a_model_that_takes_them():
    gray, colour = load("", seed=0, size=(32, 32)), load("", seed=0, **COLOUR)
    assert colour.train["image"].shape == (*gray.train["image"].shape[:3], 3)
    np.testing.assert_array_equal(colour.test["image"][..., 2:], gray.test["image"])
