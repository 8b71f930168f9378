# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""ZeRO: data parallelism whose devices share out the model state instead of each holding a copy.

Rajbhandari et al., arXiv:1910.02054. Stage 1 shares out the optimizer's state, stage 2 also the gradients, stage 3 also
the parameters. On the wire stages 1 and 2 are a reduce-scatter of the gradients and an all-gather of the parameters,
together what data parallelism's all-reduce is; stage 3 gathers the parameters in the forward pass and once more in the
backward pass, half as much again.

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
from jaxbench.parallel.program import Program, TrainState, create_state, gradients, jit_once, mean_over, update
from jaxbench.workloads import spread
from jaxbench.workloads.base import Batch, Metrics, PyTree, TrainWorkload

AXIS = "data"
# What makes a parameter of its shards: not kept for the backward pass. That a model's own slices and reshapes are not
# either costs nothing.
_GATHERING = {"all_gather", "slice", "reshape"}
WHOLE, SPLIT = PartitionSpec(), PartitionSpec(AXIS)


def build(workload: TrainWorkload, devices: list[jax.Device], *, stage: int) -> Program:
    """The Program of stage 1, 2 or 3. Raises UserError under loss scaling, which must see all gradients at once."""
    if workload.loss_scale is not None:
        raise UserError(
            "--config.lever.precision=float16 scales the loss by what all gradients together look like, and under "
            f"zero{stage} no device sees them all: use bfloat16."
        )
    mesh = data_mesh(devices, AxisType.Auto)
    layout = _Layout(workload, len(devices), stage)

    def local_step(state: TrainState, batch: Batch) -> tuple[TrainState, Metrics]:
        grads, model_state, metrics = local_gradients(state, batch)
        grads = grads if stage > 1 else _mean_shards(grads)
        shards = state.params if stage == 3 else jax.tree.map(partial(flat.own_shard, axis=AXIS), state.params)
        new = update(workload, dataclasses.replace(state, params=shards), grads, model_state)
        return new if stage == 3 else dataclasses.replace(new, params=layout.gathered(new.params)), metrics

    def local_gradients(state: TrainState, batch: Batch) -> tuple[PyTree, PyTree, Metrics]:
        """As this stage holds them while more are added: whole, of this device's examples, or a shard of the mean."""
        local = dataclasses.replace(state, key=jax.random.fold_in(state.key, jax.lax.axis_index(AXIS)))
        with spread.over(axis=AXIS):
            if stage == 3:
                sharded = dataclasses.replace(workload, loss=_loss_of_shards(workload, layout))
                grads, model_state, metrics = gradients(sharded, local, batch)
                grads = jax.tree.map(lambda g: g / len(devices), grads)
            else:
                each = _mean_shards if stage == 2 else _as_they_are
                grads, model_state, metrics = gradients(workload, local, batch, each=each)
        return grads, *mean_over(AXIS, (model_state, metrics))

    return layout.program(mesh, local_step, lambda *given: local_gradients(*given)[0])


def _as_they_are(grads: PyTree) -> PyTree:
    return grads


def _mean_shards(grads: PyTree) -> PyTree:
    return jax.tree.map(partial(flat.mean_shard, axis=AXIS), grads)


def _loss_of_shards(workload: TrainWorkload, layout: _Layout) -> Callable[..., Any]:
    """The workload's loss as a function of a device's shards. Its gradient is summed over devices and cut: that is what
    the transpose of a gather is. What was gathered is not kept for the backward pass but gathered again.
    """

    def whole(shard: jax.Array, aval: Any) -> jax.Array:
        everything = jax.lax.all_gather(shard, AXIS, tiled=True)
        return jax.lax.reshape(jax.lax.slice(everything, (0,), (aval.size,)), aval.shape)

    def kept(primitive: Any, *_: Any, **__: Any) -> bool:
        return primitive.name not in _GATHERING

    @partial(jax.checkpoint, policy=kept)
    def loss(shards: PyTree, model_state: PyTree, batch: Batch, key: jax.Array) -> Any:
        return workload.loss(jax.tree.map(whole, shards, layout.params), model_state, batch, key)

    return loss


class _Layout:
    """Which arrays of a state are cut, and the way between that and the canonical state."""

    def __init__(self, workload: TrainWorkload, devices: int, stage: int):
        self._workload, self._devices, self._stage = workload, devices, stage
        key = jax.ShapeDtypeStruct((2,), "uint32")
        self._canonical: TrainState = jax.eval_shape(partial(create_state, workload), key)
        self.params = self._canonical.params
        nothing = dataclasses.replace(self._canonical, step=False, key=False)
        self._are_cut = dataclasses.replace(
            nothing,
            params=jax.tree.map(lambda _: stage == 3, self.params),
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
            step=jax.jit(
                step, donate_argnums=0, out_shardings=(shardings, whole), compiler_options=self._options(mesh)
            ),
            state_sharding=shardings,
            batch_sharding=split,
            put=lambda batch: jax.device_put(batch, split),
            export=lambda state: flat.restore(state, self._canonical, self._are_cut),
            load=lambda state: jax.device_put(jax.device_get(self._cut(state)), shardings, may_alias=False),
            expected=self._expected(),
            gradients=jax.jit(held),
        )

    def _options(self, mesh: Any) -> dict[str, Any]:
        """XLA's CPU compiler would merge the second gathering with the first: see `runner.arm.compiler_options`."""
        merges = self._stage == 3 and mesh.devices.flat[0].platform == "cpu"
        return {"xla_disable_hlo_passes": "cse_barrier_expander"} if merges else {}

    def _cut(self, state: TrainState) -> TrainState:
        return jax.tree.map(lambda x, is_cut: flat.cut(x, self._devices) if is_cut else x, state, self._are_cut)

    def _expected(self) -> dict[str, tuple[int, int]]:
        """With the filling. What stage 3 gathers again is what the backward pass needs: no biases, and nothing of a
        first layer, whose input needs no gradient. The forward passes of micro-batches may share what was gathered."""
        if self._devices == 1:
            return {}
        whole = sum(
            leaf.dtype.itemsize * flat.padded(leaf.size, self._devices) for leaf in jax.tree.leaves(self.params)
        )
        passes = 1 if self._stage == 1 else self._workload.micro_batches
        scattered = passes * whole // self._devices
        # XLA merges reductions of equal gradients, such as of the biases of two batch normalisations that are added.
        least = scattered - scattered // 20 if jax.tree.leaves(self._canonical.model_state) else scattered
        gathered = (whole, 2 * passes * whole) if self._stage == 3 else (whole, whole)
        return {"reduce-scatter": (least, scattered), "all-gather": gathered}
