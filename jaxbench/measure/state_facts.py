# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Device memory of the training state, in bytes on one device, and the facts that a step reports in its metrics."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np

from jaxbench.parallel import multihost
from jaxbench.parallel.program import Program, TrainState
from jaxbench.workloads import flops
from jaxbench.workloads.base import KEY, Batch, PyTree, TrainWorkload

# Metrics of a step that are facts about its execution: the share of a pipeline's (tick, stage) slots that were busy,
# the share of positions that exceeded the capacity of their expert, and the share of tokens that are not padding.
REPORTED = ("busy_share", "dropped", "real_share")


def measure(program: Program, state: TrainState, batch: Batch, *, gradients: bool) -> dict[str, float]:
    """Bytes on one device, from its shards. state_bytes: parameters and optimizer state.

    gradients: also measure held_gradient_bytes, the gradients as the strategy holds them between micro-batches. If
    they are laid out differently from the parameters, this compiles and runs a second program.
    """
    facts = {"state_bytes": held((state.params, state.opt_state), program)}
    if gradients:
        grads = state.params if program.gradients is None else program.gradients(state, batch)
        facts["held_gradient_bytes"] = held(grads, program)
    return facts


def of_workload(workload: TrainWorkload) -> dict[str, float]:
    """Facts about one example for throughput in tokens and for FLOP formulas; facts with the value 0 are left out."""
    facts = {"tokens": float(workload.tokens), "masked_flops": workload.masked_flops_per_example}
    found = {name: value for name, value in facts.items() if value}
    least = _least_work(workload)
    return found if least == 1 else {**found, "least_work": least}


def _least_work(workload: TrainWorkload) -> float:
    """The share of an update's FLOPs that every update does.

    It is below 1 if conditionals in the model or its optimizer may skip work, depending on the state.
    """

    def update(params: PyTree, model_state: PyTree, opt_state: PyTree, batch: Batch, key: jax.Array) -> Any:
        _, grads = jax.value_and_grad(workload.mean_loss, has_aux=True)(params, model_state, batch, key)
        return workload.optimizer.update(grads, opt_state, params)

    params, model_state = jax.eval_shape(workload.init, KEY)
    opt_state = jax.eval_shape(workload.optimizer.init, params)
    return flops.least_share(update, params, model_state, opt_state, workload.batch_avals(2), KEY)


def held(tree: PyTree, program: Program) -> float:
    """Bytes of all arrays on one device, without rank-0 counters. The device is this process's first in the mesh."""
    first = multihost.first_here(program.mesh.devices.flat)
    shards = [shard for leaf in jax.tree.leaves(tree) if leaf.ndim for shard in leaf.addressable_shards]
    return float(sum(shard.data.nbytes for shard in shards if shard.device == first))


def of_metrics(outputs: Any) -> dict[str, float]:
    """The REPORTED metrics among the outputs of a step, and its `first_loss`.

    {} for a part of a step that does not return metrics.
    """
    if not isinstance(outputs, dict):
        return {}
    loss = loss_of(outputs)
    return {name: float(np.mean(multihost.on_host(outputs[name]))) for name in REPORTED if name in outputs} | (
        {} if loss is None else {"first_loss": loss}
    )


def loss_of(outputs: Any) -> float | None:
    """The loss among the outputs of a step; None if there is none or it is not finite."""
    if not (isinstance(outputs, dict) and "loss" in outputs):
        return None
    loss = float(np.mean(multihost.on_host(outputs["loss"])))
    return loss if math.isfinite(loss) else None
