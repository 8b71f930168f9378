# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Levers that transform a TrainWorkload so that it trains in another way. Strategies do not see them.

A lever that transforms workloads has a function (workload, value) -> workload under `@_of(TRANSFORMS, name)`. A lever
that not every model and device supports has a function (workload, value, platform, device kind) under
`@_of(REQUIREMENTS, name)`, which raises UserError. The name is that of the declaration in `jaxbench.levers`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import optax
from jax.typing import DTypeLike

from jaxbench.catalog import hardware
from jaxbench.core.trees import ArrayTree, Tree, entries
from jaxbench.core.workload import KEY, Batch, Mean, Metrics, Scalars, TrainWorkload
from jaxbench.errors import UserError, quoted
from jaxbench.levers import LEVERS, REMATS, SIXTEEN_BITS, Reduction, named_activations, offloads
from jaxbench.workloads import flops

P = ParamSpec("P")
T = TypeVar("T")
Result = TypeVar("Result")
F = TypeVar("F", bound=Callable[..., Any])

# The lever `freeze`: parameters that are not trained leave `params`, and so have no gradient, no optimizer state and no
# communication.

# The lever `precision`: the number format of the products of a step. float32 and tf32 set the precision of products of
# float32 arrays. bfloat16 and float16 cast parameters and inputs to 16 bits for the model; the cast returns float32
# gradients, and the updated parameters stay float32. The range of float16 is too small for many gradients, so its loss
# is scaled dynamically: Micikevicius et al., "Mixed Precision Training", arXiv:1710.03740. float16_unscaled omits the
# scaling, to show its purpose. mixed is the other form of that paper, which ZeRO assumes: parameters and gradients are
# bfloat16, 2 bytes each, and the optimizer keeps a float32 copy of the parameters.
PRODUCTS = {"float32": "highest", "tf32": "tensorfloat32"}  # as jax.default_matmul_precision names them
BITS = {"bfloat16": 8, "float16": 11}  # bits of the significand
INITIAL_LOG2, MAX_LOG2 = 15, 24  # logarithms of the loss scale; float16 ends just below 2^16
GROW_AFTER = 200  # good steps in a row, after which the scale doubles

TRANSFORMS: dict[str, Callable[[TrainWorkload, Any], TrainWorkload]] = {}
REQUIREMENTS: dict[str, Callable[[TrainWorkload, Any, str, str], None]] = {}


def _of(table: dict[str, F], lever: str) -> Callable[[F], F]:
    """Enters the decorated function into a table, as that of a lever."""

    def enter(function: F) -> F:
        table[lever] = function
        return function

    return enter


@_of(TRANSFORMS, "freeze")
def frozen(workload: TrainWorkload, pattern: str) -> TrainWorkload:
    """The workload with frozen parameters: those with a path that matches `pattern`, a regular expression.

    The trainable tree has None in place of frozen parameters, and the frozen tree has None everywhere else. The model's
    state becomes ``{"model": its own state, "frozen": the frozen tree}``; a loss returns only "model".

    Raises:
      UserError: `pattern` is not a regular expression, or matches no parameter or every one.
    """
    if pattern == "none":
        return workload
    chosen = _chosen(workload, pattern)

    def init(key: jax.Array) -> tuple[ArrayTree, ArrayTree]:
        params, model_state = workload.init(key)
        # None is an empty subtree, so optimizers, strategies and checkpoints see only what is trained.
        trainable = jax.tree.map(lambda x, frozen: None if frozen else x, params, chosen)
        frozen = jax.tree.map(lambda x, frozen: x if frozen else None, params, chosen)
        return trainable, {"model": model_state, "frozen": frozen}

    def with_frozen(function: Callable[..., T]) -> Callable[..., T]:
        return lambda params, state, *rest: function(_merge(params, state["frozen"]), state["model"], *rest)

    def loss(
        params: ArrayTree, state: dict[str, ArrayTree], batch: Batch, key: jax.Array
    ) -> tuple[Mean, tuple[ArrayTree, Metrics]]:
        value, (new, metrics) = with_frozen(workload.loss)(params, state, batch, key)
        # A loss may return only what it changed, and `_merged` of parallel/step.py merges one level only.
        new = {**entries(state["model"]), **new} if isinstance(new, dict) else new
        return value, ({"model": new}, metrics)

    rest = dataclasses.replace(
        workload,
        init=init,
        loss=loss,
        evaluate=workload.evaluate and with_frozen(workload.evaluate),
        predict=workload.predict and with_frozen(workload.predict),
    )
    # FLOPs of training the rest. Frozen layers need no gradient of their weights; layers before the first trained layer
    # need none of their inputs. A workload's own figures are scaled by the remaining share of the products.
    remaining = flops.of_workload(rest, workload.least).total / workload.least
    if workload.flops_per_example is None:
        return dataclasses.replace(rest, flops_per_example=remaining)
    whole = flops.of_workload(workload, workload.least).total / workload.least
    share = remaining / whole if whole else 1.0
    return dataclasses.replace(
        rest,
        flops_per_example=share * workload.flops_per_example,
        masked_flops_per_example=share * workload.masked_flops_per_example,
        padding_flops_per_example=share * workload.padding_flops_per_example,
    )


