# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How much of a difference to one device is only rounding.

`rerun` computes the reference with another program for the same formulas, and `perturbed` with the same program from
parameters that round otherwise. `reordered` has other orders of the sums over examples.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench.core.program import TrainState
from jaxbench.core.workload import KEY, Batch, TrainWorkload
from jaxbench.errors import present
from jaxbench.measure.reference import BatchLayout, Reference, TrainedState, Updates, initial_state, relative_l2
from jaxbench.parallel.step import jit_once
from jaxbench.workloads import flops

REORDERED = 2  # orders: in one of them, an array of one number may round the same way by chance
SAME_LOSS = 0.02  # share of the updates: an order that changes more changes the loss
PERTURBED = 3  # runs: in one of them, a parameter of one number may round the same way by chance


def rerun(
    expected: Reference,
    workload: TrainWorkload,
    key: jax.Array,
    batch: Batch,
    *,
    device: jax.Device,
    layout: BatchLayout,
    platform: str = "cpu",
    state: TrainState | None = None,
    count: int | None = None,
) -> TrainedState:
    """One device again, with another program for the same formulas. It differs from `expected` only by rounding.

    On a CPU the other program is compiled with all optimizations, or with none if the first reference used some. On
    other platforms every program has all optimizations, so the examples are reversed, which changes the order of sums.
    A model that draws random numbers keeps the order, because each example must keep its draws.

    A large model on large inputs amplifies rounding: at a near-tie of a ReLU or a maximum, the last bit decides which
    way a gradient goes. A strategy is not at fault for a difference that one device shows too.

    state: before the `count` updates (host arrays); None: the initial state. count: None: as many as for `expected`.
    """
    count = count or expected.count
    state = initial_state(workload, key, device=device) if state is None else state
    in_reverse = platform != "cpu" and not layout.uses_key
    batch = jax.tree.map(lambda x: x[::-1], batch) if in_reverse else batch
    first_was_unoptimized = expected.updates is None or expected.updates.jit is jit_once
    jit = jax.jit if first_was_unoptimized else jit_once
    apart = 0 if expected.updates is None else expected.updates.apart
    return Updates(workload, device, layout=layout, jit=jit, apart=apart)(state, batch, count)


def rounding(workload: TrainWorkload, platform: str) -> float:
    """`flops.rounding` of the workload's loss."""
    params, model_state = jax.eval_shape(workload.init, KEY)
    jaxpr = jax.make_jaxpr(workload.mean_loss)(params, model_state, workload.batch_avals(workload.least), KEY).jaxpr
    return flops.rounding(jaxpr, platform)


def rounded_otherwise(x: np.ndarray, random: np.random.Generator, by: float = 0.0) -> np.ndarray:
    """Numbers, each changed by the fraction `by`, but at least in its last bit. Integers stay as they are."""
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return x
    by = max(by, float(jnp.finfo(x.dtype).eps))
    # Not one sign for all: a common factor leaves a scale-invariant layer unchanged.
    return np.asarray(x * (1 + by * random.choice([-1.0, 1.0], x.shape))).astype(x.dtype)


def perturbed(expected: Reference, state: TrainState, batch: Batch, *, by: float = 0.0) -> Iterator[TrainedState]:
    """PERTURBED results of one device with the same programs, and initial parameters changed at random by one rounding.

    If that changes the update of a parameter by as much as the update itself, the update consists of rounding.
    state: the initial state. by: `rounding` of the workload, because a step in bfloat16 does not see the last bit of
    float32.
    """
    updates = present(expected.updates)
    for seed in range(PERTURBED):
        random = np.random.default_rng(seed)
        params = jax.tree.map(lambda x, random=random: rounded_otherwise(np.asarray(x), random, by), state.params)
        result = updates(dataclasses.replace(state, params=params), batch, expected.count)

        def moved(end: np.ndarray, start: np.ndarray, changed: np.ndarray) -> np.ndarray:
            # Only the update counts, which may be smaller than the change of its start.
            wide = np.result_type(end.dtype, np.float64)
            return (end.astype(wide) - changed.astype(wide) + start.astype(wide)).astype(end.dtype)

        yield dataclasses.replace(result, params=jax.tree.map(moved, result.params, state.params, params))


def reordered(expected: Reference, state: TrainState, batch: Batch, *, layout: BatchLayout) -> Iterator[TrainedState]:
    """Results of one device with the same programs, and the examples in other orders.

    A gradient that is zero except for rounding, such as that of a bias before a normalization, consists of what its sum
    over examples rounds away. In 16 bits that depends on the order far more than on the last bits of the parameters.
    Orders that change more than rounding are left out, such as that of a loss of pairs, or of examples in another part
    with statistics of its own. There are none if the examples draw random numbers.
    """
    updates = present(expected.updates)
    examples, moved = len(jax.tree.leaves(batch)[0]), relative_l2(expected.start, expected.end.params)
    random = np.random.default_rng(0)
    for parts in () if layout.uses_key or examples % layout.parts else dict.fromkeys((1, layout.parts)):
        for _ in range(REORDERED):
            order = np.concatenate([random.permutation(part) for part in np.arange(examples).reshape(parts, -1)])
            result = updates(state, jax.tree.map(lambda x, order=order: x[order], batch), expected.count)
            if not relative_l2(result.params, expected.end.params) <= SAME_LOSS * moved:
                break
            yield result
