# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The lever `precision`: the number format of the products of a step.

float32 and tf32 set the precision of products of float32 arrays. bfloat16 and float16 cast parameters and inputs to 16
bits for the model; the cast returns float32 gradients, and the updated parameters stay float32. The range of float16 is
too small for many gradients, so its loss is scaled dynamically: Micikevicius et al., "Mixed Precision Training",
arXiv:1710.03740. float16_unscaled omits the scaling, to show its purpose. mixed is the other form of that paper, which
ZeRO assumes: parameters and gradients are bfloat16, 2 bytes each, and the optimizer keeps a float32 copy of the
parameters.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.typing import DTypeLike

from jaxbench.catalog import hardware
from jaxbench.core.workload import Metrics, PyTree, TrainWorkload
from jaxbench.errors import UserError
from jaxbench.levers import SIXTEEN_BITS

PRODUCTS = {"float32": "highest", "tf32": "tensorfloat32"}  # as jax.default_matmul_precision names them
BITS = {"bfloat16": 8, "float16": 11}  # bits of the significand

INITIAL_LOG2, MAX_LOG2 = 15, 24  # logarithms of the loss scale
GROW_AFTER = 200  # good steps in a row, after which the scale doubles


def require(workload: TrainWorkload, precision: str, platform: str, device_kind: str) -> None:
    """Raises UserError for tf32 on hardware without it."""
    peak = hardware.find(device_kind)
    older = peak is not None and "tf32_tflops" not in dict(peak.tflops) and "bf16_tflops" not in dict(peak.tflops)
    if precision == "tf32" and (platform != "gpu" or older):
        raise UserError(
            f"--config.lever.precision={precision} needs an NVIDIA GPU, Ampere or newer, and this is a {platform} "
            f"('{device_kind}'): use float32 or bfloat16."
        )


def apply(workload: TrainWorkload, precision: str) -> TrainWorkload:
    """The workload with its products in `precision`, a value of the lever."""
    if precision == "default":
        return workload
    if precision in PRODUCTS:
        return _wrapped(workload, lambda function: _with_products(function, PRODUCTS[precision]))
    dtype = SIXTEEN_BITS[precision]
    workload = dataclasses.replace(
        _wrapped(workload, lambda function: _in_16_bits(function, jnp.dtype(dtype))),
        tolerance=5e-3,
        tolerance_reason=f"{dtype} keeps {BITS[dtype]} bits: gradients of shards round differently",
        dtype=jnp.dtype(dtype),
    )
    if precision in ("bfloat16", "float16_unscaled"):
        return workload
    if precision == "mixed":
        return dataclasses.replace(workload, init=_in_bfloat16(workload.init), optimizer=with_copy(workload.optimizer))
    return dataclasses.replace(workload, optimizer=scaled(workload.optimizer), loss_scale=loss_scale)


def _wrapped(workload: TrainWorkload, wrap: Callable[[PyTree], PyTree]) -> TrainWorkload:
    functions = {name: getattr(workload, name) for name in ("loss", "evaluate", "predict")}
    workload = dataclasses.replace(workload, **{name: wrap(f) for name, f in functions.items() if f is not None})
    partition = workload.partition
    if partition is None or partition.stages is None:
        return workload
    stages = partition.stages
    stages = dataclasses.replace(stages, first=wrap(stages.first), block=wrap(stages.block), last=wrap(stages.last))
    return dataclasses.replace(workload, partition=dataclasses.replace(partition, stages=stages))


def _with_products(function: Callable[..., PyTree], products: str) -> Callable[..., PyTree]:
    """`function` with this precision of its products. Products of the backward pass inherit it."""

    def wrapped(*arguments: PyTree) -> PyTree:
        with jax.default_matmul_precision(products):
            return function(*arguments)

    return wrapped


def _in_16_bits(function: Callable[..., PyTree], dtype: DTypeLike) -> Callable[..., PyTree]:
    """`function` with its parameters and inputs cast, but not the model's state, such as batch statistics."""

    def cast(tree: PyTree) -> PyTree:
        return jax.tree.map(lambda x: x.astype(dtype) if jnp.issubdtype(x.dtype, jnp.floating) else x, tree)

    def wrapped(params: PyTree, model_state: PyTree, batch: PyTree, *key: jax.Array) -> PyTree:
        return function(cast(params), model_state, cast(batch), *key)

    return wrapped


