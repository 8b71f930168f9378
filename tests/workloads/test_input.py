# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Each kind of feed: its batches, its cost, its errors; and a pipeline that depends only on seed and number."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from workload_cases import KEY, linear_workload

from jaxbench import parallel
from jaxbench.errors import UserError
from jaxbench.workloads import Field, TrainWorkload
from jaxbench.workloads.data import input as feeds
from jaxbench.workloads.data.input import Feed


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


class Put:
    """Counts the calls and transfers nothing."""

    calls = 0

    def __call__(self, batch):
        self.calls += 1
        return batch


def opened(kind, put, size=6):
    return feeds.open(kind, linear_workload(), batch=size, put=put, seed=0)


def test_device_puts_once_and_hands_out_the_same_batch() -> None:
    put = Put()
    with contextlib.closing(opened("device", put)) as fed:
        first = fed.next()
        assert all(fed.next() is first for _ in range(5))
    assert put.calls == 1


def test_host_puts_a_batch_per_step_and_no_two_in_a_row_are_the_same() -> None:
    put = Put()
    with contextlib.closing(opened("host", put)) as fed:
        batches = [fed.next() for _ in range(feeds.RING + 1)]
    assert put.calls == len(batches)
    assert all(isinstance(batch["x"], np.ndarray) and batch["x"].shape == (6, 3) for batch in batches)
    assert len({batch["x"].tobytes() for batch in batches}) == feeds.RING and batches[-1] is batches[0]


@pytest.mark.parametrize("kind", ["device", "host", "pipeline:1"])
@pytest.mark.parametrize("strategy", parallel.of_any_model())
def test_batches_lie_where_the_program_wants_them(kind: str, strategy: str) -> None:
    workload = linear_workload()
    program = parallel.build(strategy, workload, jax.devices()[:2])
    wanted = program.put(workload.synthetic(KEY, 4))
    with jax.set_mesh(program.mesh):
        with contextlib.closing(feeds.open(kind, workload, batch=4, put=program.put, seed=0)) as fed:
            made = fed.next()
    for name, array in wanted.items():
        assert made[name].sharding == array.sharding and made[name].shape == array.shape
        assert made[name].dtype == array.dtype


@pytest.mark.parametrize("kind", ["disk", "pipeline", "pipeline:", "pipeline:-1", "pipeline:x", "device:2"])
def test_another_kind_is_refused(kind: str) -> None:
    with pytest.raises(UserError, match="use device, host or pipeline:2"):
        opened(kind, Put())


@pytest.mark.parametrize("ahead", [0, 1, 3])
def test_exactly_the_given_number_of_batches_is_ahead_made_by_another_thread(ahead: int) -> None:
    made, makers = [], []
    fed = Feed(lambda number: made.append(number) or makers.append(threading.get_ident()) or {}, ahead=ahead)
    for taken in range(4):
        if ahead:
            fed._thread.submit(int).result()  # its one thread has finished all earlier requests
        assert made == list(range(taken + ahead))
        fed.next()
    fed.close()
    assert {maker == threading.get_ident() for maker in makers} == {ahead == 0}


def test_waiting_is_timed_and_closing_gives_back_once_and_ends_it() -> None:
    ticks, released = itertools.count(), []
    fed = Feed(lambda number: {}, clock=lambda: float(next(ticks)), close=lambda: released.append(1))
    fed.next(), fed.next()
    assert fed.waited_s == 2.0
    fed.close(), fed.close()
    assert released == [1]
    with pytest.raises(RuntimeError, match="closed"):
        fed.next()


@pytest.mark.parametrize("ahead", [0, 2])
def test_an_error_reaches_the_caller(ahead: int) -> None:
    def broken(number):
        if number == 2:
            raise OSError("record 2 is damaged")
        return {"x": number}

    fed = Feed(broken, ahead=ahead)
    assert [fed.next()["x"], fed.next()["x"]] == [0, 1]
    with pytest.raises(OSError, match="record 2 is damaged"):
        fed.next()
    fed.close()


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
    opened = feeds.open(kind, workload(example), batch=8, put=lambda made: made, seed=seed, data=data)
    with contextlib.closing(opened) as fed:
        return [fed.next() for _ in range(count)]


def same(some: list[Any], others: list[Any]) -> bool:
    return all(np.array_equal(a[k], b[k]) for a, b in zip(some, others, strict=True) for k in a)


