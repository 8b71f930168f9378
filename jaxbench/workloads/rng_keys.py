# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Which random keys the examples get, and how one device can draw the same numbers as several.

A strategy that gives the loss the whole batch (`jit`) draws for all examples from one key. A per-device program folds
the device's position into the key. Both are correct, but they draw different numbers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import jax
import jax.numpy as jnp

from jaxbench.core import weighted
from jaxbench.core.trees import ArrayTree
from jaxbench.core.workload import Batch, Keys, Mean, Metrics, TrainWorkload
from jaxbench.workloads import sharding_context
from jaxbench.workloads.jaxprs import aval_of, equations

T = TypeVar("T")
Returned = tuple[Mean, tuple[ArrayTree, Metrics]]  # of a loss
PARTS = "parts"  # the mapped axis of a batch's parts on one device


def local_key(key: jax.Array, axes: tuple[str, ...]) -> jax.Array:
    """The key of a device's part of the batch: `key`, folded with its position on each axis that splits the batch."""
    # One key for all devices would drop the same units in every part of the batch, which is weaker noise.
    for axis in axes:
        key = jax.random.fold_in(key, jax.lax.axis_index(axis))  # in the order of the axes, as in `keys_of_parts`
    return key


def keys_of_parts(*sizes: int) -> Keys:
    """The function from a key, uint32 (2,), to the `local_key` of each device on axes of these sizes, uint32
    (devices, 2)."""

    def keys(key: jax.Array) -> jax.Array:
        folded_keys = key[None]
        for size in sizes:
            folded_keys = jax.vmap(lambda k, size=size: folded(jnp.stack([k] * size), jnp.arange(size)))(folded_keys)
            folded_keys = folded_keys.reshape(-1, *key.shape)
        return folded_keys

    return keys


def folded(key: jax.Array, number: jax.Array | int) -> jax.Array:
    """`fold_in` of a number into one key, (2,), or into one key for each part, (parts, 2)."""
    if key.ndim == 1:
        return jax.random.fold_in(key, number)
    return jax.vmap(jax.random.fold_in, in_axes=(0, 0 if jnp.ndim(number) else None))(key, number)


def by_parts(workload: TrainWorkload) -> TrainWorkload:
    """The workload with a loss that takes the whole batch and one key for each part, (parts, 2).

    On one device it computes the same as a per-device strategy. The loss can still reach the other parts, through a
    mapped axis.
    """

    def loss(params: ArrayTree, model_state: ArrayTree, batch: Batch, keys: jax.Array) -> Returned:
        def of_part(part: Batch, key: jax.Array) -> Returned:
            with sharding_context.over(axis=PARTS):
                return weighted.float_weights(workload.loss(params, model_state, part, key))

        # Contiguous parts, in the order in which a mesh gives a batch to its devices.
        parts = jax.tree.map(lambda x: x.reshape(len(keys), -1, *x.shape[1:]), batch)
        if _alone(of_part, jax.tree.map(lambda x: x[0], parts), keys[0], count=len(keys)):
            return together(jax.lax.map(lambda part: of_part(*part), (parts, keys)))
        return together(map_parts(of_part, (parts, keys)))

    return dataclasses.replace(workload, loss=loss)


def map_parts(of_part: Callable[..., T], parts: tuple[ArrayTree, ...]) -> T:
    """`of_part` of each part, stacked. parts: its arguments, with a leading axis of parts.

    Under `vmap` a part can reach the others through the axis PARTS. Some operations have no rule for `vmap`, such as
    `ragged_dot`, a foreign call or an ordered callback. Then one part is computed after the other; a part that reaches
    the others ends in a NameError.
    """
    try:
        return jax.vmap(of_part, axis_name=PARTS)(*parts)
    except (NotImplementedError, ValueError):  # an error of `of_part` itself comes again below
        count = len(jax.tree.leaves(parts)[0])
        each = [of_part(*jax.tree.map(lambda x, i=i: x[i], parts)) for i in range(count)]
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *each)


def _alone(of_part: Callable[[Batch, jax.Array], object], part: Batch, key: jax.Array, *, count: int) -> bool:
    """Whether each part must be computed alone, and can be."""
    # Under `vmap`, generators other than JAX's default draw other numbers for a key than for the same key alone.
    jaxpr = jax.make_jaxpr(of_part, axis_env=[(PARTS, count)])(part, key).jaxpr
    # The dtype of a key names its generator. `eval_shape` makes the dtype without a device.
    default = jax.eval_shape(partial(jax.random.key, impl="threefry2x32"), 0).dtype
    dtypes = [aval_of(each.invars[0]).dtype for each in equations(jaxpr) if each.primitive.name == "random_bits"]
    # A loss that reaches the other parts needs them all at once, so it cannot be computed part by part.
    return any(each != default for each in dtypes) and not any(PARTS in str(each.params) for each in equations(jaxpr))


def together(tree: T) -> T:
    """`program.mean_over` for the leading axis. Totals and weights are averaged separately."""
    # Integers, such as counters, are equal in all parts; a mean would turn them into floats.
    return jax.tree.map(lambda x: jnp.mean(x, 0) if jnp.issubdtype(x.dtype, jnp.inexact) else jnp.max(x, 0), tree)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class KeyBits:
    """An array of keys. bits: uint32 (*keys, width). implementation: of the generator, such as "threefry2x32"."""

    bits: jax.Array
    implementation: str = field(metadata={"static": True})


def stored(tree: ArrayTree) -> ArrayTree:
    """The tree with KeyBits in place of typed keys."""

    # NumPy and checkpoints have no arrays of keys, so a training state holds bits, and only the optimizer sees keys.
    def bits(leaf: jax.Array) -> jax.Array | KeyBits:
        typed = isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        return KeyBits(jax.random.key_data(leaf), str(jax.random.key_impl(leaf))) if typed else leaf

    return jax.tree.map(bits, tree)


def restored(tree: ArrayTree) -> ArrayTree:
    """Inverse of `stored`."""

    def key(leaf: jax.Array | KeyBits) -> jax.Array:
        return jax.random.wrap_key_data(leaf.bits, impl=leaf.implementation) if isinstance(leaf, KeyBits) else leaf

    return jax.tree.map(key, tree, is_leaf=lambda leaf: isinstance(leaf, KeyBits))
