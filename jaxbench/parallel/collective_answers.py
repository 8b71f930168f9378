# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The inputs and expected results of collectives, in NumPy: every value on every device is compared exactly.

Each device draws small integers, so that every sum is exact in the dtype, in any order.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from jaxbench.errors import UserError

# A device's values repeat with this period, so that drawing a gigabyte costs no more than a copy. It is a prime, so
# that neighbouring parts of a buffer differ, whatever their length.
PERIOD = 65_521
LARGEST = 7
BLOCK = 2**22  # elements compared at once


@dataclass(frozen=True)
class Segment:
    """A part of a result: the elementwise sum over the devices `places` of their `length` elements from `start` on."""

    places: tuple[int, ...]
    start: int
    length: int


def segments(op: str, members: tuple[int, ...], rank: int, length: int) -> list[Segment]:
    """The result of device `members[rank]`, as consecutive segments.

    Args:
      members: the positions in the mesh of the devices of its group, in the order of the axis.
      length: elements of the argument of one device.
    """
    part = length // len(members)
    return {
        "all_reduce": lambda: [Segment(members, 0, length)],
        "all_gather": lambda: [Segment((place,), 0, part) for place in members],
        "reduce_scatter": lambda: [Segment(members, rank * length, length)],
        "all_to_all": lambda: [Segment((place,), rank * part, part) for place in members],
        "broadcast": lambda: [Segment(members[:1], 0, length)],
        "ppermute": lambda: [Segment((members[rank - 1],), 0, length)],
    }[op]()


def largest_value(dtype: np.dtype, summands: int) -> int:
    """The largest value for which a sum of `summands` values is exact; 0 if no such sum is exact."""
    if jnp.issubdtype(dtype, jnp.integer):
        exact = int(jnp.iinfo(dtype).max)
    else:
        exact = 2 ** (jnp.finfo(dtype).nmant + 1)  # all integers up to this one are exact in the format
    return min(LARGEST, exact // summands)


def require_exact(op: str, dtype: np.dtype, summands: int) -> int:
    """`largest_value`, at least 1. Raises UserError for a sum that cannot be checked exactly."""
    largest = largest_value(dtype, summands)
    if largest < 1:
        raise UserError(f"{op} in {dtype} over {summands} devices cannot be exact: use a wider type, such as float32.")
    return largest


@functools.lru_cache(maxsize=256)
def _period(seed: int, place: int, largest: int) -> np.ndarray:
    drawn = np.random.default_rng([seed, place]).integers(0, largest + 1, PERIOD, np.uint8)
    drawn.flags.writeable = False  # cached: a caller that writes would change later answers
    return drawn


def values(seed: int, places: Sequence[int], start: int, length: int, dtype: np.dtype, largest: int) -> np.ndarray:
    """Elements start .. start + length of the sum over `places`, in `dtype`. Shape (length,)."""
    period = np.sum([_period(seed, place, largest) for place in places], axis=0, dtype=np.int64).astype(dtype)
    return np.resize(np.roll(period, -(start % PERIOD)), length)


def count_wrong(found: np.ndarray, expected: list[Segment], seed: int, largest: int) -> int:
    """The number of wrong elements of `found`, (length,); all of them if the length is wrong."""
    if found.size != sum(segment.length for segment in expected):
        return max(found.size, sum(segment.length for segment in expected))
    wrong, at = 0, 0
    for segment in expected:
        for done in range(0, segment.length, BLOCK):
            length = min(BLOCK, segment.length - done)
            right = values(seed, segment.places, segment.start + done, length, found.dtype, largest)
            wrong += int(np.sum(found[at : at + length] != right))  # NaN is wrong
            at += length
    return wrong
