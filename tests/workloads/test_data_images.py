# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Images: digits, MNIST's, CIFAR-10's and .npz files, read to the byte; errors name the file; the order of batches."""

from __future__ import annotations

import gzip
import struct

import numpy as np
import pytest

from jaxbench.errors import UserError
from jaxbench.workloads.data import images, load, order


@pytest.fixture(scope="module")
def digits():
    return load("", seed=0)


def test_the_digits_are_all_there_in_the_model_s_form(digits):
    pixels = np.concatenate([digits.train["image"], digits.test["image"]])
    labels = np.concatenate([digits.train["label"], digits.test["label"]])
    assert pixels.shape == (1797, 28, 28, 1) and pixels.dtype == np.float32
    assert labels.shape == (1797,) and labels.dtype == np.int32
    assert pixels.min() == 0 and pixels.max() == 1
    assert digits.name == "digits"
    assert not pixels[:, :2].any() and not pixels[:, :, -2:].any()  # the border
    assert (pixels[:, 2:26:3, 2:26:3] == pixels[:, 4:26:3, 4:26:3]).all()  # each pixel three times


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


def test_another_size_and_colours_and_a_size_that_is_too_small():
    gray, colour = load("", seed=0, size=(32, 36)), load("", seed=0, size=(32, 36), channels=3)
    assert gray.train["image"].shape[1:] == (32, 36, 1) and colour.train["image"].shape[1:] == (32, 36, 3)
    np.testing.assert_array_equal(*np.broadcast_arrays(colour.test["image"], gray.test["image"]))
    assert load("", seed=0, size=(8, 8)).test["image"].shape[1:] == (8, 8, 1)
    with pytest.raises(UserError, match="6x28 pixels: at least 8x8"):
        load("", seed=0, size=(6, 28))
    with pytest.raises(UserError, match="digits holds the label .: legal labels are 0 to 6"):
        load("", seed=0, classes=7)


def test_a_path_that_is_not_there_is_never_replaced_by_the_digits(tmp_path):
    (tmp_path / "notes.txt").touch()
    for path, colours, message in [
        ("absent", {}, "absent' does not exist: give a folder with the four MNIST IDX files"),
        ("absent", COLOUR, "absent' does not exist: .* CIFAR-10's six .bin files"),
        ("notes.txt", {}, "notes.txt' is a file of another kind"),
        ("", COLOUR, "has no images of the train split"),  # a folder without images counts as MNIST
    ]:
        with pytest.raises(UserError, match=message):
            load(str(tmp_path / path), seed=0, **colours)


def test_an_epoch_visits_each_example_at_most_once_in_an_order_of_seed_and_epoch_alone():
    batches = order(103, 10, seed=5, epoch=2)
    assert batches.shape == (10, 10)
    assert len(np.unique(batches)) == 100 and batches.min() >= 0 and batches.max() < 103
    assert np.array_equal(order(50, 5, seed=1, epoch=3), order(50, 5, seed=1, epoch=3))
    flat = {order(50, 5, seed=seed, epoch=epoch).tobytes() for seed in range(5) for epoch in range(5)}
    assert len(flat) == 25
    # Pinned: checkpoints must continue with the same batches after an upgrade.
    assert order(8, 4, seed=0, epoch=0).tolist() == [[0, 3, 7, 5], [1, 2, 6, 4]]
    assert order(3, 4, seed=0, epoch=0).shape == (0, 4)


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


IMAGES, LABELS = NAMES["train"]


def test_mnist_is_read_to_the_byte(mnist):
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
        path.write_bytes(gzip.compress(path.read_bytes()))
    known_by_content = load(str(mnist), seed=0)
    for path in list(mnist.iterdir()):
        path.rename(path.with_name(path.name.replace("-idx", ".idx") + ".gz"))
    for packed in (known_by_content, load(str(mnist), seed=0)):
        np.testing.assert_array_equal(packed.train["image"], plain.train["image"])


BAD_IDX = {
    "png": (lambda data: b"\x89PNG" + data, "begins with '89 50 4e 47' and not with '00 00 08 03'"),
    "empty": (lambda data: b"", "is not an MNIST file"),
    "labels": (lambda data: idx(draw(7, 7)[1]), "begins with '00 00 08 01'"),
    "short": (lambda data: data[:-1], "declares 7 x 28 x 28 = 5488 bytes of values and holds 5487"),
    "other size": (
        lambda data: idx(np.zeros((7, 14, 56), np.uint8)),
        "holds images of 14x56 pixels: the model takes 28x",
    ),
    "other count": (lambda data: idx(draw(6, 7)[0]), "has 6 images and 7 labels"),
}


