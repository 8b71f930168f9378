# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The functions that strategies build a step from.

A step is `gradients` (forward and backward pass), a mean over devices, and `update`. Strategies differ in the second.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, PartitionSpec

from jaxbench.core import weighted
from jaxbench.core.program import TrainState
from jaxbench.core.trees import ArrayTree, entries
from jaxbench.core.weighted import WeightedMean
from jaxbench.core.workload import Batch, Mean, Metrics, Scalars, TrainWorkload
from jaxbench.errors import UserError, of_kind
from jaxbench.machine.start import run_once_options
from jaxbench.workloads import levers, rng_keys, sharding_context

P = ParamSpec("P")
T = TypeVar("T")


def create_state(workload: TrainWorkload, key: jax.Array) -> TrainState:
    """The canonical initial state. `key`: uint32 (2,)."""
    # Two independent keys: 0 for the initial values, 1 for the random numbers of the steps.
    params, model_state = workload.init(jax.random.fold_in(key, 0))
    try:
        opt_state = rng_keys.stored(workload.optimizer.init(params))
    except AttributeError as error:
        raise _other_parameters(workload, error) from error
    return TrainState(
        step=jnp.zeros((), jnp.int32),
        params=params,
        model_state=model_state,
        opt_state=opt_state,
        key=jax.random.fold_in(key, 1),
    )


def without(passes: Iterable[str]) -> dict[str, str]:
    """The compiler options that turn passes off."""
    names = ",".join(dict.fromkeys(passes))  # without duplicates, in order
    return {"xla_disable_hlo_passes": names} if names else {}


def keep_barriers(mesh: Mesh) -> tuple[str, ...]:
    """The compiler passes to turn off for a step that computes or sends something twice on purpose.

    XLA's CPU compiler would drop the barriers that keep it from merging the two.
    """
    return ("cse_barrier_expander",) if mesh.devices.flat[0].platform == "cpu" else ()


def jit_once(function: Callable[..., object], *, flops: float = 0.0, **options: Any) -> jax.stages.Wrapped:
    """`jax.jit` for a program that runs a few times and is never timed, so it is compiled fast instead of well.

    flops: of one run; a program with many is optimized somewhat (`machine.start.run_once_options`).
    """
    return jax.jit(function, compiler_options=run_once_options(flops), **options)


def jit_initial(function: Callable[P, T], *, whole: bool = True, **options: Any) -> Callable[P, T]:
    """`jit_once` for a function that draws initial values.

    whole: each device gets all of them. Then a GPU draws with JAX's own kernel: the same numbers, compiled in an eighth
    of the time, because XLA otherwise fuses the generator into the values of every parameter. The compiler cannot
    split a kernel, so devices that get shards would each draw everything first.
    """
    jitted = jit_once(function, **options)
    if not whole or jax.default_backend() != "gpu":
        return jitted

    @functools.wraps(function)
    def call(*args: P.args, **named: P.kwargs) -> T:
        if any(isinstance(each, jax.core.Tracer) for each in args):  # eval_shape; an inner jit takes no options
            return function(*args, **named)
        with drawing():
            return jitted(*args, **named)

    return call


@contextlib.contextmanager
def drawing() -> Iterator[None]:
    """A context to compile the initial values of one device in: see `jit_initial`."""
    flag = "jax_threefry_gpu_kernel_lowering"
    before = jax.config.values[flag]
    jax.config.update(flag, before or jax.default_backend() == "gpu")
    try:
        yield
    finally:
        jax.config.update(flag, before)


def forward(workload: TrainWorkload, state: TrainState, batch: Batch) -> tuple[ArrayTree, Scalars]:
    """Runs the forward pass on `batch`. Returns (model_state, metrics), with the loss among the metrics."""

    def run(state: TrainState, batch: Batch) -> tuple[Metrics, ArrayTree]:
        key = rng_keys.folded(state.key, state.step)
        loss, (model_state, metrics) = workload.loss(state.params, state.model_state, batch, key)
        return weighted.float_weights({"loss": loss, **metrics}), model_state

    metrics, model_state = _in_micro_batches(run, workload.micro_batches, state, batch)
    return model_state, weighted.normalized(metrics, over_devices)


