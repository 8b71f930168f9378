# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Diagnoses a model after its first step failed a check: reruns the step on one device, without any strategy, and
describes the fault in sentences."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench import discovery
from jaxbench.core.program import TrainState
from jaxbench.core.schema import Verdict
from jaxbench.core.trees import ArrayTree
from jaxbench.core.weighted import WeightedMean
from jaxbench.core.workload import Batch, Mean, Metrics, Scalars, TrainWorkload
from jaxbench.errors import quoted
from jaxbench.measure import reference
from jaxbench.parallel import multihost
from jaxbench.parallel.step import create_state, gradients, jit_once, update

# The faults of a first step.
FAULTS = {
    "gradient": "the loss is finite, but the gradient of {names} is not{line}",
    "inputs": "the loss is not finite at the first step, because its inputs are not: {names}",
    "loss": "the loss is not finite at the first step{more}, although the parameters and the batch are: the fault is "
    "in the loss function{line}",
    "zero": "a step changes nothing: every gradient is 0, so the loss does not depend on the parameters",
    "unchanged": "a step changes nothing: gradients are not 0 but the optimizer's updates are: is its learning rate 0?",
    "not linear": "the backward pass is not linear: for {factor} times the loss the gradient is {distance:.1e} "
    "(relative) from {factor} times the gradient, as if it clips, so devices that have a part of the batch each cannot "
    "give the gradient of the whole batch: use --config.strategy=jit_auto",
}
EXAMPLES = 16  # enough for the probes: most faults of a step show on a few examples
FACTOR, NEARLY = 8, 1e-3  # a power of two, which does not change rounding; relative error of the gradient


def diagnosed(
    checks: tuple[Verdict, ...],
    outputs: ArrayTree,
    workload: TrainWorkload,
    *,
    key: jax.Array,
    batch: Batch,
    device: jax.Device,
) -> tuple[Verdict, ...]:
    """The verdicts on a step. If the first verdict failed, its reason also says what is wrong with the model.

    outputs: of the first step. A loss that is not finite fails, even if it agrees with one device. key: the run's,
    uint32 (2,). batch: canonical. device: where the diagnosis runs.
    """
    first, *others = checks
    is_finite = finite(outputs)
    if is_finite and (first.ok or (first.unchecked and first.value is None)):  # there was nothing to compare with
        return checks
    reasons = diagnosis(workload, key, batch, device=device)
    if is_finite and not reasons:
        return checks
    if is_finite and " is nan" not in first.reason:  # a distance that is no number says less than its reason
        reasons = [first.reason, *reasons]
    reason = "; ".join(reasons) or "the loss is not finite at the first step"
    return dataclasses.replace(first, ok=False, unchecked=False, reason=reason), *others


def finite(outputs: ArrayTree) -> bool:
    """Whether the loss among a step's outputs is finite; True without a loss."""
    return not isinstance(outputs, Mapping) or bool(np.all(np.isfinite(multihost.on_host(outputs.get("loss", 0.0)))))


def diagnosis(workload: TrainWorkload, key: jax.Array, batch: Batch, *, device: jax.Device) -> list[str]:
    """The faults of the model's first step on one device, as sentences without a full stop; [] if there are none.

    Args:
      key: the run's, uint32 (2,).
      batch: of the check; the first EXAMPLES are used, or all for a model that cannot take just any number.
    """
    workload = dataclasses.replace(workload, micro_batches=1)  # EXAMPLES may not divide into micro-batches
    # Through the host, because the batch may lie on other devices.
    some = EXAMPLES if workload.least == 1 else None
    batch = jax.device_put(jax.device_get(jax.tree.map(lambda x: x[:some], batch)), device)
    with jax.default_device(device):
        state = jit_once(lambda k: create_state(workload, k))(key)
        grads, model_state, metrics = jit_once(lambda s, b: gradients(workload, s, b))(state, batch)
        if not finite(metrics):
            return [_not_finite(workload, state, batch, metrics)]
        if workload.loss_scale is None and (bad := _bad(grads)):  # a scaled loss may overflow: its step is skipped
            return [FAULTS["gradient"].format(names=quoted(bad), line=_line(workload, state, batch))]
        more = _unchanged(workload, state, grads, model_state) or _not_linear(workload, state, batch, grads)
    return [more] if more else []


