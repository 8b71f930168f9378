# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What one device holds of a training state, and what a step says of itself besides the loss."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from jaxbench.parallel.program import Program, TrainState
from jaxbench.workloads.base import Batch, PyTree, TrainWorkload

# Metrics of a step that are facts about its execution: the share of a pipeline's pairs of tick and stage that did
# something, of positions that found no place with their expert, of tokens that are no filling.
SAID = ("busy_share", "dropped", "real_share")


def measure(program: Program, state: TrainState, batch: Batch, *, gradients: bool) -> dict[str, float]:
    """Bytes on the mesh's first device, from its shards. state_bytes: parameters and optimizer's state.

    gradients: measure held_gradient_bytes too, of the gradients as the strategy holds them while more are added. That
    compiles and runs a second program, if they do not lie as the parameters do.
    """
    facts = {"state_bytes": held((state.params, state.opt_state), program)}
    if gradients:
        grads = state.params if program.gradients is None else program.gradients(state, batch)
        facts["held_gradient_bytes"] = held(grads, program)
    return facts


def of_workload(workload: TrainWorkload) -> dict[str, float]:
    """What a throughput in tokens needs besides the step's time."""
    return {"tokens": float(workload.tokens)} if workload.tokens else {}


def held(tree: PyTree, program: Program) -> float:
    """Bytes of all arrays on the mesh's first device; rank-0 counters are left out."""
    first = program.mesh.devices.flat[0]
    shards = [shard for leaf in jax.tree.leaves(tree) if leaf.ndim for shard in leaf.addressable_shards]
    return float(sum(shard.data.nbytes for shard in shards if shard.device == first))


def of_metrics(outputs: Any) -> dict[str, float]:
    """outputs: of a step; what a part of one answers holds none."""
    if not isinstance(outputs, dict):
        return {}
    return {name: float(np.mean(outputs[name])) for name in SAID if name in outputs}
