# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The phases of a step are separate programs. The cost of a phase is the time saved by omitting it:

    forward, gradient (adds backward), local (adds the update), step (adds the gradient's mean over devices)

Each program is the next one without its last phase, written with `shard_map` as in the strategy of that name. It
returns what the omitted phase would use, so the compiler cannot drop it. `inference` is the model's prediction.
"""

from __future__ import annotations

import dataclasses
from typing import TypeVar

import jax
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from jaxbench.core.program import Program, TrainState
from jaxbench.core.trees import ArrayTree
from jaxbench.core.workload import Batch, TrainWorkload
from jaxbench.errors import UserError, present
from jaxbench.machine.mesh import data_mesh
from jaxbench.parallel.data_parallel import AXIS, data_parallel, on_device
from jaxbench.parallel.step import forward, gradients, mean_over, update

T = TypeVar("T")


def build_phases(workload: TrainWorkload, devices: list[jax.Device], part: str, *, donate: bool = True) -> Program:
    """A Program with a step that runs the phases up to `part`, a value of the lever; unchanged state passes through.

    donate: whether the step may overwrite its state.

    The outputs of `step` are the metrics. The other parts of a training step return each device's values, along a
    leading device axis: the metrics; for `forward` and `gradient` also "model_state"; for `gradient` also "gradients".
    After `local` the devices have different states. The outputs of `inference` are those of ``workload.predict``.

    Raises:
      UserError: `inference` for a workload without a `predict`.
    """
    if part == "inference" and workload.predict is None:
        raise UserError(
            f"--config.lever.part={part} needs a `predict`, which '{workload.name}' does not have: use step."
        )
    mesh = data_mesh(devices, AxisType.Auto)

    def local_step(state: TrainState, batch: Batch) -> tuple[TrainState, ArrayTree]:
        if part == "inference":
            return state, present(workload.predict)(state.params, state.model_state, batch)
        if part == "forward":
            model_state, metrics = on_device(forward, workload, state, batch)
            # Everything that the next phase would use, or the compiler would drop the work behind it.
            return state, stacked({**metrics, "model_state": model_state})
        grads, model_state, metrics = on_device(gradients, workload, state, batch)
        if part == "gradient":
            return state, stacked({**metrics, "model_state": model_state, "gradients": grads})
        if part == "step":
            grads, model_state, metrics = mean_over(AXIS, (grads, model_state, metrics))
        return update(workload, state, grads, model_state), metrics if part == "step" else stacked(metrics)

    def stacked(outputs: T) -> T:
        return jax.tree.map(lambda x: x[None], outputs)

    whole, split = PartitionSpec(), PartitionSpec(AXIS)
    specs = whole, whole if part == "step" else split
    # Type checking is off: without the mean, arrays that differ between devices are declared to be equal.
    step = jax.shard_map(local_step, mesh=mesh, in_specs=(whole, split), out_specs=specs, check_vma=False)
    shardings = tuple(NamedSharding(mesh, spec) for spec in specs)
    jitted = jax.jit(step, donate_argnums=(0,) if donate else (), out_shardings=shardings)
    program = dataclasses.replace(data_parallel(workload, mesh, step), step=jitted)
    # The shorter programs must send nothing, which the collective counts check.
    return program if part == "step" else dataclasses.replace(program, expected=lambda _: {}, sums=0)
