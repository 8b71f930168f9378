# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What a workload asks to be communicated, found in its jaxpr: gradients that there are, scalars, gathered examples."""

from __future__ import annotations

import math
from typing import Any

import jax

from jaxbench.parallel.draws import PARTS
from jaxbench.workloads import examples, sharding_context, weighted
from jaxbench.workloads.adapters.pure import zeros
from jaxbench.workloads.base import KEY, Batch, PyTree, TrainWorkload
from jaxbench.workloads.jaxprs import equations, reached


def draws(workload: TrainWorkload) -> bool:
    """Whether the loss, or what it returns besides, is computed from its key."""
    params, model_state = jax.eval_shape(workload.init, KEY)
    traced = jax.make_jaxpr(lambda key, params, model_state, batch: workload.loss(params, model_state, batch, key))
    jaxpr = traced(KEY, params, model_state, workload.batch_avals(2)).jaxpr
    return any(reached(jaxpr, jaxpr.invars[:1]))


def without_gradient(workload: TrainWorkload) -> PyTree:
    """A params-shaped tree of whether the loss of examples does not depend on a parameter, so that its gradient is the
    same on all devices, and zero but for what the loss says of parameters alone."""
    params, model_state = jax.eval_shape(workload.init, KEY)

    def gradient(batch: Batch, params: PyTree, key: jax.Array) -> PyTree:
        return jax.grad(workload.mean_loss, has_aux=True)(params, zeros(model_state), batch, key)[0]

    batch = workload.batch_avals(2)
    jaxpr = jax.make_jaxpr(gradient)(batch, params, KEY).jaxpr
    found = reached(jaxpr, jaxpr.invars[: len(jax.tree.leaves(batch))])
    return jax.tree.unflatten(jax.tree.structure(params), [not hit for hit in found])


def scalars_of_examples(workload: TrainWorkload) -> int:
    """How many of the scalars that a loss gives differ between devices with different examples. Another, such as a
    constant, need not be summed, and the compiler may see that."""
    params, model_state = jax.eval_shape(workload.init, KEY)

    def scalars(batch: PyTree, params: PyTree, key: Any) -> PyTree:
        loss, (_, metrics) = workload.mean_loss(params, zeros(model_state), batch, key)
        return {"loss": loss, **metrics}

    batch = workload.batch_avals(2)
    jaxpr = jax.make_jaxpr(scalars)(batch, params, KEY).jaxpr
    found = reached(jaxpr, jaxpr.invars[: len(jax.tree.leaves(batch))])
    return len({id(out) for out, hit in zip(jaxpr.outvars, found, strict=True) if hit})


def weights(workload: TrainWorkload) -> int:
    """How many weighted means a loss gives: the weight of each travels too."""
    params, model_state = jax.eval_shape(workload.init, KEY)
    loss, (_, metrics) = jax.eval_shape(workload.loss, params, model_state, workload.batch_avals(2), KEY)
    return sum(map(weighted.is_weighted, (loss, *metrics.values())))


def gathered(workload: TrainWorkload, examples_given: int) -> int:
    """How many numbers a loss asks to be gathered from a device that has so many examples."""
    with examples.recorded_sizes() as sizes:
        _loss_of_part(workload, examples_given)
    return sum(sizes)


def asks_others(workload: TrainWorkload) -> bool:
    """Whether the loss of a part asks for anything of the other parts."""
    return any(PARTS in str(equation.params) for equation in equations(_loss_of_part(workload, 2)))


def _loss_of_part(workload: TrainWorkload, examples_given: int) -> Any:
    """The jaxpr of the loss where other devices hold other parts of the batch."""
    params, model_state = jax.eval_shape(workload.init, KEY)

    def loss(params: PyTree, batch: Batch, key: jax.Array) -> Any:
        with sharding_context.over(axis=PARTS):
            return workload.loss(params, zeros(model_state), batch, key)[0]

    batch = workload.batch_avals(examples_given)
    return jax.make_jaxpr(loss, axis_env=[(PARTS, 2)])(params, batch, KEY).jaxpr


def named(params: PyTree, numbers: float) -> str:
    """The path of the one parameter that has so many numbers, "" if there is none or are several."""
    sizes = [(jax.tree_util.keystr(at, simple=True, separator="/"), math.prod(leaf.shape)) for at, leaf in
             jax.tree.leaves_with_path(params)]  # fmt: skip
    fits = [name for name, size in sizes if size and numbers == size]
    return fits[0] if len(fits) == 1 else ""