def _not_finite(workload: TrainWorkload, state: TrainState, batch: Batch, metrics: Scalars) -> str:
    """The inputs of the loss that are not finite. If all are finite, the line that makes the loss non-finite."""
    sources = ("the parameters", state.params), ("the model's state", state.model_state), ("the batch", batch)
    bad = [f"{what} {quoted(paths)}" for what, tree in sources if (paths := _bad(tree))]
    if bad:
        return FAULTS["inputs"].format(names="; ".join(bad))
    others = [name for name in _bad(dict(metrics)) if name != "loss"]
    more = f", nor is the metric {quoted(others)}" if others else ""
    return FAULTS["loss"].format(more=more, line=_line(workload, state, batch))


def _line(workload: TrainWorkload, state: TrainState, batch: Batch) -> str:
    """ ", in 'mine.py', line 12", found by repeating the step one operation at a time; "" if the fault is not in the
    user's own code, or the value is not a NaN."""
    try:
        # Without jit the error is raised by the operation that makes the first NaN, with the user's line on its stack.
        with jax.debug_nans(True), jax.disable_jit():
            gradients(workload, state, batch)
    except FloatingPointError as error:
        if (line := discovery.line_of(error)) is not None:
            return f", in '{line[0]}', line {line[1]}"
    return ""


def _unchanged(workload: TrainWorkload, state: TrainState, grads: ArrayTree, model_state: ArrayTree) -> str:
    """Why a step changes no parameter; "" if it changes one."""
    if not any(np.any(np.asarray(leaf)) for leaf in jax.tree.leaves(grads)):
        return FAULTS["zero"]
    new = jit_once(lambda s, g, m: update(workload, s, g, m))(state, grads, model_state)
    pairs = zip(jax.tree.leaves(state.params), jax.tree.leaves(new.params), strict=True)
    if all(np.array_equal(a, b) for a, b in pairs) and not reference.collects(state, new):
        return FAULTS["unchanged"]
    return ""


def _not_linear(workload: TrainWorkload, state: TrainState, batch: Batch, grads: ArrayTree) -> str:
    """A sentence if the gradient of FACTOR times the loss is not FACTOR times the gradient; otherwise "".

    On n devices the backward pass starts from n times as much, because each device averages its own examples.
    """

    def loss(
        params: ArrayTree, model_state: ArrayTree, batch: Batch, key: jax.Array
    ) -> tuple[Mean, tuple[ArrayTree, Metrics]]:
        value, about = workload.loss(params, model_state, batch, key)
        if isinstance(value, WeightedMean):
            return WeightedMean(FACTOR * value.total, value.weight), about
        return FACTOR * value, about

    scaled = dataclasses.replace(workload, loss=loss)
    larger = jit_once(lambda s, b: gradients(scaled, s, b)[0])(state, batch)
    distance = reference.relative_l2(jax.device_get(larger), jax.device_get(jax.tree.map(lambda g: FACTOR * g, grads)))
    if not distance > NEARLY:
        return ""
    return FAULTS["not linear"].format(factor=FACTOR, distance=distance)


def _bad(tree: ArrayTree) -> list[str]:
    """The paths of the arrays that are not finite."""
    return [
        jax.tree_util.keystr(path, simple=True, separator="/")
        for path, leaf in jax.tree.leaves_with_path(tree)
        if jnp.issubdtype(leaf.dtype, jnp.inexact) and not bool(jnp.all(jnp.isfinite(leaf)))
    ]