@pytest.mark.parametrize("compress", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize("kind", BAD_IDX)
def test_a_bad_file_is_named_with_what_was_found(mnist, kind, compress):
    change, message = BAD_IDX[kind]
    data = change((mnist / IMAGES).read_bytes())
    (mnist / IMAGES).write_bytes(gzip.compress(data) if compress else data)
    with pytest.raises(UserError, match=f"{IMAGES}.*{message}"):
        load(str(mnist), seed=0)


def test_what_else_is_wrong_with_a_folder_of_mnist(mnist):
    (mnist / LABELS).write_bytes(idx(np.array([0, 1, 2, 3, 4, 5, 11], np.uint8)))
    with pytest.raises(UserError, match=f"{LABELS} holds the label 11: legal labels are 0 to 9"):
        load(str(mnist), seed=0)
    (mnist / IMAGES).write_bytes(gzip.compress((mnist / IMAGES).read_bytes())[:40])
    with pytest.raises(UserError, match=f"{IMAGES} cannot be read"):
        load(str(mnist), seed=0)
    (mnist / LABELS).unlink()
    with pytest.raises(UserError, match="has no labels of the train split: it must hold train-labels-idx1-ubyte or "):
        load(str(mnist), seed=0)


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


def test_an_npz_file_is_read_to_the_byte(tmp_path):
    data = load(write(tmp_path), seed=0)
    np.testing.assert_array_equal(data.train["image"][..., 0], arrays()["x_train"].astype(np.float32) / 255)
    np.testing.assert_array_equal(data.test["label"], arrays()["y_test"])
    assert data.train["label"].dtype == np.int32 and data.name == "data"


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ">f4"])
def test_floats_from_0_to_1_and_a_channel_axis_are_unchanged(tmp_path, dtype):
    x = np.linspace(0, 1, 9 * 784).reshape(9, 28, 28, 1).astype(dtype)
    for stored in (x, np.asfortranarray(x)):
        image = load(write(tmp_path, x_train=stored), seed=0).train["image"]
        assert image.dtype == np.float32 and image.shape == (9, 28, 28, 1)
        np.testing.assert_array_equal(image, x.astype(np.float32))


BAD_NPZ = {
    "missing": ({"y_test": None}, "has no array 'y_test': it must hold x_train, y_train, x_test, y_test"),
    "objects": ({"y_train": np.array([None] * 9)}, "is damaged .Object arrays"),
    "integers": ({"x_train": np.zeros((9, 28, 28), np.int32)}, "x_train is int32: legal are uint8"),
    "flat": ({"x_train": np.zeros((9, 784), np.uint8)}, r"x_train has shape \(9, 784\): the model takes \(N, 28, 28\)"),
    "colour": ({"x_test": np.zeros((4, 28, 28, 3), np.uint8)}, r"x_test has shape \(4, 28, 28, 3\)"),
    "scaled to 255": ({"x_train": np.full((9, 28, 28), 255.0)}, "x_train has values from 255 to 255: floats must be"),
    "not a number": ({"x_train": np.full((9, 28, 28), np.nan)}, "x_train has values from nan"),
    "one-hot": ({"y_train": np.zeros((9, 10), int)}, r"y_train is int64 of shape \(9, 10\): legal are integers"),
    "float labels": ({"y_test": np.zeros(4)}, "y_test is float64"),
    "count": ({"y_train": np.zeros(8, int)}, "x_train with y_train has 9 images and 8 labels"),
    "empty": (
        {"x_test": np.zeros((0, 28, 28), np.uint8), "y_test": np.zeros(0, int)},
        "x_test with y_test has 0 images",
    ),
    "label": ({"y_test": np.array([1, 2, 3, -1])}, "x_test with y_test holds the label -1: legal labels are 0 to 9"),
}


@pytest.mark.parametrize("kind", BAD_NPZ)
def test_a_bad_array_is_named_with_what_was_found(tmp_path, kind):
    changes, message = BAD_NPZ[kind]
    with pytest.raises(UserError, match=f"data.npz.*{message}"):
        load(write(tmp_path, **changes), seed=0)


def test_a_file_that_is_no_archive_or_half_of_one(tmp_path):
    path = tmp_path / "data.npz"
    for data in (b"", b"hello", (tmp_path / write(tmp_path)).read_bytes()[:3000]):
        path.write_bytes(data)
        with pytest.raises(UserError, match="data.npz is damaged .*: save it again as an .npz file"):
            load(str(path), seed=0)


