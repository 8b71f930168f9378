# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""ZeRO: data parallelism whose devices share out the model state instead of each holding a copy.

Rajbhandari et al., arXiv:1910.02054. Stage 1 shares out the optimizer's state, stage 2 also the gradients; stage 3, the
parameters too, is parallel/fsdp.py. On the wire stages 1 and 2 are a reduce-scatter of the gradients and an all-gather
of the parameters, together what data parallelism's all-reduce is.

Written by `shard_map`, because under `jit` the compiler would choose between an all-reduce with a slice and a
reduce-scatter. Its types are off: they do not know that a gathered array is the same everywhere.
"""

from __future__ import annotations

import dataclasses
from functools import partial

import jax
from jax.sharding import PartitionSpec

from jaxbench.errors import Unsupported
from jaxbench.parallel import draws
from jaxbench.parallel.axes import mesh_of
from jaxbench.parallel.layout import Cut, Layout, canonical_avals, shared_out
from jaxbench.parallel.program import Program, TrainState, gradients, mean_over, update
from jaxbench.parallel.split import program
from jaxbench.workloads import spread
from jaxbench.workloads.base import Batch, Metrics, PyTree, TrainWorkload, Wire

AXIS = "data"


def build(workload: TrainWorkload, devices: list[jax.Device], *, stage: int) -> Program:
    """The Program of stage 1 or 2. Raises Unsupported under loss scaling, which must see all gradients at once."""
    if workload.loss_scale is not None:
        raise Unsupported(
            "--config.lever.precision=float16 scales the loss by what all gradients together look like, and under "
            f"zero{stage} no device sees them all: use bfloat16."
        )
    sizes = {AXIS: len(devices)}
    params = canonical_avals(workload).params
    whole = jax.tree.map(lambda aval: Cut(aval.shape), params)
    shards = jax.tree.map(lambda aval: shared_out(Cut(aval.shape), len(devices), AXIS), params)
    layout = Layout(workload, whole, shards)

    def mean_shards(grads: PyTree) -> PyTree:
        return jax.tree.map(lambda g, cut: cut.mean(g), grads, shards)

    def own_shards(params: PyTree) -> PyTree:
        return jax.tree.map(lambda x, cut: cut.own(x), params, shards)

    def local_step(state: TrainState, batch: Batch) -> tuple[TrainState, Metrics]:
        grads, model_state, metrics = local_gradients(state, batch)
        grads = grads if stage > 1 else mean_shards(grads)
        new = update(workload, dataclasses.replace(state, params=own_shards(state.params)), grads, model_state)
        return dataclasses.replace(new, params=jax.tree.map(lambda x, cut: cut.whole(x), new.params, shards)), metrics

    def local_gradients(state: TrainState, batch: Batch) -> tuple[PyTree, PyTree, Metrics]:
        """As this stage holds them while more are added: whole, of this device's examples, or a shard of the mean."""
        local = dataclasses.replace(state, key=draws.local_key(state.key, (AXIS,)))
        with spread.over(axis=AXIS):
            each = mean_shards if stage == 2 else _as_they_are
            grads, model_state, metrics = gradients(workload, local, batch, each=each)
        return grads, *mean_over(AXIS, (model_state, metrics))

    def held(state: TrainState, batch: Batch) -> PyTree:
        grads = local_gradients(state, batch)[0]
        return jax.tree.map(lambda g: g[None], grads) if stage == 1 else grads

    # Each device's own gradients, in stage 1: along an axis of devices.
    held_specs = PartitionSpec(AXIS) if stage == 1 else jax.tree.map(lambda cut: cut.spec, shards)
    form, mesh = partial(expected, workload, layout, shards, stage), mesh_of(devices, sizes)
    return program(workload, layout, mesh, sizes, local_step, form, held=(held, held_specs), typed=False)


def _as_they_are(grads: PyTree) -> PyTree:
    return grads


def expected(workload: TrainWorkload, layout: Layout, shards: PyTree, stage: int, global_batch: int) -> Wire:
    """The closed form, filling included."""
    del global_batch  # gradients are as large whatever the batch
    cuts: list[Cut] = jax.tree.leaves(shards)
    if max(cut.parts for cut in cuts) == 1:
        return {}
    passes, whole = 1 if stage == 1 else workload.micro_batches, sum(cut.numbers for cut in cuts)
    scattered = passes * sum(cut.numbers // cut.parts for cut in cuts)
    # XLA merges reductions of equal gradients, such as of the biases of two batch normalisations that are added.
    least = scattered - scattered // 20 if jax.tree.leaves(layout.canonical.model_state) else scattered
    return {"reduce-scatter": (least, scattered), "all-gather": (whole, whole)}
