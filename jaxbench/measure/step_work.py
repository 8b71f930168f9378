# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Watches a few steps of a compiled program, one by one: which parameters they change, and whether the batch matters.

A step that skips its work, parameters that an optimizer never moves and a batch that nobody reads leave no trace in a
time. Arrays are compared by their bits. Nothing here is timed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import time
from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench.core.program import Call, Program
from jaxbench.core.schema import StepWork, Verdict
from jaxbench.core.trees import ArrayTree, entries
from jaxbench.core.workload import Batch
from jaxbench.measure.reference import MOST_STEPS
from jaxbench.parallel import multihost
from jaxbench.processes.group import members_of
from jaxbench.workloads.levers import is_frozen

STEPS = 8  # the period of a step that skips its work, or collects gradients, is mostly 2 or 4
SLOW_S = 20.0  # of all steps: then LEAST of them must do
LEAST = 4
FIELDS = 8  # arrays of a batch that are tried one by one
LARGE_BYTES = 2e9  # of a state: then its steps are not repeated with other batches

Shards = dict[str, list[np.ndarray]]  # host copies by path


def watch(
    program: Program,
    call: Call,
    key: jax.Array,
    batch_of: Callable[[int], Batch],
    work: StepWork,
    *,
    clock: Callable[[], float] = time.perf_counter,
) -> StepWork:
    """`work` with the parameters that change in the first steps of a fresh state.

    call: the compiled step, which may donate its state. key: of `program.init`. batch_of: number of a step -> the batch
    that it takes, on the devices. clock: seconds.
    """
    call, members = members_of(program.mesh).after_barrier(call), members_of(program.mesh)
    changed: set[str] = set()
    steps = changing = first = last = 0
    with program.context():
        state = program.init(key)
        frozen = _float_sizes(entries(state.model_state)["frozen"]) if is_frozen(state.model_state) else {}
        sizes = _float_sizes(state.params)
        start = before = _shards(state.params)
        begin = clock()
        # An optimizer may collect gradients for more than STEPS steps before it moves anything. That it does so again
        # tells it from a learning rate that begins at 0, and from a loss scale that overflows at first.
        while steps < STEPS or (steps < MOST_STEPS and (not changing or (first > 1 and steps < 2 * first))):
            state, _ = jax.block_until_ready(call(state, batch_of(steps)))
            after = _shards(state.params)
            here = [path for path, parts in after.items() if any(map(_differ, parts, before[path]))]
            moved = {path for paths in members.all_gather(here) for path in paths}  # each process has its own shards
            changed, steps, changing, before = changed | moved, steps + 1, changing + bool(moved), after
            if moved:
                first, last = first or steps, steps
            if members.broadcast(steps >= LEAST and clock() - begin > SLOW_S):
                break
    numbers = sum(x.size for shards in start.values() for x in shards)
    moved_numbers = sum(
        int(np.count_nonzero(x != y)) for path in start for x, y in zip(start[path], before[path], strict=True)
    )
    numbers, moved_numbers = (sum(each) for each in zip(*members.all_gather([numbers, moved_numbers]), strict=True))
    still, total = [path for path in sizes if path not in changed], sum(sizes.values())
    return dataclasses.replace(
        work,
        parameter_arrays=len(sizes),
        still_arrays=tuple(still),
        still_share=sum(sizes[path] for path in still) / total if total else None,
        moved_share=moved_numbers / numbers if numbers else None,
        frozen_arrays=len(frozen),
        frozen_share=sum(frozen.values()) / (total + sum(frozen.values())) if frozen else 0.0,
        steps=steps,
        changing_steps=changing,
        first_change=first,
        last_change=last,
    )


def _floats(tree: ArrayTree) -> dict[str, jax.Array]:
    """The arrays of floating-point numbers by path: counters and random keys are no parameters."""
    found = ((jax.tree_util.keystr(path, simple=True, separator="/"), x) for path, x in jax.tree.leaves_with_path(tree))
    return {path: x for path, x in found if x.size and jnp.issubdtype(x.dtype, jnp.inexact)}