def gradients(
    workload: TrainWorkload,
    state: TrainState,
    batch: Batch,
    *,
    held: Callable[[ArrayTree], ArrayTree] = lambda grads: grads,
) -> tuple[ArrayTree, ArrayTree, Scalars]:
    """Runs the forward and backward pass on `batch`. Returns (gradients, model_state, metrics), with the loss among the
    metrics.

    held: gradients of one micro-batch -> the form in which they are added up, such as one device's shards (ZeRO-2).

    The mean of the gradients over the devices that hold the rest of the batch is the gradient of the whole batch. This
    holds for a WeightedMean too: each device's loss is multiplied by its weight over the mean weight of all devices.
    Under loss scaling the gradients are those of the scaled loss, and the returned loss is unscaled.
    """

    def run(state: TrainState, batch: Batch) -> tuple[tuple[ArrayTree, Metrics], ArrayTree]:
        key = rng_keys.folded(state.key, state.step)

        def loss(differentiated: ArrayTree) -> tuple[jax.Array, tuple[ArrayTree, Metrics]]:
            # Gradients of the rest would be computed and sent for nothing.
            params = {**entries(state.params), **entries(differentiated)} if workload.sent else differentiated
            loss, (model_state, metrics) = workload.loss(params, state.model_state, batch, key)
            share = _share(loss)
            scaled = share if workload.loss_scale is None else share * workload.loss_scale(state.opt_state)
            return scaled, (model_state, weighted.float_weights({"loss": loss, **metrics}))

        sent = {workload.sent: entries(state.params)[workload.sent]} if workload.sent else state.params
        (_, (model_state, metrics)), grads = jax.value_and_grad(loss, has_aux=True)(sent)
        # Micro-batches have different weights: each gradient is weighted here, and the sum is divided below.
        if workload.micro_batches > 1 and weighted.is_weighted(metrics["loss"]):
            weight = over_devices(metrics["loss"].weight)
            grads = jax.tree.map(lambda g: (g * weight).astype(g.dtype), grads)
        return (held(grads), metrics), model_state

    (grads, metrics), model_state = _in_micro_batches(run, workload.micro_batches, state, batch)
    if workload.micro_batches > 1 and weighted.is_weighted(metrics["loss"]):
        weight = over_devices(metrics["loss"].weight)
        grads = jax.tree.map(lambda g: weighted.divided(g, weight), grads)
    scalars = weighted.normalized(metrics, over_devices)
    if workload.loss_scale is not None:
        scalars |= levers.scale_metrics(of_kind(levers.ScaledState, state.opt_state))
    return grads, model_state, scalars


def _share(loss: Mean) -> jax.Array:
    """The value that one device differentiates: its mean loss, times its weight over the mean weight of all devices.

    It is not the total, because the gradient of that may overflow in 16 bits. The weights are applied before the
    backward pass, which may already sum over devices, as for the gradients of gathered parameters.
    """
    if not isinstance(loss, WeightedMean):
        return loss
    loss = weighted.float_weights(loss)
    return loss.mean * weighted.divided(loss.weight, over_devices(loss.weight))


def over_devices(weight: jax.Array) -> jax.Array:
    """The mean of a weight over the devices that hold the rest of the batch; itself if the loss sees all of it."""
    axis = sharding_context.current().axis
    return weight if axis is None else jax.lax.pmean(weight, axis)