@pytest.mark.parametrize("example", [IMAGES, TOKENS], ids=["images", "tokens"])
def test_batches_depend_on_the_seed_and_on_nothing_else(example: dict[str, Field]) -> None:
    expected = batches("pipeline:0", example)
    for kind in ("pipeline:0", "pipeline:1", "pipeline:3"):
        assert same(batches(kind, example), expected)
    assert not same(batches("pipeline:1", example, seed=1), expected)
    assert not same(expected[:1], expected[1:2])
    for name, field in example.items():
        assert expected[0][name].shape == (8, *field.shape) and expected[0][name].dtype == field.dtype


def test_the_number_of_threads_changes_nothing() -> None:
    made = []
    for threads in (1, 3, 20):
        with contextlib.closing(feeds.open_pipeline(workload(IMAGES), size=8, seed=5, threads=threads)) as opened:
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
    shades = np.linspace(0, 1, 16, dtype=np.float32)  # one shade per image; shifting does not change the middle
    data = Data({"image": np.ones((16, 16, 24, 3), np.float32) * shades[:, None, None, None], "label": np.arange(16)})
    (batch, *_) = batches("pipeline:0", IMAGES, data=data)
    pixels = (batch["image"][:, 8, 12, 0] * feeds.DEVIATION + feeds.MEAN) * 255
    np.testing.assert_allclose(pixels, np.rint(shades[batch["label"]] * 255), atol=1e-3)


def test_data_of_another_shape_are_refused_and_a_shape_may_be_a_list() -> None:
    data = Data({"tokens": np.zeros((4, 9), np.int32), "targets": np.zeros((4, 8), np.int32)})
    with pytest.raises(UserError, match=r"'tokens' of the data 'made up' is \(9,\)"):
        batches("pipeline:0", TOKENS, data=data)
    data = Data({"x": np.zeros((4, 9), np.float32)})
    (batch, *_) = batches("pipeline:0", {"x": Field([9])}, data=data)  # type: ignore[arg-type]
    assert batch["x"].shape[1:] == (9,)


@pytest.mark.parametrize("kind", ["pipeline:0", "pipeline:2"])
def test_a_damaged_record_is_an_error(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "encode_png", lambda pixels: b"\x89PNG and then nothing")
    with pytest.raises(OSError, match="cannot identify image"):
        batches(kind, IMAGES)


@pytest.mark.parametrize("channels", feeds.CHANNELS)
def test_png_loses_nothing_and_drawn_images_compress_like_photographs(channels: int) -> None:
    for shape in ((13, 9, channels), (224, 224, channels)):
        pixels = feeds.draw_image(shape, np.random.default_rng(0))
        packed = feeds.encode_png(pixels)
        np.testing.assert_array_equal(feeds.decode_png(packed), pixels)
    assert 0.3 < len(packed) / pixels.nbytes < 0.9


def test_augmentation_is_a_shift_and_a_mirror() -> None:
    pixels = np.random.default_rng(0).integers(1, 256, (16, 24, 1), np.uint8)
    seen = set()
    for seed in range(200):
        out = feeds.augment(pixels, np.random.default_rng(seed))
        seen.add(next(move for move, image in every_move(pixels).items() if np.array_equal(image, out)))
    down, right, mirrored = map(set, zip(*seen, strict=True))
    assert (down, right, mirrored) == ({*range(-2, 3)}, {*range(-3, 4)}, {False, True})


def every_move(pixels: np.ndarray) -> dict[tuple[int, int, bool], np.ndarray]:
    """The definition, slowly: the image in a border of zeros, cropped at every position, also mirrored."""
    height, width, _ = pixels.shape
    up, left = height // feeds.BORDER, width // feeds.BORDER
    padded = np.pad(pixels, [(up, up), (left, left), (0, 0)])
    moves = {}
    for down, right in itertools.product(range(-up, up + 1), range(-left, left + 1)):
        crop = padded[up - down :][:height, left - right :][:, :width]
        moves[down, right, False], moves[down, right, True] = crop, crop[:, ::-1]
    return moves


def test_pixels_are_normalised_and_arrive_in_the_format_of_the_field() -> None:
    out = feeds.normalise(np.array([0, 255], np.uint8))
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, [-2, 2], atol=1e-6)
    (batch, *_) = batches("pipeline:0", {**IMAGES, "image": Field((16, 24, 3), jnp.bfloat16)})
    assert batch["image"].dtype == jnp.bfloat16


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
    assert feeds.has_images(example) is found
