# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Typed random keys (`jax.random.key`) in an optimizer's state, stored as plain bits.

NumPy and checkpoints have no arrays of keys, so a training state holds their bits, and only the optimizer sees keys.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp

from jaxbench.workloads.base import PyTree


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class KeyBits:
    """An array of keys. bits: uint32 (*keys, width). implementation: of the generator, such as "threefry2x32"."""

    bits: jax.Array
    implementation: str = field(metadata={"static": True})


def stored(tree: PyTree) -> PyTree:
    """The tree with KeyBits in place of typed keys."""

    def bits(leaf: jax.Array) -> jax.Array | KeyBits:
        if not (isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)):
            return leaf
        return KeyBits(jax.random.key_data(leaf), str(jax.random.key_impl(leaf)))

    return jax.tree.map(bits, tree)


def restored(tree: PyTree) -> PyTree:
    """Inverse of `stored`."""

    def is_bits(leaf: object) -> bool:
        return isinstance(leaf, KeyBits)

    def key(leaf: jax.Array | KeyBits) -> jax.Array:
        return jax.random.wrap_key_data(leaf.bits, impl=leaf.implementation) if isinstance(leaf, KeyBits) else leaf

    return jax.tree.map(key, tree, is_leaf=is_bits)
