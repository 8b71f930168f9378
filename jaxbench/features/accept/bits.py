# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Are the bits of a result right? Inputs are small integers, so every sum is exact in any order, and a result has one
right
value. A weighted sum of its bits, modulo 2^32, is computed on the device and on the host. The weights are odd, so one
flipped bit always changes it.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

FLIP = "JAXBENCH_ACCEPT_FLIP"  # for tests: "product_f32:1" flips a bit of that probe's result on device 1
BLOCK = 512  # rows of a result that the host computes and compares at once
LARGEST = 4  # of the integers; without 0, so that no sum of products is a negative zero
PERIOD = 65_521  # a prime: neighbouring parts of an array differ


def integers(count: int, seed: int) -> np.ndarray:
    """(count,) float32: nonzero integers from -LARGEST to LARGEST."""
    random = np.random.default_rng(seed)
    few = random.integers(1, LARGEST + 1, min(count, PERIOD)) * random.choice([-1, 1], min(count, PERIOD))
    return np.resize(few.astype(np.float32), count)


def ascending(count: int) -> np.ndarray:
    """(count,) float32: positive integers that repeat with the period."""
    return np.resize(np.arange(1, min(count, PERIOD) + 1, dtype=np.float32), count)


@functools.partial(jax.jit, static_argnames="flip")
def on_device(result: jax.Array, flip: bool = False) -> jax.Array:
    """The weighted sum of the bits of a float32 result. flip: flip one bit first, for tests."""
    bits = jax.lax.bitcast_convert_type(result, jnp.uint32).ravel()
    if flip:
        bits = bits.at[0].set(bits[0] ^ 1)
    return jnp.sum(bits * (2 * jax.lax.iota(jnp.uint32, bits.size) + 1), dtype=jnp.uint32)


def on_host(result: np.ndarray, first: int = 0) -> int:
    """The same for an array, or for a part of it that begins with element `first`."""
    bits = np.ascontiguousarray(result, np.float32).view(np.uint32).ravel()
    weights = 2 * (np.arange(bits.size, dtype=np.uint32) + np.uint32(first % 2**32)) + np.uint32(1)
    return int((bits * weights).sum(dtype=np.uint32))


def of_product(a: np.ndarray, b: np.ndarray) -> int:
    """The weighted sum of the bits of a @ b, computed by blocks of rows."""
    total = 0
    for row in range(0, len(a), BLOCK):
        total += on_host(a[row : row + BLOCK] @ b, first=row * b.shape[1])
    return total % 2**32


def where_wrong(result: np.ndarray, right: Callable[[int, int], np.ndarray]) -> str:
    """A clause that names the first wrong element. right: (first row, end) -> those rows as they should be."""
    for row in range(0, len(result), BLOCK):
        part = result[row : row + BLOCK]
        differs = part.view(np.uint32) != right(row, row + len(part)).astype(np.float32).view(np.uint32)
        if differs.any():
            at = tuple(int(each) for each in np.argwhere(differs)[0])
            return (
                f"element {(at[0] + row, *at[1:])} has other bits than on the host, {int(differs.sum())} of its block"
            )
    return "its bits were wrong when it was computed, and right when it was read again"


def flipped(probe: str, unit: int) -> bool:
    """Whether a test asks for a wrong bit here."""
    return os.environ.get(FLIP, "") == f"{probe}:{unit}"
