# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The pipeline: batches are functions of seed and number, images arrive as they left, threads end."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from workload_cases import linear_workload

from jaxbench.errors import UserError
from jaxbench.input import feed, pipeline
from jaxbench.workloads import Field, TrainWorkload

IMAGES = {"image": Field((16, 24, 3)), "label": Field((), jnp.int32, classes=10)}
TOKENS = {"tokens": Field((8,), jnp.int32, classes=100), "targets": Field((8,), jnp.int32, classes=100)}


@dataclass(frozen=True)
class Data:
    train: dict[str, np.ndarray]
    test: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    name: str = "made up"


def workload(example: dict[str, Field]) -> TrainWorkload:
    return dataclasses.replace(linear_workload(), example=example)


def batches(kind: str, example: dict[str, Field], *, seed: int = 0, count: int = 4, data: Any = None) -> list[Any]:
    opened = feed.open(kind, workload(example), batch=8, put=lambda made: made, seed=seed, data=data)
    with contextlib.closing(opened) as fed:
        return [fed.next() for _ in range(count)]


def same(some: list[Any], others: list[Any]) -> bool:
    return all(np.array_equal(a[k], b[k]) for a, b in zip(some, others, strict=True) for k in a)


@pytest.mark.parametrize("example", [IMAGES, TOKENS], ids=["images", "tokens"])
def test_batches_depend_on_the_seed_and_on_nothing_else(example: dict[str, Field]) -> None:
    before = set(threading.enumerate())
    expected = batches("pipeline:0", example)
    for kind in ("pipeline:0", "pipeline:1", "pipeline:3"):
        assert same(batches(kind, example), expected)
    assert not same(batches("pipeline:1", example, seed=1), expected)
    assert not same(expected[:1], expected[1:2])
    for name, field in example.items():
        assert expected[0][name].shape == (8, *field.shape) and expected[0][name].dtype == field.dtype
    assert set(threading.enumerate()) <= before


def test_the_number_of_threads_changes_nothing() -> None:
    made = []
    for threads in (1, 3, 20):
        with contextlib.closing(pipeline.open(workload(IMAGES), size=8, seed=5, threads=threads)) as opened:
            made.append([opened.batch(2), opened.batch(0)])
    assert same(made[0], made[1]) and same(made[0], made[2])


def test_real_data_are_read_once_per_epoch_each_time_in_another_order() -> None:
    tokens = np.arange(16 * 8, dtype=np.int32).reshape(16, 8)
    data = Data({"tokens": tokens, "targets": tokens + 1})
    epochs = batches("pipeline:2", TOKENS, data=data)
    orders = [np.concatenate([a["tokens"], b["tokens"]]) for a, b in (epochs[:2], epochs[2:])]
    for order in orders:
        np.testing.assert_array_equal(order[np.argsort(order[:, 0])], tokens)
    assert not np.array_equal(*orders)
    assert not same(batches("pipeline:2", TOKENS, seed=1, data=data), epochs)
    assert all(np.array_equal(batch["targets"], batch["tokens"] + 1) for batch in epochs)


def test_images_of_real_data_keep_their_labels() -> None:
    shades = np.linspace(0, 1, 16, dtype=np.float32)  # one shade an image, which shifting leaves in its middle
    data = Data({"image": np.ones((16, 16, 24, 3), np.float32) * shades[:, None, None, None], "label": np.arange(16)})
    (batch, *_) = batches("pipeline:0", IMAGES, data=data)
    pixels = (batch["image"][:, 8, 12, 0] * pipeline.DEVIATION + pipeline.MEAN) * 255
    np.testing.assert_allclose(pixels, np.rint(shades[batch["label"]] * 255), atol=1e-3)


def test_data_of_another_shape_are_refused() -> None:
    data = Data({"tokens": np.zeros((4, 9), np.int32), "targets": np.zeros((4, 8), np.int32)})
    with pytest.raises(UserError, match=r"'tokens' of the data 'made up' is \(9,\)"):
        batches("pipeline:0", TOKENS, data=data)


@pytest.mark.parametrize("kind", ["pipeline:0", "pipeline:2"])
def test_a_damaged_record_is_an_error_and_no_thread_is_left(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(threading.enumerate())
    monkeypatch.setattr(pipeline, "encode_png", lambda pixels: b"\x89PNG and then nothing")
    with pytest.raises(OSError, match="cannot identify image"):
        batches(kind, IMAGES)
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("channels", pipeline.CHANNELS)
def test_png_loses_nothing(channels: int) -> None:
    pixels = pipeline.draw_image((13, 9, channels), np.random.default_rng(0))
    np.testing.assert_array_equal(pipeline.decode_png(pipeline.encode_png(pixels)), pixels)


def test_drawn_images_compress_like_photographs() -> None:
    pixels = pipeline.draw_image((224, 224, 3), np.random.default_rng(0))
    assert 0.3 < len(pipeline.encode_png(pixels)) / pixels.nbytes < 0.9


def test_augmentation_is_a_shift_and_a_mirror() -> None:
    pixels = np.random.default_rng(0).integers(1, 256, (16, 24, 1), np.uint8)
    seen = set()
    for seed in range(200):
        out = pipeline.augment(pixels, np.random.default_rng(seed))
        seen.add(next(move for move, image in every_move(pixels).items() if np.array_equal(image, out)))
    assert {down for down, _, _ in seen} == {-2, -1, 0, 1, 2}
    assert {right for _, right, _ in seen} == {-3, -2, -1, 0, 1, 2, 3}
    assert {mirrored for _, _, mirrored in seen} == {False, True}


def every_move(pixels: np.ndarray) -> dict[tuple[int, int, bool], np.ndarray]:
    """The definition, slowly: the image in a border of zeros, cropped at every place, both ways round."""
    height, width, _ = pixels.shape
    up, left = height // pipeline.BORDER, width // pipeline.BORDER
    padded = np.pad(pixels, [(up, up), (left, left), (0, 0)])
    moves = {}
    for down in range(-up, up + 1):
        for right in range(-left, left + 1):
            crop = padded[up - down :][:height, left - right :][:, :width]
            moves[down, right, False], moves[down, right, True] = crop, crop[:, ::-1]
    return moves


def test_pixels_are_normalised() -> None:
    out = pipeline.normalise(np.array([0, 255], np.uint8))
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, [-2, 2], atol=1e-6)


@pytest.mark.parametrize(
    ("example", "found"),
    [
        (IMAGES, True),
        (TOKENS, False),
        ({"image": Field((16, 16, 3))}, False),
        ({"image": Field((16, 16, 3), jnp.int32, classes=256), "label": Field(())}, False),
        ({"image": Field((16, 16, 5)), "label": Field(())}, False),
        ({"image": Field((16, 16, 3), jnp.bfloat16), "label": Field(())}, True),
    ],
)
def test_which_examples_are_images(example: dict[str, Field], found: bool) -> None:
    assert pipeline.has_images(example) is found


def test_an_image_in_16_bits_arrives_in_16_bits() -> None:
    (batch, *_) = batches("pipeline:0", {**IMAGES, "image": Field((16, 24, 3), jnp.bfloat16)})
    assert batch["image"].dtype == jnp.bfloat16