def stateful(model_state: ArrayTree) -> bool:
    """Whether a model has state, such as batch statistics, in addition to frozen parameters."""
    return bool(jax.tree.leaves(not_frozen(model_state)))


def is_frozen(model_state: ArrayTree) -> bool:
    """Whether a model's state holds frozen parameters."""
    return isinstance(model_state, dict) and "frozen" in model_state


def not_frozen(model_state: ArrayTree) -> ArrayTree:
    """A model's state without its frozen parameters."""
    if not is_frozen(model_state):
        return model_state
    return {name: part for name, part in entries(model_state).items() if name != "frozen"}


def paths(params: object) -> list[str]:
    """The parameters' names in the order of the tree's leaves, such as "blocks/0/attention/kernel"."""
    return [jax.tree_util.keystr(at, simple=True, separator="/") for at, _ in jax.tree.leaves_with_path(params)]


def _chosen(workload: TrainWorkload, pattern: str) -> Tree[bool]:
    """A tree with the structure of params: whether each parameter is frozen."""
    params, _ = jax.eval_shape(workload.init, KEY)
    names = paths(params)  # of shapes alone, so a wrong pattern is refused before anything is compiled
    try:
        chosen = [re.search(pattern, name) is not None for name in names]
    except re.error as error:
        raise UserError(
            f"--config.lever.freeze={pattern} is not a regular expression ({error}): use '{names[0]}', for example."
        ) from error
    if not any(chosen):
        raise UserError(f"--config.lever.freeze={pattern} matches no parameter: there are {quoted(names)}.")
    if all(chosen):
        raise UserError(
            f"--config.lever.freeze={pattern} matches every parameter, which leaves none to train: there are "
            f"{quoted(names)}."
        )
    return jax.tree.unflatten(jax.tree.structure(params), chosen)


def _merge(trainable: ArrayTree, frozen: ArrayTree) -> ArrayTree:
    """The whole tree of parameters from its two halves."""
    return jax.tree.map(lambda t, f: f if t is None else t, trainable, frozen, is_leaf=lambda x: x is None)


@_of(REQUIREMENTS, "precision")
def require_precision(workload: TrainWorkload, precision: str, platform: str, device_kind: str) -> None:
    """Raises UserError for tf32 on hardware without it."""
    peak = hardware.find(device_kind)  # a GPU that the catalogue lacks is not refused: it may be newer
    older = peak is not None and "tf32_tflops" not in dict(peak.tflops) and "bf16_tflops" not in dict(peak.tflops)
    if precision == "tf32" and (platform != "gpu" or older):
        raise UserError(
            f"--config.lever.precision={precision} needs an NVIDIA GPU, Ampere or newer, and this is a {platform} "
            f"('{device_kind}'): use float32 or bfloat16."
        )


@_of(TRANSFORMS, "precision")
def in_precision(workload: TrainWorkload, precision: str) -> TrainWorkload:
    """The workload with its products in `precision`, a value of the lever."""
    if precision == "default":  # what JAX does without a setting, which differs by platform: TF32 on a GPU
        return workload
    if precision in PRODUCTS:
        return _wrapped(workload, lambda function: _with_products(function, PRODUCTS[precision]))
    dtype = SIXTEEN_BITS[precision]
    in_16_bits = dataclasses.replace(
        _wrapped(workload, lambda function: _in_16_bits(function, jnp.dtype(dtype))),
        tolerance=5e-3,
        tolerance_reason=f"{dtype} keeps {BITS[dtype]} bits: gradients of shards round differently",
        dtype=jnp.dtype(dtype),
    )
    if precision in ("bfloat16", "float16_unscaled"):
        return in_16_bits
    if precision == "mixed":

        def init(key: jax.Array) -> tuple[ArrayTree, ArrayTree]:
            params, model_state = workload.init(key)
            return jax.tree.map(lambda p: p.astype(jnp.bfloat16), params), model_state

        return dataclasses.replace(in_16_bits, init=init, optimizer=with_copy(workload.optimizer))
    return dataclasses.replace(in_16_bits, optimizer=scaled(workload.optimizer), loss_scale=loss_scale)


