# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The lever `precision`: what the products of a step are computed in.

float32 and tf32 say how products of float32 arrays are done. bfloat16 and float16 give the model parameters and inputs
of 16 bits; the gradient comes back in float32 through the cast. float16 has too small a range for many gradients, so
its loss is scaled, dynamically: Micikevicius et al., "Mixed Precision Training", arXiv:1710.03740. In these the
parameters that are updated stay float32. mixed is that paper's other form, and that of ZeRO's arithmetic: parameters
and gradients are bfloat16, 2 bytes each, and the optimizer keeps a float32 copy of the parameters for itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from jaxbench.catalog import hardware
from jaxbench.errors import UserError
from jaxbench.levers.precision import SIXTEEN_BITS
from jaxbench.workloads.base import Metrics, PyTree, TrainWorkload

PRODUCTS = {"float32": "highest", "tf32": "tensorfloat32"}  # as jax.default_matmul_precision names them
BITS = {"bfloat16": 8, "float16": 11}  # of the significand

FIRST_LOG2, MOST_LOG2 = 15, 24
GROW_AFTER = 200  # good steps in a row, after which the scale doubles


def require(workload: TrainWorkload, precision: str, platform: str, device_kind: str) -> None:
    """Raises UserError for tf32 where the products cannot be made in it."""
    peak = hardware.find(device_kind)
    older = peak is not None and "tf32_tflops" not in dict(peak.tflops) and "bf16_tflops" not in dict(peak.tflops)
    if precision == "tf32" and (platform != "gpu" or older):
        raise UserError(
            f"--config.lever.precision={precision} needs an NVIDIA GPU since Ampere, and this is a {platform} "
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
    if precision == "bfloat16":
        return workload
    if precision == "mixed":
        return dataclasses.replace(workload, init=_small(workload.init), optimizer=with_copy(workload.optimizer))
    return dataclasses.replace(workload, optimizer=scaled(workload.optimizer), loss_scale=loss_scale)


def _wrapped(workload: TrainWorkload, wrap: Callable[[Any], Any]) -> TrainWorkload:
    functions = {name: getattr(workload, name) for name in ("loss", "evaluate", "predict")}
    workload = dataclasses.replace(workload, **{name: wrap(f) for name, f in functions.items() if f is not None})
    partition = workload.partition
    if partition is None or partition.stages is None:
        return workload
    stages = partition.stages
    stages = dataclasses.replace(stages, first=wrap(stages.first), block=wrap(stages.block), last=wrap(stages.last))
    return dataclasses.replace(workload, partition=dataclasses.replace(partition, stages=stages))


def _with_products(function: Callable[..., Any], products: str) -> Callable[..., Any]:
    """The products of the backward pass are done as those of the forward pass that they come from."""

    def wrapped(*arguments: Any) -> Any:
        with jax.default_matmul_precision(products):
            return function(*arguments)

    return wrapped


def _in_16_bits(function: Callable[..., Any], dtype: Any) -> Callable[..., Any]:
    """Casts parameters and inputs; the model's state, such as batch statistics, stays as it is."""

    def cast(tree: PyTree) -> PyTree:
        return jax.tree.map(lambda x: x.astype(dtype) if jnp.issubdtype(x.dtype, jnp.floating) else x, tree)

    def wrapped(params: PyTree, model_state: PyTree, batch: PyTree, *key: jax.Array) -> Any:
        return function(cast(params), model_state, cast(batch), *key)

    return wrapped


def _small(init: Callable[[jax.Array], tuple[PyTree, PyTree]]) -> Callable[[jax.Array], tuple[PyTree, PyTree]]:
    def small(key: jax.Array) -> tuple[PyTree, PyTree]:
        params, model_state = init(key)
        return jax.tree.map(lambda p: p.astype(jnp.bfloat16), params), model_state

    return small


class CopyState(NamedTuple):
    """The state of an optimizer `with_copy`: the parameters in float32, and the optimizer's own."""

    copy: PyTree
    inner: PyTree


def with_copy(optimizer: optax.GradientTransformation) -> optax.GradientTransformation:
    """`optimizer` in float32, of parameters that the model has in fewer bits. Its updates are float32: what leads from
    the parameters given to the new copy, so that their sum, rounded, is the copy, rounded."""

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
    """The state of a `scaled` optimizer: int32 scalars, and the optimizer's own.

    The scale is held as its logarithm, in integers: were it a float, it would outweigh all else when optimizer states
    are compared.
    """

    log2_scale: jax.Array
    good_steps: jax.Array  # since the scale last changed
    skipped_steps: jax.Array
    inner: PyTree


def loss_scale(state: ScaledState) -> jax.Array:
    """float32; a power of two, so that scaling rounds nothing."""
    return jnp.ldexp(jnp.float32(1), state.log2_scale)


def metrics(state: ScaledState) -> Metrics:
    """The scale that the next step uses, and how many steps were skipped so far; as float32, like other metrics."""
    return {"loss_scale": loss_scale(state), "skipped_steps": state.skipped_steps.astype(jnp.float32)}


def scaled(optimizer: optax.GradientTransformation) -> optax.GradientTransformation:
    """`optimizer` fed with gradients of a scaled loss, which it is given unscaled.

    A gradient with a value that is not finite changes nothing but the scale, which halves, and the count of skipped
    steps. After GROW_AFTER good steps in a row the scale doubles. Gradients must be averaged over devices before: then
    every device decides alike, since what is not finite anywhere is not finite in the mean.
    """

    def init(params: PyTree) -> ScaledState:
        zero = jnp.zeros((), jnp.int32)
        return ScaledState(jnp.full((), FIRST_LOG2, jnp.int32), zero, zero, optimizer.init(params))

    def update(grads: PyTree, state: ScaledState, params: PyTree | None = None) -> tuple[PyTree, ScaledState]:
        finite = jnp.all(jnp.stack([jnp.all(jnp.isfinite(g)) for g in jax.tree.leaves(grads)]))
        grads = jax.tree.map(lambda g: g / loss_scale(state), grads)
        updates, inner = optimizer.update(grads, state.inner, params)
        updates = jax.tree.map(lambda u: jnp.where(finite, u, jnp.zeros_like(u)), updates)
        inner = jax.tree.map(lambda new, old: jnp.where(finite, new, old), inner, state.inner)
        good_steps = jnp.where(finite, state.good_steps + 1, 0)
        grown = good_steps == GROW_AFTER
        log2_scale = jnp.clip(state.log2_scale + jnp.where(finite, grown, -1), 0, MOST_LOG2)
        skipped_steps = state.skipped_steps + jnp.where(finite, 0, 1)
        return updates, ScaledState(log2_scale, jnp.where(grown, 0, good_steps), skipped_steps, inner)

    return optax.GradientTransformation(init, update)
