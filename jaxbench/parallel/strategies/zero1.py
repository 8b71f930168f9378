# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""ZeRO stage 1: data parallelism in which devices shard the optimizer state instead of replicating it.

Rajbhandari et al., arXiv:1910.02054. Stage 1 shards the optimizer's state, and stage 2 also the gradients; stage 3,
which also shards the parameters, is strategies/fsdp.py. Stages 1 and 2 send a reduce-scatter of the gradients and an
all-gather of the parameters, which together send as much as the all-reduce of data parallelism. In stage 1 each device
adds up its own full gradients over micro-batches, and they are reduced once.

The step is written with `shard_map`, because under `jit` the compiler would choose between an all-reduce with a slice
and a reduce-scatter.
"""

from __future__ import annotations

import dataclasses
from functools import partial

import jax
from jax.sharding import PartitionSpec

from jaxbench.core.program import Program, TrainState
from jaxbench.core.trees import ArrayTree, Tree
from jaxbench.core.workload import Batch, CollectiveBounds, Scalars, TrainWorkload
from jaxbench.parallel.axes import mesh_of
from jaxbench.parallel.data_parallel import AXIS, on_device
from jaxbench.parallel.layout import Cut, Layout, canonical_avals, shared_out
from jaxbench.parallel.optimizer import GatheredUpdate, gathered_update, unused_gradients
from jaxbench.parallel.sharded_step import Step, program
from jaxbench.parallel.step import gradients, mean_over, update


def build_stage(workload: TrainWorkload, devices: list[jax.Device], *, stage: int) -> Program:
    """The Program of stage 1 or 2. Raises UserError for an optimizer that a step cannot call."""
    sizes = {AXIS: len(devices)}
    params = canonical_avals(workload).params
    whole = jax.tree.map(lambda aval: Cut(aval.shape), params)
    shards = jax.tree.map(lambda aval: shared_out(Cut(aval.shape), len(devices), AXIS), params)
    layout, mesh = Layout(workload, whole, shards), mesh_of(devices, sizes)
    gathered = gathered_update(workload, mesh, layout, Layout(workload, shards))
    updated = shards if gathered is None else _leaving(shards, gathered.gathered)

    def mean_shards(grads: ArrayTree) -> ArrayTree:
        return jax.tree.map(lambda g, cut: cut.mean(g), grads, shards)

    def whole_params(params: ArrayTree) -> ArrayTree:
        return jax.tree.map(lambda x, cut: cut.whole(x), params, updated)

    def shard_update(state: TrainState, grads: ArrayTree, model_state: ArrayTree) -> TrainState:
        own = jax.tree.map(lambda x, cut: cut.own(x), state.params, shards)
        new = update(workload, dataclasses.replace(state, params=own), grads, model_state)
        return dataclasses.replace(new, params=whole_params(new.params))

    def global_update(
        gathered: GatheredUpdate, state: TrainState, grads: ArrayTree, model_state: ArrayTree
    ) -> TrainState:
        new, specs = gathered.update(state, grads, model_state), jax.tree.map(lambda cut: cut.spec, updated)
        run = jax.shard_map(whole_params, mesh=mesh, in_specs=(specs,), out_specs=PartitionSpec(), check_vma=False)
        return dataclasses.replace(new, params=run(new.params))

    def mean_gradients(state: TrainState, batch: Batch) -> tuple[ArrayTree, ArrayTree, Scalars]:
        grads, model_state, metrics = held_gradients(state, batch)
        return grads if stage > 1 else mean_shards(grads), model_state, metrics

    def held_gradients(state: TrainState, batch: Batch) -> tuple[ArrayTree, ArrayTree, Scalars]:
        """The gradients as the stage holds them between micro-batches.

        Stage 1 holds whole gradients of this device's examples, stage 2 a shard of the mean gradients.
        """
        held = {"held": mean_shards} if stage == 2 else {}
        grads, model_state, metrics = on_device(gradients, workload, state, batch, **held)
        return grads, *mean_over(AXIS, (model_state, metrics))

    def held(state: TrainState, batch: Batch) -> ArrayTree:
        grads = held_gradients(state, batch)[0]
        return jax.tree.map(lambda g: g[None], grads) if stage == 1 else grads

    # In stage 1 each device has its own gradients, which get a leading device axis.
    specs = jax.tree.map(lambda cut: cut.spec, shards)
    held_specs = PartitionSpec(AXIS) if stage == 1 else specs
    bounds = partial(expected, workload, layout, shards, updated, stage)
    step = Step(mean_gradients, partial(global_update, gathered) if gathered else shard_update, specs, gathered)
    # Type checking is off, because it cannot know that a gathered array is equal on all devices.
    return program(workload, layout, mesh, sizes, step, bounds, held=(held, held_specs), typed=False)


def _leaving(shards: Tree[Cut], whole: frozenset[int]) -> Tree[Cut]:
    """The cuts, with the parameters of these indices left whole."""
    cuts, tree = jax.tree.flatten(shards)
    return jax.tree.unflatten(tree, [Cut(cut.shape) if index in whole else cut for index, cut in enumerate(cuts)])


def expected(
    workload: TrainWorkload, layout: Layout, shards: Tree[Cut], updated: Tree[Cut], stage: int, global_batch: int
) -> CollectiveBounds:
    """The expected communication, with padding. updated: the layout of the parameters after the update."""
    del global_batch  # the size of gradients does not depend on it
    cuts: list[Cut] = jax.tree.leaves(shards)
    if max(cut.parts for cut in cuts) == 1:
        return {}
    passes = 1 if stage == 1 else workload.micro_batches  # stage 2 scatters each micro-batch's gradients
    whole = sum(cut.numbers for cut in jax.tree.leaves(updated) if cut.parts > 1)
    parts = [passes * cut.numbers // cut.parts for cut in cuts]
    scattered, unused = sum(parts), unused_gradients(workload, layout.canonical)
    # XLA merges reductions of equal gradients, such as of the biases of two batch normalizations that are added.
    least = scattered - scattered // 20 if jax.tree.leaves(layout.canonical.model_state) else scattered
    least -= sum(part for index, part in enumerate(parts) if index in unused)
    return {"reduce-scatter": (least, scattered), "all-gather": (whole, whole)}


build = partial(build_stage, stage=1)
