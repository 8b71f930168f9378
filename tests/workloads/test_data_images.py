# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The bundled digits, the order of batches, and paths that do not exist."""

from __future__ import annotations

import numpy as np
import pytest

from jaxbench.errors import UserError
from jaxbench.workloads.data import load, order


@pytest.fixture(scope="module")
def digits():
    return load("", seed=0)


def test_the_digits_are_all_there_in_the_model_s_form(digits):
    images = np.concatenate([digits.train["image"], digits.test["image"]])
    labels = np.concatenate([digits.train["label"], digits.test["label"]])
    assert images.shape == (1797, 28, 28, 1) and images.dtype == np.float32
    assert labels.shape == (1797,) and labels.dtype == np.int32
    assert images.min() == 0 and images.max() == 1
    assert digits.name == "digits"
    assert not images[:, :2].any() and not images[:, :, -2:].any()  # the border
    assert (images[:, 2:26:3, 2:26:3] == images[:, 4:26:3, 4:26:3]).all()  # each pixel three times


def test_a_fifth_of_every_class_is_for_testing_and_none_is_in_both(digits):
    train, test = (np.bincount(part["label"], minlength=10) for part in (digits.train, digits.test))
    assert (np.abs(test / (train + test) - 0.2) < 0.005).all()
    together = np.concatenate([digits.train["image"], digits.test["image"]]).reshape(1797, -1)
    assert len(np.unique(together, axis=0)) == 1797  # no image occurs twice in the source


def test_the_split_follows_the_seed_and_mixes_the_classes(digits):
    again, other = load("", seed=0), load("", seed=1)
    assert np.array_equal(again.train["image"], digits.train["image"])
    assert not np.array_equal(other.train["label"], digits.train["label"])
    for part in (digits.train, digits.test):
        assert len(np.unique(part["label"][:50])) == 10


def test_another_size_and_one_too_small():
    assert load("", seed=0, size=(32, 36)).train["image"].shape[1:] == (32, 36, 1)
    assert load("", seed=0, size=(8, 8)).test["image"].shape[1:] == (8, 8, 1)
    with pytest.raises(UserError, match="6x28 pixels: at least 8x8"):
        load("", seed=0, size=(6, 28))
    with pytest.raises(UserError, match="have 10 classes and the model has 7"):
        load("", seed=0, classes=7)


def test_a_path_that_is_not_there_is_never_replaced_by_the_digits(tmp_path):
    with pytest.raises(UserError, match="absent' does not exist: give a folder with the four MNIST IDX files"):
        load(str(tmp_path / "absent"), seed=0)
    (tmp_path / "notes.txt").touch()
    with pytest.raises(UserError, match="notes.txt' is a file of another kind"):
        load(str(tmp_path / "notes.txt"), seed=0)


def test_each_epoch_visits_an_example_at_most_once():
    batches = order(103, 10, seed=5, epoch=2)
    assert batches.shape == (10, 10)
    assert len(np.unique(batches)) == 100 and batches.min() >= 0 and batches.max() < 103


def test_the_order_is_a_function_of_seed_and_epoch():
    assert np.array_equal(order(50, 5, seed=1, epoch=3), order(50, 5, seed=1, epoch=3))
    flat = {order(50, 5, seed=seed, epoch=epoch).tobytes() for seed in range(5) for epoch in range(5)}
    assert len(flat) == 25


def test_the_order_is_the_same_on_every_numpy():
    """Pinned: today's checkpoints must continue with the same batches after an upgrade."""
    assert order(8, 4, seed=0, epoch=0).tolist() == [[0, 3, 7, 5], [1, 2, 6, 4]]
    assert order(3, 4, seed=0, epoch=0).shape == (0, 4)