ROWS = 20
FILES = (*images.CIFAR_TRAIN, images.CIFAR_TEST)
COLOUR = {"size": (32, 32), "channels": 3}


@pytest.fixture
def cifar(tmp_path, monkeypatch):
    """A folder with files of 20 rows each."""
    monkeypatch.setattr(images, "CIFAR_ROWS", ROWS)
    random = np.random.default_rng(0)
    for name in FILES:
        pixels = random.integers(0, 256, (ROWS, 3072), np.uint8) // [[3] * 1024 + [2] * 1024 + [1] * 1024]
        label = random.integers(0, 10, (ROWS, 1))
        (tmp_path / name).write_bytes(np.concatenate([label, pixels], axis=1).astype(np.uint8).tobytes())
    return tmp_path


def test_cifar10_is_read_and_normalised(cifar):
    data = load(str(cifar), seed=0, **COLOUR)
    assert data.train["image"].shape == (5 * ROWS, 32, 32, 3) and data.train["image"].dtype == np.float32
    assert data.test["image"].shape == (ROWS, 32, 32, 3) and data.name == cifar.name
    np.testing.assert_allclose(data.train["image"].mean((0, 1, 2), np.float64), 0, atol=1e-5)
    np.testing.assert_allclose(data.train["image"].std((0, 1, 2), np.float64), 1, atol=1e-5)
    files = [np.fromfile(cifar / name, np.uint8).reshape(ROWS, 3073) for name in FILES]
    np.testing.assert_array_equal(data.train["label"], np.concatenate(files[:5])[:, 0])
    assert data.train["label"].dtype == np.int32
    for colour in range(3):
        seen = np.concatenate(files[:5])[:, 1 + 1024 * colour : 1025 + 1024 * colour] / 255
        for row, column in [(0, 0), (0, 31), (7, 0), (7, 31)]:
            value = files[5][3, 1 + 1024 * colour + 32 * row + column] / 255
            expected = (value - seen.mean()) / seen.std()
            np.testing.assert_allclose(data.test["image"][3, row, column, colour], expected, atol=1e-5)


def test_one_colour_everywhere_is_not_divided_by_zero(cifar):
    for name in FILES:
        (cifar / name).write_bytes(bytes(ROWS * 3073))
    assert np.isfinite(load(str(cifar), seed=0, **COLOUR).train["image"]).all()


@pytest.mark.parametrize("name", ["data_batch_3.bin", "test_batch.bin"])
def test_a_missing_file_of_cifar10_is_named(cifar, name):
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


def test_a_label_of_cifar10_that_is_no_class_and_a_model_of_other_images(cifar):
    with pytest.raises(UserError, match="holds images of 32x32x3: the model takes 28x28x1"):
        load(str(cifar), seed=0)
    with pytest.raises(UserError, match="holds images of 32x32x3: the model takes 224x224x3"):
        load(str(cifar), seed=0, size=(224, 224), channels=3)
    path = cifar / "test_batch.bin"
    path.write_bytes(b"\x0b" + path.read_bytes()[1:])
    with pytest.raises(UserError, match="test_batch.bin holds the label 11: legal labels are 0 to 9"):
        load(str(cifar), seed=0, **COLOUR)


def said(part: dict[str, np.ndarray]) -> list[str]:
    return [bytes(row.astype(np.uint8)).rstrip(b"\0").decode() for row in part["caption"]]


def test_every_caption_names_its_digit_and_no_other() -> None:
    data = images.load_captioned("", seed=0, size=8, length=images.LONGEST)
    for part in (data.train, data.test):
        assert part["caption"].dtype == np.int32 and part["image"].shape[1:] == (8, 8, 1)
        for text, digit in zip(said(part), part["label"], strict=True):
            words = set(text.lower().replace(",", "").split())
            named = {i for i, name in enumerate(images.NAMES) if {name, str(i)} & words}
            assert named == {digit}, text


def test_captions_follow_the_seed_and_vary() -> None:
    first, again, other = (said(images.load_captioned("", seed=seed, size=8, length=24).train) for seed in (0, 0, 1))
    assert first == again != other
    assert len(set(first)) > 200
    with pytest.raises(UserError, match=f"length=5 cannot hold a caption: it must be at least {images.LONGEST}"):
        images.load_captioned("", seed=0, size=8, length=5)
