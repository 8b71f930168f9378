# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Size and rounding of number formats, from which bytes and tolerances follow, and NumPy's functions as kernels."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

# Allowed error of a vectorized exp or tanh, in units in the last place. Two forms of GELU differ by far more (5e-4).
ULPS = 128


def itemsize(dtype: str) -> int:
    """Bytes of one number."""
    return jnp.dtype(dtype).itemsize


def epsilon(dtype: str) -> float:
    """The distance from 1 to the next number, twice the relative error of one rounding; 0 for integers."""
    return float(jnp.finfo(dtype).eps) if jnp.issubdtype(dtype, jnp.floating) else 0.0


def in_place(function: Callable[..., np.ndarray]) -> Callable[..., Callable[[], np.ndarray]]:
    """The `prepare` of a kernel, for a function (arguments ..., out=) -> out.

    `out` is allocated outside the timed region.
    """

    def prepare(*arrays: np.ndarray) -> Callable[[], np.ndarray]:
        out = np.empty_like(arrays[0])
        return lambda: function(*arrays, out=out)

    return prepare