def _in_bfloat16(init: Callable[[jax.Array], tuple[PyTree, PyTree]]) -> Callable[[jax.Array], tuple[PyTree, PyTree]]:
    def init_in_bfloat16(key: jax.Array) -> tuple[PyTree, PyTree]:
        params, model_state = init(key)
        return jax.tree.map(lambda p: p.astype(jnp.bfloat16), params), model_state

    return init_in_bfloat16


class CopyState(NamedTuple):
    """The state of an optimizer `with_copy`: the float32 parameters, and the wrapped optimizer's state."""

    copy: PyTree
    inner: PyTree


def with_copy(optimizer: optax.GradientTransformation) -> optax.GradientTransformation:
    """`optimizer` on a float32 copy of parameters in fewer bits.

    Its float32 updates are the difference between the new copy and the given parameters, so the rounded sum is the
    rounded copy.
    """

    def wide(tree: PyTree) -> PyTree:
        return jax.tree.map(lambda x: x.astype(jnp.float32), tree)

    def init(params: PyTree) -> CopyState:
        return CopyState(wide(params), optimizer.init(wide(params)))

    def update(grads: PyTree, state: CopyState, params: PyTree | None = None) -> tuple[PyTree, CopyState]:
        updates, inner = optimizer.update(wide(grads), state.inner, state.copy)
        copy = optax.apply_updates(state.copy, updates)
        return jax.tree.map(jnp.subtract, copy, wide(params)), CopyState(copy, inner)

    return optax.GradientTransformation(init, update)


class ScaledState(NamedTuple):
    """The state of a `scaled` optimizer: int32 scalars, and the wrapped optimizer's state.

    The scale is stored as an integer logarithm: as a float it would dominate comparisons of optimizer states.
    """

    log2_scale: jax.Array
    good_steps: jax.Array  # since the scale last changed
    skipped_steps: jax.Array
    inner: PyTree


def loss_scale(state: ScaledState) -> jax.Array:
    """float32; a power of two, so that scaling rounds nothing."""
    return jnp.ldexp(jnp.float32(1), state.log2_scale)


def metrics(state: ScaledState) -> Metrics:
    """The scale of the next step, and the number of skipped steps; float32, like other metrics."""
    return {"loss_scale": loss_scale(state), "skipped_steps": state.skipped_steps.astype(jnp.float32)}


def scaled(optimizer: optax.GradientTransformation) -> optax.GradientTransformation:
    """`optimizer` for gradients of a scaled loss, which are unscaled first.

    If a gradient has a value that is not finite, the step only halves the scale and counts as skipped. After GROW_AFTER
    good steps in a row the scale doubles. Gradients must already be averaged over devices.
    """

    def init(params: PyTree) -> ScaledState:
        zero = jnp.zeros((), jnp.int32)
        return ScaledState(jnp.full((), INITIAL_LOG2, jnp.int32), zero, zero, optimizer.init(params))

    def update(grads: PyTree, state: ScaledState, params: PyTree | None = None) -> tuple[PyTree, ScaledState]:
        # All devices decide the same: a value that is not finite on one device is not finite in the mean.
        finite = jnp.all(jnp.stack([jnp.all(jnp.isfinite(g)) for g in jax.tree.leaves(grads)]))
        grads = jax.tree.map(lambda g: g / loss_scale(state), grads)
        updates, inner = optimizer.update(grads, state.inner, params)
        # A choice and not a product with 0 or 1: 0 x inf is NaN.
        updates = jax.tree.map(lambda u: jnp.where(finite, u, jnp.zeros_like(u)), updates)
        inner = jax.tree.map(lambda new, old: jnp.where(finite, new, old), inner, state.inner)
        good_steps = jnp.where(finite, state.good_steps + 1, 0)
        grown = good_steps == GROW_AFTER
        log2_scale = jnp.clip(state.log2_scale + jnp.where(finite, grown, -1), 0, MAX_LOG2)
        skipped_steps = state.skipped_steps + jnp.where(finite, 0, 1)
        return updates, ScaledState(log2_scale, jnp.where(grown, 0, good_steps), skipped_steps, inner)

    return optax.GradientTransformation(init, update)
