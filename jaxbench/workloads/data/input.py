# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The source of a step's batch: the devices, the host, or a pipeline that runs at the same time as the steps.

In the pipeline, Grain reads records in a shuffled order; CPU threads decode, augment and stack them. A batch is a
function of the seed and its number only. Prefetching and the number of threads change only the time. Images are PNG
files in memory. Any other example is stored as raw bytes, which are not augmented. So is
the order in which a training visits examples: a pure function of the seed and the epoch.
"""

from __future__ import annotations

import functools
import io
import math
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image

from jaxbench.core.workload import Batch, Dataset, Field, HostBatch, TrainWorkload
from jaxbench.errors import UserError
from jaxbench.levers import INPUT
from jaxbench.machine.cores import available_cores

RING = 3  # batches that `host` cycles through: with only one, a stale copy would look like a new one
CHANNELS = (1, 3, 4)  # numbers of channels of a PNG: grey, RGB, RGBA
BORDER = 8  # an image is shifted by at most an eighth of its height and width: 4 of the 32 pixels of CIFAR-10
MEAN, DEVIATION = 0.5, 0.25  # for pixels in [0, 1]; round numbers: only the work of normalizing is measured
BLOCK, NOISE = 8, 32  # synthetic images: flat squares with edges of BLOCK pixels, plus noise of NOISE of 256 levels
MAX_RECORDS = 4096
MAX_BYTES = 2**25  # size of the decoded records: exceeds caches, but takes little memory


def words(count: int, *entropy: int) -> np.ndarray:
    """Random words, shape (count,), uint64; the same for the same non-negative `entropy`, also in later numpys."""
    return np.random.Philox(np.random.SeedSequence(entropy)).random_raw(count)


def permutation(examples: int, *entropy: int) -> np.ndarray:
    """A permutation of ``range(examples)``, shape (examples,), int64; the same for the same non-negative `entropy`."""
    # Raw generator words are sorted, because numpy guarantees these across versions, but not its own `permutation`.
    return np.argsort(words(examples, *entropy), kind="stable")


def order(examples: int, batch: int, *, seed: int, epoch: int) -> np.ndarray:
    """The batches of one epoch: indices of shape (examples // batch, batch), int64.

    A resumed run sees the same batches as an uninterrupted run.
    """
    steps = examples // batch  # a step has one shape, so the remainder is dropped: other examples in each epoch
    return permutation(examples, seed, epoch)[: steps * batch].reshape(steps, batch)


class Feed:
    """Batches on the devices, in the order of their numbers. For use by one thread.

    waited_s: seconds spent inside `next`. Not all of them are lost: the devices may still be busy with earlier steps.
      The cost of the input is the time of a step minus the time of a step with input=device.
    """

    def __init__(
        self,
        fetch: Callable[[int], Batch],
        *,
        ahead: int = 0,
        close: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.perf_counter,
    ):
        """fetch: number -> batch on the devices. ahead: the number of batches that a background thread prefetches; 0:
        `next` fetches. close: releases the resources of `fetch`. clock: seconds, monotonic."""
        self.waited_s = 0.0
        self._fetch, self._ahead, self._release, self._clock = fetch, ahead, close, clock
        self._next, self._closed = 0, False
        # One thread, so that batches are put on the devices in their order.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="feed") if ahead else None
        self._prefetched: deque[Future[Batch]] = deque()
        if self._thread is not None:
            self._prefetched.extend(self._thread.submit(fetch, number) for number in range(ahead))

    def next(self) -> Batch:
        """The next batch. Raises the exception of fetching it, even in the background; RuntimeError once closed."""
        if self._closed:
            raise RuntimeError("this feed is closed")
        start = self._clock()
        number, self._next = self._next, self._next + 1
        try:
            if self._thread is None:
                return self._fetch(number)
            # Submitted before the wait, so that the thread goes on while this step still waits for its batch.
            batch = self._prefetched.popleft()
            self._prefetched.append(self._thread.submit(self._fetch, number + self._ahead))
            return batch.result()
        finally:
            self.waited_s += self._clock() - start

    def close(self) -> None:
        """Ends the thread after its current batch; closing twice is harmless."""
        if not self._closed:
            self._closed = True
            if self._thread is not None:
                self._thread.shutdown(cancel_futures=True)
            self._prefetched.clear()
            self._release()


def open(
    kind: str,
    workload: TrainWorkload,
    *,
    batch: int,
    put: Callable[[HostBatch], Batch],
    seed: int,
    data: Dataset | None = None,
) -> Feed:
    """Opens the feed that the lever names.

    Args:
      kind: "device": one synthetic batch stays on the devices and is reused. "host": RING synthetic batches stay on the
        host, and each step copies one to the devices. "pipeline:<k>": CPU threads read, decode, augment (images) and
        stack records and copy them to the devices, k batches ahead of the step that uses them.
      batch: examples in a batch, all devices together.
      put: arrays on the host -> a batch on the devices (`Program.put`). A pipeline calls it from its own thread.
      seed: for synthetic data, and for the pipeline's order and augmentation.
      data: for a pipeline; None: synthetic examples. Other kinds ignore it.

    Raises:
      UserError: the kind is unknown, or `data` does not fit the workload's examples.
    """
    source = INPUT.read(kind)
    if source.kind == "device":
        resident = put(_drawn_batch(workload, batch, seed, 0))  # placed once, before any step
        return Feed(lambda number: resident)
    if source.kind == "host":
        ring = [_drawn_batch(workload, batch, seed, turn) for turn in range(RING)]  # drawn before any step
        return Feed(lambda number: put(ring[number % RING]))
    batches = open_pipeline(workload, size=batch, seed=seed, data=data)
    return Feed(lambda number: put(batches.batch(number)), ahead=source.ahead, close=batches.close)


def _drawn_batch(workload: TrainWorkload, batch: int, seed: int, turn: int) -> dict[str, np.ndarray]:
    """A synthetic batch in host memory."""
    return jax.device_get(workload.synthetic(jax.random.fold_in(jax.random.PRNGKey(seed), turn), batch))


def has_images(example: Mapping[str, Field]) -> bool:
    """Whether examples are labelled images: a float "image" of (height, width, channels) and a "label"."""
    image = example.get("image")
    if image is None or "label" not in example:
        return False
    return len(image.shape) == 3 and image.shape[2] in CHANNELS and bool(jnp.issubdtype(image.dtype, jnp.floating))


def draw_image(shape: tuple[int, int, int], generator: np.random.Generator) -> np.ndarray:
    """One image of (height, width, channels), uint8, that compresses about as well as a photograph, unlike noise."""
    height, width, channels = shape
    squares = generator.integers(0, 256 - NOISE, (-(-height // BLOCK), -(-width // BLOCK), channels), np.uint8)
    flat = squares.repeat(BLOCK, axis=0).repeat(BLOCK, axis=1)[:height, :width]
    return flat + generator.integers(0, NOISE, shape, np.uint8)


def encode_png(pixels: np.ndarray) -> bytes:
    """(height, width, channels) uint8 -> PNG."""
    file = io.BytesIO()
    Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels).save(file, "PNG", compress_level=1)
    return file.getvalue()


def decode_png(png: bytes) -> np.ndarray:
    """PNG -> (height, width, channels) uint8. Raises OSError when it is damaged."""
    with Image.open(io.BytesIO(png)) as image:
        pixels = np.asarray(image)
    return pixels[..., None] if pixels.ndim == 2 else pixels


def augment(pixels: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Shifts the image at random, with a black border, and mirrors it left to right with probability 1/2.

    Digits are mirrored too: only the work is measured, not the accuracy.
    """
    height, width, _ = pixels.shape
    down, right = (int(generator.integers(-(edge // BORDER), edge // BORDER + 1)) for edge in (height, width))
    out = np.zeros_like(pixels)
    source = pixels[max(0, -down) : height - max(0, down), max(0, -right) : width - max(0, right)]
    out[max(0, down) : height + min(0, down), max(0, right) : width + min(0, right)] = source
    return out[:, ::-1] if generator.random() < 0.5 else out


def normalise(pixels: np.ndarray) -> np.ndarray:
    """uint8 -> float32, (p / 255 - MEAN) / DEVIATION."""
    out = pixels.astype(np.float32)
    out *= np.float32(1 / (255 * DEVIATION))
    out -= np.float32(MEAN / DEVIATION)
    return out


Example = dict[str, np.ndarray]


class Raw:
    """An example as the bytes of its fields, in the order of their names."""

    def __init__(self, example: Mapping[str, Field]):
        self._fields = dict(sorted(example.items()))  # one order for encoding and decoding
        self.record_bytes = sum(math.prod(x.shape) * np.dtype(x.dtype).itemsize for x in self._fields.values())

    def encode(self, example: Mapping[str, np.ndarray]) -> bytes:
        return b"".join(np.asarray(example[name], field.dtype).tobytes() for name, field in self._fields.items())

    def decode(self, record: bytes, generator: np.random.Generator) -> Example:
        out, start = {}, 0
        for name, field in self._fields.items():
            out[name] = np.frombuffer(record, field.dtype, math.prod(field.shape), start).reshape(field.shape)
            start += out[name].nbytes
        return out

    def draw(self, generator: np.random.Generator) -> Example:
        """A random example, as `TrainWorkload.synthetic` draws a batch of them."""
        return {name: _drawn_value(field, generator) for name, field in self._fields.items()}


class Png:
    """A labelled image: the raw bytes of all other fields, then the image as PNG."""

    def __init__(self, example: Mapping[str, Field]):
        self._image = example["image"]
        self._rest = Raw({name: field for name, field in example.items() if name != "image"})

    def encode(self, example: Mapping[str, np.ndarray]) -> bytes:
        image = np.asarray(example["image"])
        # A PNG has bytes. Values outside [0, 1], of normalized images, are cut: only the work is measured.
        pixels = image if image.dtype == np.uint8 else np.rint(np.clip(image, 0, 1) * 255).astype(np.uint8)
        return self._rest.encode(example) + encode_png(pixels)

    def decode(self, record: bytes, generator: np.random.Generator) -> Example:
        rest = self._rest.record_bytes
        pixels = augment(decode_png(record[rest:]), generator)
        image = normalise(pixels).astype(self._image.dtype, copy=False)
        return {**self._rest.decode(record[:rest], generator), "image": image}

    def draw(self, generator: np.random.Generator) -> Example:
        height, width, channels = self._image.shape
        return {**self._rest.draw(generator), "image": draw_image((height, width, channels), generator)}


# Instead of Grain's own shuffle, which takes longer per record than decoding a small image.
class Epochs:
    """An endless source: all records in a random order, then all in another random order, and so on."""

    def __init__(self, records: Sequence[bytes], seed: int):
        self._records = records
        # Prefetching may be in two epochs at once, so two orders are kept.
        self._order = functools.lru_cache(maxsize=2)(lambda epoch: permutation(len(records), seed, epoch))

    def __len__(self) -> int:
        return sys.maxsize  # Grain wants a length; this one never ends within a run

    def __getitem__(self, index: int) -> bytes:
        epoch, position = divmod(index, len(self._records))
        return self._records[self._order(epoch)[position]]


class Pipeline:
    """Makes batches, each with all threads."""

    def __init__(self, examples: Any, size: int, threads: int):
        """examples: Grain's source of examples, by number. size: examples in a batch."""
        self._examples, self._size = examples, size
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="pipeline")
        # All threads share each batch. With a batch for each thread, the first batch would be as slow as one thread.
        self._parts = np.array_split(np.arange(size), threads)

    def batch(self, number: int) -> Example:
        """The batch with this number. Exceptions of decoding pass through."""
        # `map` keeps the order, so the batch does not depend on which thread is faster.
        parts = self._pool.map(functools.partial(self._decode_part, number * self._size), self._parts)
        examples = [example for part in parts for example in part]
        return {name: np.stack([example[name] for example in examples]) for name in examples[0]}

    def _decode_part(self, start: int, part: np.ndarray) -> list[Example]:
        return [self._examples[start + int(index)] for index in part]

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


def open_pipeline(
    workload: TrainWorkload, *, size: int, seed: int, data: Dataset | None = None, threads: int | None = None
) -> Pipeline:
    """Makes the records once and opens the pipeline over them.

    Args:
      size: examples in a batch.
      seed: for the order, the augmentation and, without `data`, the records.
      data: real data; its training split is read, up to MAX_RECORDS and MAX_BYTES.
      threads: None: one for each core of this process.

    Raises:
      UserError: `data` does not fit the workload's examples.
    """
    codec = Png(workload.example) if has_images(workload.example) else Raw(workload.example)
    limit = max(1, min(MAX_RECORDS, MAX_BYTES // Raw(workload.example).record_bytes))
    if data is None:
        generator = np.random.default_rng(seed)
        examples = [codec.draw(generator) for _ in range(min(limit, MAX_RECORDS // 4))]
    else:
        examples = _real_examples(workload, data, limit)
    import grain  # late: it takes half a second to import and brings absl flags of its own

    source = grain.MapDataset.source(Epochs([codec.encode(example) for example in examples], seed))
    return Pipeline(source.seed(seed).random_map(codec.decode), size, threads or max(1, available_cores()))


def _real_examples(workload: TrainWorkload, data: Dataset, limit: int) -> list[Example]:
    train = data.train
    for name, field in workload.example.items():
        if name not in train or train[name].shape[1:] != tuple(field.shape):  # a person may write a list
            shape = str(train[name].shape[1:]) if name in train else "missing"
            raise UserError(f"'{name}' of the data '{data.name}' is {shape}: {workload.name} takes {field.shape}.")
    count = min(limit, len(next(iter(train.values()))))
    return [{name: train[name][index] for name in workload.example} for index in range(count)]


def _drawn_value(field: Field, generator: np.random.Generator) -> np.ndarray:
    if field.draw is not None:
        return np.asarray(field.draw(jax.random.PRNGKey(generator.integers(2**31)), 1))[0]
    if field.classes is not None:
        return generator.integers(0, field.classes, field.shape).astype(field.dtype)
    return generator.standard_normal(field.shape).astype(field.dtype)
