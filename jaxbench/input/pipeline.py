# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The input pipeline: Grain reads records in a shuffled order; CPU threads decode, augment and stack them.

A batch is a function of the seed and its number only. Prefetching and the number of threads change only the time.
Images are PNG files in memory. Any other example is stored as raw bytes, which are not augmented.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grain
import jax
import numpy as np

from jaxbench.errors import UserError
from jaxbench.input import images
from jaxbench.machine.cores import available_cores
from jaxbench.workloads.base import Dataset, Field, TrainWorkload
from jaxbench.workloads.data.order import permutation

Example = dict[str, np.ndarray]

MAX_RECORDS = 4096
MAX_BYTES = 2**25  # size of the decoded records: exceeds caches, but takes little memory


class Raw:
    """An example as the bytes of its fields, in the order of their names."""

    def __init__(self, example: Mapping[str, Field]):
        self._fields = dict(sorted(example.items()))
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
        return {name: _draw(field, generator) for name, field in self._fields.items()}


class Png:
    """A labelled image: the raw bytes of all other fields, then the image as PNG."""

    def __init__(self, example: Mapping[str, Field]):
        self._image = example["image"]
        self._rest = Raw({name: field for name, field in example.items() if name != "image"})

    def encode(self, example: Mapping[str, np.ndarray]) -> bytes:
        image = np.asarray(example["image"])
        pixels = image if image.dtype == np.uint8 else images.to_pixels(image)
        return self._rest.encode(example) + images.encode(pixels)

    def decode(self, record: bytes, generator: np.random.Generator) -> Example:
        rest = self._rest.record_bytes
        pixels = images.augment(images.decode(record[rest:]), generator)
        image = images.normalise(pixels).astype(self._image.dtype, copy=False)
        return {**self._rest.decode(record[:rest], generator), "image": image}

    def draw(self, generator: np.random.Generator) -> Example:
        height, width, channels = self._image.shape
        return {**self._rest.draw(generator), "image": images.draw((height, width, channels), generator)}


class Epochs:
    """An endless source: all records in a random order, then all in another random order, and so on.

    It replaces Grain's own shuffle, which takes longer per record than decoding a small image.
    """

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
        self._parts = np.array_split(np.arange(size), threads)

    def batch(self, number: int) -> Example:
        """The batch with this number. Exceptions of decoding pass through."""
        parts = list(self._pool.map(functools.partial(self._decode, number * self._size), self._parts))
        examples = [example for part in parts for example in part]
        return {name: np.stack([example[name] for example in examples]) for name in examples[0]}

    def _decode(self, start: int, part: np.ndarray) -> list[Example]:
        return [self._examples[start + int(index)] for index in part]

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


def open(
    workload: TrainWorkload,
    *,
    size: int,
    seed: int,
    data: Dataset | None = None,
    threads: int | None = None,
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
    codec = Png(workload.example) if images.has_images(workload.example) else Raw(workload.example)
    limit = max(1, min(MAX_RECORDS, MAX_BYTES // Raw(workload.example).record_bytes))
    examples = _drawn(codec, limit, seed) if data is None else _real(workload, data, limit)
    source = grain.MapDataset.source(Epochs([codec.encode(example) for example in examples], seed))
    return Pipeline(source.seed(seed).random_map(codec.decode), size, threads or max(1, available_cores()))


def _drawn(codec: Raw | Png, count: int, seed: int) -> list[Example]:
    generator = np.random.default_rng(seed)
    return [codec.draw(generator) for _ in range(min(count, MAX_RECORDS // 4))]


def _real(workload: TrainWorkload, data: Dataset, limit: int) -> list[Example]:
    train = data.train
    for name, field in workload.example.items():
        if name not in train or train[name].shape[1:] != field.shape:
            shape = str(train[name].shape[1:]) if name in train else "missing"
            raise UserError(f"'{name}' of the data '{data.name}' is {shape}: {workload.name} takes {field.shape}.")
    count = min(limit, len(next(iter(train.values()))))
    return [{name: train[name][index] for name in workload.example} for index in range(count)]


def _draw(field: Field, generator: np.random.Generator) -> np.ndarray:
    if field.draw is not None:
        return np.asarray(field.draw(jax.random.PRNGKey(generator.integers(2**31)), 1))[0]
    if field.classes is not None:
        return generator.integers(0, field.classes, field.shape).astype(field.dtype)
    return generator.standard_normal(field.shape).astype(field.dtype)