def update(workload: TrainWorkload, state: TrainState, grads: ArrayTree, model_state: ArrayTree) -> TrainState:
    """Applies the optimizer to gradients that are already averaged over the global batch."""
    updates, opt_state = optimizer_update(workload, grads, state.opt_state, state.params)
    # The cast keeps the dtype: float32 updates would otherwise widen bfloat16 parameters.
    params = jax.tree.map(lambda p, u: (p + u).astype(p.dtype), state.params, updates)
    model_state = _merged(state.model_state, model_state)
    if workload.loss_scale is not None:  # a skipped step must not change batch statistics either
        before, after = (of_kind(levers.ScaledState, each) for each in (state.opt_state, opt_state))
        taken = after.skipped_steps == before.skipped_steps
        model_state = jax.tree.map(lambda new, old: jnp.where(taken, new, old), model_state, state.model_state)
    return TrainState(state.step + 1, params, model_state, opt_state, state.key)


def optimizer_update(
    workload: TrainWorkload, grads: ArrayTree, opt_state: ArrayTree, params: ArrayTree
) -> tuple[ArrayTree, ArrayTree]:
    """(updates, optimizer's state).

    Raises UserError for an optimizer that needs more arguments than a step passes, or parameters of its own kind, or
    that returns a state with another structure.
    """
    try:
        # A state holds the bits of an optimizer's typed random keys, because NumPy and checkpoints have no such arrays.
        updates, new_state = workload.optimizer.update(grads, rng_keys.restored(opt_state), params)
        new_state = rng_keys.stored(new_state)
    except AttributeError as error:
        raise _other_parameters(workload, error) from error
    except (TypeError, ValueError) as error:
        # optax has no exception type for a missing argument: only the message shows it. Other errors pass through.
        missing = re.search(
            r"missing \d+ required .*arguments?: (.+)|(\w+) must be provided|(grads)` to have a batch dimension",
            str(error),
        )
        if missing is None:
            raise
        raise UserError(
            f"the optimizer of '{workload.name}' needs "
            f"{'a gradient for each example' if missing[3] else missing[1] or missing[2]}, but a step passes it only "
            "mean gradients, its state and parameters: use another one, such as optax.adamw(1e-3)."
        ) from error
    structure: Callable[[object], object] = jax.tree.structure  # the stubs of PyTreeDef lack a comparison
    if structure(opt_state) != structure(new_state):
        raise UserError(
            f"the optimizer of '{workload.name}' returns a state with another structure than its input, which the "
            "next step cannot take: remove transformations that extend it, such as optax.monitor."
        )
    return updates, new_state


def _other_parameters(workload: TrainWorkload, error: AttributeError) -> UserError:
    """What to say of an optimizer that looks for an attribute of the parameters."""
    if error.name == "fast":  # of optax.LookaheadParams
        return UserError(
            f"the optimizer of '{workload.name}' is optax.lookahead, which needs parameters of its own kind "
            "(optax.LookaheadParams, a fast and a slow copy), but a step passes it the model's parameters: use the "
            "optimizer inside it alone, such as optax.adamw(1e-3), or bring your own train step (jaxbench help)."
        )
    return UserError(
        f"the optimizer of '{workload.name}' cannot take the model's parameters ({error}): use another one, such as "
        "optax.adamw(1e-3)."
    )


def _merged(old: ArrayTree, new: ArrayTree) -> ArrayTree:
    """The new state merged into the old: a loss returns only what it changes, so frozen weights are missing."""
    return {**entries(old), **new} if isinstance(new, dict) else new


