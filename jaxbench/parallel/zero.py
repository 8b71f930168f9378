# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""ZeRO: data parallelism whose devices share out the model state instead of each holding a copy.

Rajbhandari et al., arXiv:1910.02054. Stage 1 shares out the optimizer's state, stage 2 also the gradients; stage 3, the
parameters too, is parallel/fsdp.py. On the wire stages 1 and 2 are a reduce-scatter of the gradients and an all-gather
of the parameters, together what data parallelism's all-reduce is.

Written by `shard_map`, because under `jit` the compiler would choose between an all-reduce with a slice and a
reduce-scatter. Its types are off (``check_vma=False``): they do not know that a gathered array is the same everywhere.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from jaxbench.errors import UserError
from jaxbench.machine.mesh import data_mesh
from jaxbench.parallel import flat
from jaxbench.parallel.flat import WIDENED
from jaxbench.parallel.program import Program, TrainState, create_state, gradients, jit_once, mean_over, update
from jaxbench.workloads import spread
from jaxbench.workloads.base import Batch, Metrics, PyTree, TrainWorkload

AXIS = "data"
WHOLE, SPLIT = PartitionSpec(), PartitionSpec(AXIS)


def build(workload: TrainWorkload, devices: list[jax.Device], *, stage: int) -> Program:
    """The Program of stage 1 or 2. Raises UserError under loss scaling, which must see all gradients at once."""
    if workload.loss_scale is not None:
        raise UserError(
            "--config.lever.precision=float16 scales the loss by what all gradients together look like, and under "
            f"zero{stage} no device sees them all: use bfloat16."
        )
    mesh = data_mesh(devices, AxisType.Auto)
    layout = _Layout(workload, devices, stage)

    def local_step(state: TrainState, batch: Batch) -> tuple[TrainState, Metrics]:
        grads, model_state, metrics = local_gradients(state, batch)
        grads = grads if stage > 1 else _mean_shards(grads)
        shards = jax.tree.map(partial(flat.own_shard, axis=AXIS), state.params)
        new = update(workload, dataclasses.replace(state, params=shards), grads, model_state)
        return dataclasses.replace(new, params=layout.gathered(new.params)), metrics

    def local_gradients(state: TrainState, batch: Batch) -> tuple[PyTree, PyTree, Metrics]:
        """As this stage holds them while more are added: whole, of this device's examples, or a shard of the mean."""
        local = dataclasses.replace(state, key=jax.random.fold_in(state.key, jax.lax.axis_index(AXIS)))
        with spread.over(axis=AXIS):
            each = _mean_shards if stage == 2 else _as_they_are
            grads, model_state, metrics = gradients(workload, local, batch, each=each)
        return grads, *mean_over(AXIS, (model_state, metrics))

    return layout.program(mesh, local_step, lambda *given: local_gradients(*given)[0])


def _as_they_are(grads: PyTree) -> PyTree:
    return grads


def _mean_shards(grads: PyTree) -> PyTree:
    return jax.tree.map(partial(flat.mean_shard, axis=AXIS), grads)


class _Layout:
    """Which arrays of a state are cut, and the way between that and the canonical state."""

    def __init__(self, workload: TrainWorkload, devices: list[jax.Device], stage: int):
        self._workload, self._devices, self._stage = workload, len(devices), stage
        self._platform = devices[0].platform
        key = jax.ShapeDtypeStruct((2,), "uint32")
        self._canonical: TrainState = jax.eval_shape(partial(create_state, workload), key)
        self.params = self._canonical.params
        nothing = dataclasses.replace(self._canonical, step=False, key=False)
        self._are_cut = dataclasses.replace(
            nothing,
            params=jax.tree.map(lambda _: False, self.params),
            model_state=jax.tree.map(lambda _: False, self._canonical.model_state),
            opt_state=flat.like_parameters(workload.optimizer, self.params),
        )

    def gathered(self, shards: PyTree) -> PyTree:
        return jax.tree.map(lambda shard, aval: flat.gathered(shard, aval.shape, AXIS), shards, self.params)

    def program(self, mesh: Any, local_step: Callable[..., Any], local_gradients: Callable[..., Any]) -> Program:
        specs = jax.tree.map(lambda is_cut: SPLIT if is_cut else WHOLE, self._are_cut)
        shardings = jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs)
        whole, split = NamedSharding(mesh, WHOLE), NamedSharding(mesh, SPLIT)
        run = partial(jax.shard_map, mesh=mesh, in_specs=(specs, SPLIT), check_vma=False)
        step = run(local_step, out_specs=(specs, WHOLE))
        stacked = self._stage == 1  # each device's own gradients, along a device axis
        held = run(
            lambda *given: jax.tree.map(lambda g: g[None] if stacked else g, local_gradients(*given)), out_specs=SPLIT
        )
        return Program(
            mesh=mesh,
            init=jit_once(lambda key: self._cut(create_state(self._workload, key)), out_shardings=shardings),
            step=jax.jit(step, donate_argnums=0, out_shardings=(shardings, whole)),
            state_sharding=shardings,
            batch_sharding=split,
            put=lambda batch: jax.device_put(batch, split),
            export=lambda state: flat.restore(state, self._canonical, self._are_cut),
            load=lambda state: jax.device_put(jax.device_get(self._cut(state)), shardings, may_alias=False),
            expected=lambda _: self._expected(),
            gradients=jax.jit(held),
        )

    def _cut(self, state: TrainState) -> TrainState:
        return jax.tree.map(lambda x, is_cut: flat.cut(x, self._devices) if is_cut else x, state, self._are_cut)

    def _expected(self) -> dict[str, tuple[int, int]]:
        """With the filling. XLA's CPU compiler widens sums of 16 bits to 32, and gathers as it likes."""
        if self._devices == 1:
            return {}
        leaves = jax.tree.leaves(self.params)
        whole, wide = (
            sum(max(leaf.dtype.itemsize, least) * flat.padded(leaf.size, self._devices) for leaf in leaves)
            for least in (1, WIDENED.get(self._platform, 1))
        )
        passes = 1 if self._stage == 1 else self._workload.micro_batches
        scattered = passes * whole // self._devices
        # XLA merges reductions of equal gradients, such as of the biases of two batch normalisations that are added.
        least = scattered - scattered // 20 if jax.tree.leaves(self._canonical.model_state) else scattered
        return {"reduce-scatter": (least, passes * wide // self._devices), "all-gather": (whole, wide)}
