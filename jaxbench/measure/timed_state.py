# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Checks the state that a round leaves behind: the timed steps must be training steps too.

The checks before the first round show that a program's first updates are correct. They do not show that the timed
steps do the same work.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench.measure import check, memory, state_facts
from jaxbench.measure.oracle import Reference, TrainedState, relative_l2, trained
from jaxbench.parallel import multihost
from jaxbench.parallel.program import Program, TrainState, jit_once
from jaxbench.records.schema import Verdict
from jaxbench.workloads.base import Batch, PyTree, TrainWorkload

UPDATE, PART = "timed update", "timed part"
Again = Callable[[Reference, TrainState, int], TrainedState]


def judge(state: TrainState, steps: int) -> tuple[Verdict, ...]:
    """Whether the parameters are finite and the step counter is `steps`, on every device.

    Compiles one small program for the shapes of a device's parameters, outside the timed region.
    """
    return _finite(state.params), judge_steps(state, steps)


def _finite(params: PyTree) -> Verdict:
    """The verdict on non-finite parameters. Each device counts in its own shards, so no device waits for another."""
    bad: dict[str, int] = {}
    shards: dict[Any, dict[str, jax.Array]] = {}
    for path, leaf in jax.tree.leaves_with_path(params):
        if jnp.issubdtype(leaf.dtype, jnp.inexact):
            for shard in leaf.addressable_shards:
                if shard.replica_id == 0:
                    shards.setdefault(shard.device, {})[_name(path)] = shard.data
    for held in shards.values():
        for name, count in jax.device_get(_not_finite()(held)).items():
            bad[name] = bad.get(name, 0) + int(count)
    wrong = {name: count for name, count in bad.items() if count}
    reason = "every parameter is finite after the timed steps"
    if wrong:
        first, count = next(iter(wrong.items()))
        reason = f"after the timed steps {count:,} values of the parameter '{first}' are NOT finite"
        reason += f", and {len(wrong) - 1} more parameters" if len(wrong) > 1 else ""
    return Verdict(name="finite", ok=not wrong, reason=reason, value=sum(wrong.values()), limit=0)


@functools.cache
def _not_finite() -> Callable[[dict[str, jax.Array]], dict[str, jax.Array]]:
    return jit_once(lambda arrays: {name: jnp.sum(~jnp.isfinite(x)) for name, x in arrays.items()})


def counted(state: TrainState) -> int:
    """The step counter of the state on the first device: the number of updates that it has counted."""
    return int(np.ravel(state.step.addressable_shards[0].data)[0])


def judge_steps(state: TrainState, steps: int) -> Verdict:
    """Whether the step counter of each device is `steps`."""
    found = {int(number) for shard in state.step.addressable_shards for number in np.ravel(shard.data)}
    wrong = max(abs(number - steps) for number in found)
    counted = " and ".join(map(str, sorted(found)))
    reason = f"the state counted {counted} updates in {steps} steps" + (", NOT one for each" if wrong else "")
    return Verdict(name="steps", ok=not wrong, reason=reason, value=wrong, limit=0)


def judge_update(
    program: Program,
    call: Callable[..., Any],
    state: TrainState,
    batch: Batch,
    *,
    key: jax.Array,
    reference: Reference,
    workload: TrainWorkload,
    platform: str,
    again: Again,
) -> tuple[Verdict, float | None]:
    """(the verdict on one more update of the timed state, the loss before that update). Donates the state.

    The update must equal one device's update of the same state. A model that has learnt its batch hardly moves, and
    then any update agrees. If one update therefore proves nothing, the program repeats the updates of the reference
    from its first state, with the step counter set to the timed steps.

    batch: canonical. again: (reference, state, updates) -> a second reference's result, for `check.judge`.
    """

    def judged(state: TrainState, updates: int) -> tuple[Verdict, float | None]:
        before, actual, loss = _updated(program, call, state, batch, updates)
        memory.give_back()
        expected = reference.of(before, batch, updates)

        def rounding() -> float:
            return relative_l2(again(expected, before, updates).params, expected.end.params)

        verdict = check.judge(actual, expected, workload, platform=platform, rounding=rounding, updates=updates)
        return verdict, loss

    timed = counted(state)
    (verdict, loss), after = judged(state, 1), f"from the state after {timed} timed steps"
    unmoved = not verdict.ok and verdict.value is not None and verdict.value <= (verdict.limit or 0)
    if program.members.broadcast(unmoved):
        verdict, _ = judged(_late(program, key, timed), reference.count)
        after = f"from the first state as step {timed}, because the timed one hardly moves"
    return dataclasses.replace(verdict, name=UPDATE, reason=f"{after}: {verdict.reason}"), loss


def judge_part(
    program: Program, call: Callable[..., Any], state: TrainState, batch: Batch, expected: check.ExpectedPart
) -> Verdict:
    """Whether one more call of a part of a step, from the timed state, computes what one device computes.

    Donates the state. Such a part updates nothing, so the timed state must still equal the first one, and this call
    does the same work as the timed calls.
    """
    verdict = check.judge_part(program, call, state, batch, expected)
    return dataclasses.replace(verdict, name=PART, reason=f"from the timed state: {verdict.reason}")


def _updated(
    program: Program, call: Callable[..., Any], state: TrainState, batch: Batch, updates: int
) -> tuple[TrainState, TrainedState, float | None]:
    """(the canonical state before the updates, the state after them, the loss of the first). Donates `state`."""
    call = program.members.after_barrier(call)
    with jax.set_mesh(program.mesh):
        before, placed = _copied(program.export(state)), program.put(batch)
        state, first = jax.block_until_ready(call(state, placed))
        for _ in range(updates - 1):
            state, _ = jax.block_until_ready(call(state, placed))
        return before, trained(program.export(state)), state_facts.loss_of(first)


def _late(program: Program, key: jax.Array, step: int) -> TrainState:
    """The first state, with its step counter set to `step`."""
    with jax.set_mesh(program.mesh):
        first = program.init(key)
        counted = multihost.put(np.full(first.step.shape, step, first.step.dtype), first.step.sharding)
    return dataclasses.replace(first, step=counted)


def _copied(state: TrainState) -> TrainState:
    """Host arrays that share no memory with the devices: the next step overwrites the state."""
    return jax.tree.map(lambda x: np.array(jax.device_get(x), copy=True), state)


def _name(path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator="/")