def _float_sizes(tree: ArrayTree) -> dict[str, int]:
    return {path: x.size for path, x in _floats(tree).items()}


def _shards(tree: ArrayTree) -> Shards:
    """The parts of each array that this process has, each once."""
    return {
        # Copies: a CPU's step overwrites what it donates.
        path: [np.array(shard.data, copy=True) for shard in x.addressable_shards if shard.replica_id == 0]
        for path, x in _floats(tree).items()
    }


def _differ(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two arrays differ in any bit, so that NaN equals itself."""
    return one.tobytes() != other.tobytes()


def with_effect(
    program: Program, call: Call, key: jax.Array, batch: Mapping[str, jax.Array], work: StepWork
) -> StepWork:
    """`work` with the arrays of the batch that have an effect on one step of a fresh state.

    batch: on the devices, by path. Each array is replaced by other values of the same range. An array with one value,
    such as a mask of ones, has no such values and is not tried.
    """
    if work.reads_batch is False:
        return work
    others = {path: other for path, x in batch.items() if (other := _other(x)) is not None}
    with program.context():
        state = program.init(key)
        large = sum(x.nbytes for x in jax.tree.leaves(state)) > LARGE_BYTES
        del state
    if not others or large:
        return work
    call = members_of(program.mesh).after_barrier(call)

    def differs(changed: Mapping[str, jax.Array]) -> bool:
        return members_of(program.mesh).broadcast(_outcome(program, call, key, {**batch, **changed}) != plain)

    plain = _outcome(program, call, key, batch)
    if not differs(others):
        return dataclasses.replace(work, reads_batch=False, idle_fields=tuple(batch))
    tried = [path for path in others if path not in work.idle_fields][:FIELDS] if len(batch) > 1 else []
    idle = [path for path in tried if not differs({path: others[path]})]
    return dataclasses.replace(work, reads_batch=True, idle_fields=(*work.idle_fields, *idle))


def _other(x: jax.Array) -> jax.Array | None:
    """Other values of the same range, laid out like `x`; None if it has only one value."""
    host = multihost.on_host(x)
    if not host.size or jnp.issubdtype(host.dtype, jnp.complexfloating):
        return None
    # Mirrored, so that labels and indices stay legal; and turned, because sums over a batch do not see its order.
    low, high = host.min(), host.max()
    mirrored = ~host if host.dtype == bool else (high - (host - low)).astype(host.dtype)
    if host.ndim:
        mirrored = np.roll(mirrored, 1, axis=0)
    if jnp.issubdtype(host.dtype, jnp.inexact):
        mirrored = (mirrored * np.asarray(0.75, host.dtype)).astype(host.dtype)
    return None if np.array_equal(mirrored, host) else multihost.put(mirrored, x.sharding)


def _outcome(program: Program, call: Call, key: jax.Array, batch: Mapping[str, jax.Array]) -> str:
    """A digest of the state and the loss after one step of a fresh state."""
    with program.context():
        state, metrics = jax.block_until_ready(call(program.init(key), dict(batch)))
    # Other metrics may depend on what neither the loss nor a gradient reads.
    shown = metrics["loss"] if isinstance(metrics, dict) and "loss" in metrics else metrics
    digest = hashlib.blake2b()
    for x in jax.tree.leaves((state.params, state.model_state, state.opt_state, shown)):
        digest.update(np.ascontiguousarray(multihost.on_host(x)).tobytes())
    return digest.hexdigest()


def judge(work: StepWork) -> tuple[Verdict, ...]:
    """The verdict "batch": whether a step depends on its batch; () if that is unknown."""
    if work.reads_batch is None:
        return ()
    reason = "the new state or the loss depends on the batch"
    if not work.reads_batch:
        reason = "the step does not depend on its batch: other values of it change neither the new state nor the loss"
    return (Verdict(name="batch", ok=work.reads_batch, reason=reason),)
