# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Gradient traffic, scalars and gathered examples that a workload must communicate, found in its jaxpr."""

from __future__ import annotations

import math
from typing import Any

import jax

from jaxbench.parallel.draws import PARTS
from jaxbench.workloads import sharding_context, weighted
from jaxbench.workloads.adapters.pure import zeros
from jaxbench.workloads.base import KEY, Batch, PyTree, TrainWorkload
from jaxbench.workloads.jaxprs import equations, numbered, reached


def draws(workload: TrainWorkload) -> bool:
    """Whether the loss, or anything else that the loss function returns, depends on its random key."""
    params, model_state = jax.eval_shape(workload.init, KEY)
    traced = jax.make_jaxpr(lambda key, params, model_state, batch: workload.loss(params, model_state, batch, key))
    jaxpr = traced(KEY, params, model_state, workload.batch_avals(2)).jaxpr
    return any(reached(jaxpr, jaxpr.invars[:1]))


def without_gradient(workload: TrainWorkload) -> PyTree:
    """A tree shaped like the parameters: True if no example's loss depends on the parameter.

    Its gradient is then the same on all devices, and zero unless the loss has a term of parameters alone.
    """
    params, model_state = jax.eval_shape(workload.init, KEY)

    def gradient(batch: Batch, params: PyTree, key: jax.Array) -> PyTree:
        return jax.grad(workload.mean_loss, has_aux=True)(params, zeros(model_state), batch, key)[0]

    batch = workload.batch_avals(2)
    jaxpr = jax.make_jaxpr(gradient)(batch, params, KEY).jaxpr
    hits = reached(jaxpr, jaxpr.invars[: len(jax.tree.leaves(batch))])
    return jax.tree.unflatten(jax.tree.structure(params), [not hit for hit in hits])


def equal_gradients(workload: TrainWorkload) -> int:
    """The number of gradient elements that repeat another gradient. A compiler may reduce both as one.

    Example: the results of two normalizations are added, so the gradients of their biases are equal.
    """
    params, model_state = jax.eval_shape(workload.init, KEY)

    def gradient(params: PyTree, batch: Batch, key: jax.Array) -> PyTree:
        return jax.grad(workload.mean_loss, has_aux=True)(params, zeros(model_state), batch, key)[0]

    jaxpr = jax.make_jaxpr(gradient)(params, workload.batch_avals(2), KEY).jaxpr
    values = numbered(jaxpr)
    first = {value: at for at, value in reversed([*enumerate(values)])}
    leaves = jax.tree.leaves(params)
    return sum(leaves[at].size for at, value in enumerate(values) if first[value] != at)


def scalars_of_examples(workload: TrainWorkload) -> int:
    """The number of a loss's scalars that differ between devices with different examples.

    The compiler may see that the others, such as constants, need not be summed.
    """
    params, model_state = jax.eval_shape(workload.init, KEY)

    def scalars(batch: PyTree, params: PyTree, key: Any) -> PyTree:
        loss, (_, metrics) = workload.mean_loss(params, zeros(model_state), batch, key)
        return {"loss": loss, **metrics}

    batch = workload.batch_avals(2)
    jaxpr = jax.make_jaxpr(scalars)(batch, params, KEY).jaxpr
    hits = reached(jaxpr, jaxpr.invars[: len(jax.tree.leaves(batch))])
    return len({id(out) for out, hit in zip(jaxpr.outvars, hits, strict=True) if hit})


def weights(workload: TrainWorkload) -> int:
    """The number of weighted means that a loss returns; the weight of each travels too."""
    params, model_state = jax.eval_shape(workload.init, KEY)
    loss, (_, metrics) = jax.eval_shape(workload.loss, params, model_state, workload.batch_avals(2), KEY)
    return sum(map(weighted.is_weighted, (loss, *metrics.values())))


def gathered(workload: TrainWorkload, examples_given: int) -> int:
    """The number of elements that a loss gathers from a device with `examples_given` examples."""
    with sharding_context.recorded_sizes() as sizes:
        _loss_of_part(workload, examples_given)
    return sum(sizes)


def asks_others(workload: TrainWorkload) -> bool:
    """Whether the loss of one part of the batch communicates with the other parts."""
    return any(PARTS in str(equation.params) for equation in equations(_loss_of_part(workload, 2)))


def _loss_of_part(workload: TrainWorkload, examples_given: int) -> Any:
    """The jaxpr of the loss when other devices hold other parts of the batch."""
    params, model_state = jax.eval_shape(workload.init, KEY)

    def loss(params: PyTree, batch: Batch, key: jax.Array) -> Any:
        with sharding_context.over(axis=PARTS):
            return workload.loss(params, zeros(model_state), batch, key)[0]

    batch = workload.batch_avals(examples_given)
    return jax.make_jaxpr(loss, axis_env=[(PARTS, 2)])(params, batch, KEY).jaxpr


def named(params: PyTree, numbers: float) -> str:
    """The path of the only parameter with `numbers` elements; "" if there is none, or more than one."""
    leaves = jax.tree.leaves_with_path(params)
    matches = [path for path, leaf in leaves if 0 < math.prod(leaf.shape) == numbers]
    return jax.tree_util.keystr(matches[0], simple=True, separator="/") if len(matches) == 1 else ""
