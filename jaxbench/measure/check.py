# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Correctness in the same row as speed: a program's updates must be those of one device on the same global batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench.parallel.program import Program, TrainState, create_state, gradients, jit_once, update
from jaxbench.records.schema import Verdict
from jaxbench.workloads.base import Batch, PyTree, TrainWorkload

STEPS = 3


@dataclass(frozen=True)
class Reference:
    """One device's answer: parameters (host arrays) before the first update and after the last."""

    start: PyTree
    end: PyTree


def initial_state(workload: TrainWorkload, key: jax.Array, *, device: jax.Device) -> TrainState:
    """The canonical state (host arrays) before the first update, made on one device without any strategy."""
    with jax.default_device(device):
        return jax.device_get(jit_once(lambda k: create_state(workload, k))(key))


def reference(
    workload: TrainWorkload, state: TrainState, batch: Batch, *, device: jax.Device, passes: int = 1
) -> Reference:
    """STEPS plain updates of `state` (host arrays) on one device: no mesh, no sharding, no strategy.

    The gradient of the whole batch is averaged over `passes` equal parts of it, so that a batch made for n devices fits
    one: for a loss that is a mean over examples this is the same gradient. A model with state (batch statistics) is not
    the same on parts, so it is always given the whole batch.
    """
    passes = 1 if jax.tree.leaves(state.model_state) else passes

    def step(state: TrainState, batch: Batch) -> TrainState:
        if passes == 1:
            grads, model_state, _ = gradients(workload, state, batch)
            return update(workload, state, grads, model_state)

        def add(total: PyTree, part: Batch) -> tuple[PyTree, None]:
            return jax.tree.map(jnp.add, total, gradients(workload, state, part)[0]), None

        parts = jax.tree.map(lambda x: x.reshape(passes, x.shape[0] // passes, *x.shape[1:]), batch)
        total, _ = jax.lax.scan(add, jax.tree.map(jnp.zeros_like, state.params), parts)
        return update(workload, state, jax.tree.map(lambda g: g / passes, total), state.model_state)

    start = state.params
    step = jit_once(step)
    with jax.default_device(device):
        state, batch = jax.device_put((state, batch), device)
        for _ in range(STEPS):
            state = step(state, batch)
    return Reference(start, jax.device_get(state.params))


def program_parameters(program: Program, call: Callable[..., Any], key: jax.Array, batch: Batch) -> PyTree:
    """Parameters (host arrays) after STEPS updates by the compiled step of a strategy."""
    with jax.set_mesh(program.mesh):
        state, placed = program.init(key), program.put(batch)
        for _ in range(STEPS):
            state, _ = call(state, placed)
        return jax.device_get(program.export(state).params)


def relative_l2(a: PyTree, b: PyTree) -> float:
    """||a - b|| / ||b|| over all leaves, in float64; nan if any value is not finite."""
    pairs = list(zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))
    difference = sum(float(np.sum((np.float64(x) - np.float64(y)) ** 2)) for x, y in pairs)
    norm = sum(float(np.sum(np.float64(y) ** 2)) for _, y in pairs)
    return float(np.sqrt(difference / norm)) if norm else float(np.sqrt(difference))


def judge(actual: PyTree, expected: Reference, workload: TrainWorkload) -> Verdict:
    """The verdict on a program's parameters (host arrays). Not-a-number never passes."""
    distance, moved = relative_l2(actual, expected.end), relative_l2(expected.end, expected.start)
    said = f"after {STEPS} updates, relative L2 to one device is {distance:.1e}"
    if not distance <= workload.tolerance:
        ok, reason = False, f"{said}, NOT within {workload.tolerance:.0e} ({workload.tolerance_reason})"
    elif not moved > 10 * workload.tolerance:
        # Parameters that hardly move agree whatever the strategy does: such a check proves nothing.
        ok, reason = False, f"{said}, but the updates moved the parameters by only {moved:.1e}: nothing is proven"
    else:
        ok, reason = True, f"{said}, within {workload.tolerance:.0e} ({workload.tolerance_reason})"
    finite = bool(np.isfinite(distance) and np.isfinite(moved))
    return Verdict(
        name="parameters",
        ok=ok and finite,
        reason=reason,
        value=distance if np.isfinite(distance) else None,
        limit=workload.tolerance,
    )
