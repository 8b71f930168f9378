# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Why a model's first step is not one to compare or to train with, as sentences: probes on one device, without any
strategy, made only where something was found wrong."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench import discovery
from jaxbench.parallel.program import TrainState, create_state, gradients, jit_once, update
from jaxbench.records.schema import Verdict
from jaxbench.workloads.base import Batch, PyTree, TrainWorkload

EXAMPLES = 16  # that the probes look at: what is amiss with a step mostly shows on a few


def explained(
    checks: tuple[Verdict, ...],
    outputs: Any,
    workload: TrainWorkload,
    *,
    key: jax.Array,
    batch: Batch,
    device: jax.Device,
) -> tuple[Verdict, ...]:
    """The verdicts on a step, the first of which says too what is amiss with the model where it does not hold.

    outputs: of the first step; a loss among them that is not finite is wrong whatever it agrees with.
    """
    first, *others = checks
    sound = _finite(outputs)
    if sound and (first.ok or first.unchecked):
        return checks
    reasons = said(workload, key, batch, device=device)
    if sound:
        reasons = [first.reason, *reasons]
    reason = "; ".join(reasons) or "the loss is not finite at the first step"
    return dataclasses.replace(first, ok=False, unchecked=False, reason=reason), *others


def _finite(outputs: Any) -> bool:
    """Whether the loss among a step's outputs is finite; True of outputs that have none."""
    return not isinstance(outputs, Mapping) or bool(np.all(np.isfinite(np.asarray(outputs.get("loss", 0.0)))))


def said(workload: TrainWorkload, key: jax.Array, batch: Batch, *, device: jax.Device) -> list[str]:
    """What is amiss with the model's first step on one device, as sentences without a full stop; [] for nothing known.

    Args:
      key: the run's, uint32 (2,).
      batch: of the check, of which at most EXAMPLES are looked at.
    """
    workload = dataclasses.replace(workload, micro_batches=1)  # so few examples may not divide
    batch = jax.device_put(jax.device_get(jax.tree.map(lambda x: x[:EXAMPLES], batch)), device)
    with jax.default_device(device):
        state = jit_once(lambda k: create_state(workload, k))(key)
        grads, model_state, metrics = jit_once(lambda s, b: gradients(workload, s, b))(state, batch)
        if not _finite(metrics):
            return [_not_finite(workload, state, batch, metrics)]
        if workload.loss_scale is None and (bad := _bad(grads)):  # a scaled one may overflow: that step is left out
            return [f"the loss is finite and the gradient of {_names(bad)} is not{_line(workload, state, batch)}"]
        if still := _still(workload, state, grads, model_state):
            return [still]
    return []


def _not_finite(workload: TrainWorkload, state: TrainState, batch: Batch, metrics: Any) -> str:
    """What of all that the loss is made of is not finite before it, or that the loss itself makes it so."""
    sources = ("the parameters", state.params), ("the model's state", state.model_state), ("the batch", batch)
    bad = [f"{what} {_names(found)}" for what, tree in sources if (found := _bad(tree))]
    if bad:
        return f"the loss is not finite at the first step, nor is what it is made of: {'; '.join(bad)}"
    others = [name for name in _bad(dict(metrics)) if name != "loss"]
    more = f", and so is the metric {_names(others)}" if others else ""
    return (
        f"the loss is not finite at the first step{more}: the parameters and the batch are, so the loss itself makes it"
        f"{_line(workload, state, batch)}"
    )


def _line(workload: TrainWorkload, state: TrainState, batch: Batch) -> str:
    """ ", in 'mine.py', line 12", found by doing the step again, operation by operation; "" if no
    line of a person's own makes it, or it is no NaN."""
    try:
        with jax.debug_nans(True), jax.disable_jit():
            gradients(workload, state, batch)
    except FloatingPointError as error:
        if (found := discovery.line_of(error)) is not None:
            return f", in '{found[0]}', line {found[1]}"
    return ""


def _still(workload: TrainWorkload, state: TrainState, grads: PyTree, model_state: PyTree) -> str:
    """What makes a step change no parameter; "" where one does change."""
    if not any(np.any(np.asarray(leaf)) for leaf in jax.tree.leaves(grads)):
        return "a step changes nothing: every gradient is 0, so the loss does not depend on the parameters"
    new = jit_once(lambda s, g, m: update(workload, s, g, m))(state, grads, model_state)
    pairs = zip(jax.tree.leaves(state.params), jax.tree.leaves(new.params), strict=True)
    if all(np.array_equal(a, b) for a, b in pairs):
        return (
            "a step changes nothing: the gradients are not 0 and the optimizer's updates are: is its learning rate 0?"
        )
    return ""


def _bad(tree: PyTree) -> list[str]:
    """The paths of what is not finite."""
    return [
        jax.tree_util.keystr(at, simple=True, separator="/")
        for at, leaf in jax.tree.leaves_with_path(tree)
        if jnp.issubdtype(leaf.dtype, jnp.inexact) and not bool(jnp.all(jnp.isfinite(leaf)))
    ]


def _names(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(f"'{name}'" for name in names[:3]) + more
