# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How many bytes of the training state one device holds, and which facts a step reports besides the loss."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np

from jaxbench.parallel import multihost
from jaxbench.parallel.program import Program, TrainState
from jaxbench.workloads.base import Batch, PyTree, TrainWorkload

# Metrics of a step that are facts about its execution: the share of a pipeline's (tick, stage) slots that were busy, of
# positions that their expert had no capacity for, of tokens that are not padding.
REPORTED = ("busy_share", "dropped", "real_share")


def measure(program: Program, state: TrainState, batch: Batch, *, gradients: bool) -> dict[str, float]:
    """Bytes on one device, from its shards. state_bytes: parameters and optimizer state.

    gradients: also measure held_gradient_bytes, the gradients as the strategy holds them between micro-batches. Unless
    they are laid out as the parameters, this compiles and runs a second program.
    """
    facts = {"state_bytes": held((state.params, state.opt_state), program)}
    if gradients:
        grads = state.params if program.gradients is None else program.gradients(state, batch)
        facts["held_gradient_bytes"] = held(grads, program)
    return facts


def of_workload(workload: TrainWorkload) -> dict[str, float]:
    """What a throughput in tokens and other formulas of FLOPs need: numbers of one example that are not 0."""
    facts = {"tokens": float(workload.tokens), "masked_flops": workload.masked_flops_per_example}
    return {name: value for name, value in facts.items() if value}


def held(tree: PyTree, program: Program) -> float:
    """Bytes of all arrays on one device, the mesh's first of this process, without rank-0 counters."""
    first = multihost.first_here(program.mesh.devices.flat)
    shards = [shard for leaf in jax.tree.leaves(tree) if leaf.ndim for shard in leaf.addressable_shards]
    return float(sum(shard.data.nbytes for shard in shards if shard.device == first))


def of_metrics(outputs: Any) -> dict[str, float]:
    """The REPORTED metrics among the outputs of a step, and its `first_loss`; {} for a part of a step whose outputs are
    not metrics."""
    if not isinstance(outputs, dict):
        return {}
    loss = loss_of(outputs)
    return {name: float(np.mean(multihost.on_host(outputs[name]))) for name in REPORTED if name in outputs} | (
        {} if loss is None else {"first_loss": loss}
    )


def loss_of(outputs: Any) -> float | None:
    """The loss among the outputs of a step; None without a finite one."""
    if not (isinstance(outputs, dict) and "loss" in outputs):
        return None
    loss = float(np.mean(multihost.on_host(outputs["loss"])))
    return loss if math.isfinite(loss) else None