def _in_micro_batches(
    run: Callable[[TrainState, Batch], tuple[T, ArrayTree]], count: int, state: TrainState, batch: Batch
) -> tuple[T, ArrayTree]:
    """Runs `run` over `count` micro-batches of each device's examples, and returns the means of its results.

    run: (state, micro-batch) -> (means over the micro-batch, model_state).

    If the compiler placed the communication, it would communicate for each micro-batch, because it cannot see that the
    sum over devices can wait. So in that case each device sums its own first, as in the strategy shard_map.
    """
    devices, mesh = sharding_context.current().parts, jax.sharding.get_abstract_mesh()
    if count == 1:
        return run(state, batch)
    if devices == 1 or mesh.empty:  # one device, or a program that is already written for one device's examples
        return _accumulate(run, count, state, batch)
    (axis,) = mesh.axis_names

    def local(state: TrainState, batch: Batch) -> tuple[T, ArrayTree]:
        # Without the cast, a gradient would already be a sum over devices: see strategies/shard_map.py.
        state = jax.lax.pcast(state, (axis,), to="varying")
        state = dataclasses.replace(state, key=rng_keys.local_key(state.key, (axis,)))
        with sharding_context.over(axis=axis):
            return mean_over(axis, _accumulate(run, count, state, batch))

    replicated, split = PartitionSpec(), PartitionSpec(axis)
    return jax.shard_map(local, in_specs=(replicated, split), out_specs=(replicated, replicated))(state, batch)


def _accumulate(
    run: Callable[[TrainState, Batch], tuple[T, ArrayTree]], count: int, state: TrainState, batch: Batch
) -> tuple[T, ArrayTree]:
    """`run` of one micro-batch after the other: the means, summed in float32. The model's state passes through all.

    The loop is unrolled, because convolutions inside a compiled loop are several times slower on the CPU. A barrier
    delays each micro-batch until the previous one is summed, so that only one's activations are alive.
    """
    # Micro-batch i has examples i, i + count, ...: the leading axis of the reshape keeps the batch's sharding.
    strided = jax.tree.map(lambda x: x.reshape(x.shape[0] // count, count, *x.shape[1:]), batch)
    total: T | None = None
    changed: ArrayTree = {}
    for i in range(count):
        micro_batch = jax.tree.map(lambda x, i=i: jax.lax.index_in_dim(x, i, axis=1, keepdims=False), strided)
        if total is not None:
            micro_batch, total = _after(micro_batch, total)
        # Batch statistics pass from one micro-batch to the next, and each draws its own random numbers.
        model_state, key = _merged(state.model_state, changed), rng_keys.folded(state.key, i)
        means, new_state = run(dataclasses.replace(state, model_state=model_state, key=key), micro_batch)
        changed = _merged(changed, new_state)
        widened = jax.tree.map(lambda x: x.astype(jnp.promote_types(x.dtype, jnp.float32)), means)
        total = widened if total is None else jax.tree.map(jnp.add, total, widened)
    return jax.tree.map(lambda x, like: (x / count).astype(like.dtype), total, means), changed


def _after(micro_batch: Batch, total: T) -> tuple[Batch, T]:
    """Returns both unchanged; `micro_batch` becomes available only after `total`.

    Inside shard_map, all results of a barrier vary over every axis that any argument varies over. So only arrays that
    vary over the same axes as `micro_batch` pass through the barrier.
    """

    def axes_of(x: jax.Array) -> frozenset[str]:
        return jax.typeof(x).manual_axis_type.varying

    axes = frozenset().union(*(axes_of(x) for x in jax.tree.leaves(micro_batch)))
    leaves, tree = jax.tree.flatten(total)
    indices = [i for i, leaf in enumerate(leaves) if axes_of(leaf) == axes]
    micro_batch, passed = jax.lax.optimization_barrier((micro_batch, [leaves[i] for i in indices]))
    for i, leaf in zip(indices, passed, strict=True):
        leaves[i] = leaf
    return micro_batch, jax.tree.unflatten(tree, leaves)


def mean_over(axis: str | tuple[str, ...], tree: T) -> T:
    """Averages over a mesh axis, in shard_map or pmap. Integers (counters, keys) are equal and pass through pmax."""
    return jax.tree.map(
        lambda x: jax.lax.pmean(x, axis) if jnp.issubdtype(x.dtype, jnp.inexact) else jax.lax.pmax(x, axis), tree
    )
