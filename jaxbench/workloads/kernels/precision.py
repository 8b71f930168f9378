# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Size and rounding of number formats, from which bytes and tolerances follow."""

from __future__ import annotations

import jax.numpy as jnp


def itemsize(dtype: str) -> int:
    """Bytes of one number."""
    return jnp.dtype(dtype).itemsize


def epsilon(dtype: str) -> float:
    """The distance from 1 to the next number, twice the relative error of one rounding; 0 for integers."""
    return float(jnp.finfo(dtype).eps) if jnp.issubdtype(dtype, jnp.floating) else 0.0