def _wrapped(workload: TrainWorkload, wrap: Callable[[Any], Any]) -> TrainWorkload:
    """The workload with each function that computes on parameters wrapped."""
    # Not `init`: the cast is a part of the loss, so that parameters and their updates stay float32.
    functions = {name: getattr(workload, name) for name in ("loss", "evaluate", "predict")}
    workload = dataclasses.replace(workload, **{name: wrap(f) for name, f in functions.items() if f is not None})
    partition = workload.partition
    if partition is None or partition.stages is None:
        return workload
    stages = partition.stages  # a pipeline calls these instead of the loss
    stages = dataclasses.replace(stages, first=wrap(stages.first), block=wrap(stages.block), last=wrap(stages.last))
    return dataclasses.replace(workload, partition=dataclasses.replace(partition, stages=stages))


def _with_products(function: Callable[P, T], products: str) -> Callable[P, T]:
    """`function` with this precision of its products. Products of the backward pass inherit it."""

    def wrapped(*arguments: P.args, **named: P.kwargs) -> T:
        with jax.default_matmul_precision(products):
            return function(*arguments, **named)

    return wrapped


def _in_16_bits(function: Callable[..., Result], dtype: DTypeLike) -> Callable[..., Result]:
    """`function` with its parameters and inputs cast, but not the model's state, such as batch statistics."""

    def cast(tree: T) -> T:  # integers are labels and tokens
        return jax.tree.map(lambda x: x.astype(dtype) if jnp.issubdtype(x.dtype, jnp.floating) else x, tree)

    def wrapped(params: ArrayTree, model_state: ArrayTree, batch: Batch, *key: jax.Array) -> Result:
        return function(cast(params), model_state, cast(batch), *key)

    return wrapped


class CopyState(NamedTuple):
    """The state of an optimizer `with_copy`: the float32 parameters, and the wrapped optimizer's state."""

    copy: ArrayTree
    inner: ArrayTree


def with_copy(optimizer: optax.GradientTransformation) -> optax.GradientTransformation:
    """`optimizer` on a float32 copy of parameters in fewer bits."""

    def wide(tree: T) -> T:
        return jax.tree.map(lambda x: x.astype(jnp.float32), tree)

    def init(params: ArrayTree) -> CopyState:
        return CopyState(wide(params), optimizer.init(wide(params)))

    def update(grads: ArrayTree, state: CopyState, params: ArrayTree = None) -> tuple[ArrayTree, CopyState]:
        updates, inner = optimizer.update(wide(grads), state.inner, state.copy)
        copy = optax.apply_updates(state.copy, updates)
        # The step adds updates to the 16-bit parameters and rounds. So the update is the difference from these in
        # float32, and the rounded sum is the rounded copy: no rounding accumulates.
        return jax.tree.map(jnp.subtract, copy, wide(params)), CopyState(copy, inner)

    return optax.GradientTransformation(init, update)


class ScaledState(NamedTuple):
    """The state of a `scaled` optimizer: int32 scalars, and the wrapped optimizer's state."""

    log2_scale: jax.Array  # an integer: as a float the scale would dominate comparisons of optimizer states
    good_steps: jax.Array  # since the scale last changed
    skipped_steps: jax.Array
    inner: ArrayTree


def loss_scale(state: ScaledState) -> jax.Array:
    """float32; a power of two, so that scaling rounds nothing."""
    return jnp.ldexp(jnp.float32(1), state.log2_scale)


def scale_metrics(state: ScaledState) -> Scalars:
    """The scale of the next step, and the number of skipped steps; float32, like other metrics."""
    return {"loss_scale": loss_scale(state), "skipped_steps": state.skipped_steps.astype(jnp.float32)}


def scaled(optimizer: optax.GradientTransformation) -> optax.GradientTransformation:
    """`optimizer` for gradients of a scaled loss, which are unscaled first.

    If a gradient has a value that is not finite, the step only halves the scale and counts as skipped. After GROW_AFTER
    good steps in a row the scale doubles. Gradients must already be averaged over devices.
    """

    def init(params: ArrayTree) -> ScaledState:
        zero = jnp.zeros((), jnp.int32)
        return ScaledState(jnp.full((), INITIAL_LOG2, jnp.int32), zero, zero, optimizer.init(params))

    def update(grads: ArrayTree, state: ScaledState, params: ArrayTree = None) -> tuple[ArrayTree, ScaledState]:
        # All devices decide the same: a value that is not finite on one device is not finite in the mean.
        finite = jnp.all(jnp.stack([jnp.all(jnp.isfinite(g)) for g in jax.tree.leaves(grads)]))
        grads = jax.tree.map(lambda g: g / loss_scale(state), grads)
        updates, inner = optimizer.update(grads, state.inner, params)
        # A choice and not a product with 0 or 1: 0 x inf is NaN.
        updates = jax.tree.map(lambda u: jnp.where(finite, u, jnp.zeros_like(u)), updates)
        inner = jax.tree.map(lambda new, old: jnp.where(finite, new, old), inner, state.inner)
        good_steps = jnp.where(finite, state.good_steps + 1, 0)
        grown = good_steps == GROW_AFTER
        # From 0 on: below 1 a scale would lose small gradients, which it is there to save.
        log2_scale = jnp.clip(state.log2_scale + jnp.where(finite, grown, -1), 0, MAX_LOG2)
        skipped_steps = state.skipped_steps + jnp.where(finite, 0, 1)
        return updates, ScaledState(log2_scale, jnp.where(grown, 0, good_steps), skipped_steps, inner)

    return optax.GradientTransformation(init, update)


@_of(TRANSFORMS, "accumulate")
def _accumulated(workload: TrainWorkload, micro_batches: int) -> TrainWorkload:
    """Only a number: `parallel.step.gradients` splits each device's share of the batch; a workload has no devices."""
    return dataclasses.replace(workload, micro_batches=micro_batches)


@_of(TRANSFORMS, "reduction")
def _reduced(workload: TrainWorkload, reduction: Reduction | None) -> TrainWorkload:
    """The workload with the tolerance for the number format in which its gradients are summed."""
    if reduction is None or reduction.dtype is None:
        return workload
    reason = f"sums of gradients in {reduction.dtype} keep 8 bits"  # the sums themselves belong to the strategy
    return dataclasses.replace(workload, tolerance=5e-3, tolerance_reason=reason)


@_of(REQUIREMENTS, "remat")
def _require_blocks(workload: TrainWorkload, remat: str, platform: str, device_kind: str) -> None:
    """Raises UserError for a model without blocks to recompute or names to select, and for offloading on a CPU."""
    if remat != "none" and not workload.blocks:
        raise UserError(
            f"--config.lever.remat={remat} recomputes identical blocks and '{workload.name}' has none: use none."
        )
    if named_activations(remat) is not None and not workload.named:
        raise UserError(
            f"--config.lever.remat={remat} selects activations by name and '{workload.name}' names none: use gpt, or "
            f"{', '.join(REMATS)}."
        )
    if offloads(remat) and platform == "cpu":
        raise UserError(
            f"--config.lever.remat={remat} moves activations to host memory, where a CPU already has them: use block."
        )


def changing() -> tuple[str, ...]:
    """The levers that a workload depends on: those that transform it, and those that the model reads itself."""
    return tuple(name for name, lever in LEVERS.items() if name in TRANSFORMS or lever.changes == "workload")


def apply(workload: TrainWorkload, levers: Mapping[str, str], *, platform: str, device_kind: str) -> TrainWorkload:
    """`workload` with its levers applied in the order of `LEVERS`; an absent lever has its default.

    Args:
      workload: built from a config with the same lever `remat` as `levers`.
      platform, device_kind: those of the devices that it will run on, as in `jax.Device`.

    Raises:
      UserError: this model or these devices do not support a lever.
    """
    # In the order of LEVERS, freezing wraps the loss after precision: frozen parameters, merged in, are cast too.
    for name in changing():
        value = LEVERS[name].of(levers)
        if name in REQUIREMENTS:
            REQUIREMENTS[name](workload, value, platform, device_kind)
        if name in TRANSFORMS:
            workload = TRANSFORMS[name](workload, value)
    return workload
