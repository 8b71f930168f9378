# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Ablations of a step's communication.

- `local`: the step without communication, on all devices at once.
- `alone`: one device's share of it, with the machine to itself.
- `in_order`: a pipeline's step in which stages still wait for each other, but send almost nothing.

The result of a collective is made from the device's own operand: a sum becomes the operand, a gathered array the
operand repeated, a scattered array a part of it. The numbers are wrong. The shapes are right, and so is the remaining
work. Barriers before and after keep the compiler from skipping work that the collective would have needed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxbench.parallel import stage
from jaxbench.parallel.explain.traced import Replace, Traced, trace
from jaxbench.parallel.program import Program, jit_once, keep_barriers
from jaxbench.workloads.base import TrainWorkload


def local(workload: TrainWorkload, program: Program, global_batch: int) -> Program:
    """The Program in which all devices do their share of the step and none waits for another.

    Raises Unsupported for a step that is not a per-device program.
    """
    return _all_at_once(workload, program, global_batch, _own)


def in_order(workload: TrainWorkload, program: Program, global_batch: int) -> Program:
    """As `local`, but each message between the stages of a pipeline is one number, so a stage waits for its neighbours.

    Raises Unsupported for a step that is not a per-device program.
    """
    return _all_at_once(workload, program, global_batch, _own_when_it_comes)


def _all_at_once(workload: TrainWorkload, program: Program, global_batch: int, replace: Replace) -> Program:
    traced, mesh = trace(workload, program, global_batch), program.mesh

    def on_device(*operands: Any) -> list[Any]:
        return traced.run(operands, replace)

    run = jax.shard_map(on_device, mesh=mesh, in_specs=traced.in_specs, out_specs=[*traced.out_specs], check_vma=False)
    shardings = program.state_sharding, NamedSharding(mesh, PartitionSpec())
    return _program(program, jax.jit(_step(traced, run), donate_argnums=0, out_shardings=shardings))


def alone(workload: TrainWorkload, program: Program, global_batch: int) -> Program:
    """The Program in which only the first device runs, with the share of the last device.

    In a pipeline that device has the loss.

    Raises Unsupported for a step that is not a per-device program.
    """
    traced, mesh = trace(workload, program, global_batch), program.mesh
    place = {axis: size - 1 for axis, size in mesh.shape.items()}

    def at_place(equation: Any, given: Sequence[Any]) -> Sequence[Any]:
        if equation.primitive.name != "axis_index":
            return _own(equation, given)
        axes = equation.params["axis_name"]
        axes = (axes,) if isinstance(axes, str) else axes
        index = np.ravel_multi_index([place[axis] for axis in axes], [mesh.shape[axis] for axis in axes])
        return [jnp.int32(index)]

    def run(*operands: Any) -> list[Any]:
        return traced.run(operands, at_place)

    first, last = mesh.devices.flat[0], mesh.devices.flat[-1]
    own_mesh = Mesh(np.array([first]), ("data",))
    here = NamedSharding(own_mesh, PartitionSpec())

    def share(tree: Any, shardings: Any) -> Any:
        """The shard of each global array on the last device."""
        spread = jax.tree.broadcast(shardings, tree)
        return jax.tree.map(lambda x, sharding: x[sharding.devices_indices_map(x.shape)[last]], tree, spread)

    make = getattr(
        program.init, "__wrapped__", program.init
    )  # in one program with the cut, the whole state need not be kept
    return dataclasses.replace(
        _program(program, jax.jit(_step(traced, run), donate_argnums=0, out_shardings=(here, here)), own_mesh),
        mesh=own_mesh,
        init=jit_once(lambda key: share(make(key), program.state_sharding), out_shardings=here),
        state_sharding=here,
        batch_sharding=here,
        put=lambda batch: jax.device_put(share(batch, program.batch_sharding), here),
        batch_parts=1,
    )


def _program(program: Program, step: Any, mesh: Mesh | None = None) -> Program:
    passes = tuple(dict.fromkeys((*program.disabled_passes, *keep_barriers(mesh or program.mesh))))
    return dataclasses.replace(
        program, step=step, expected=lambda _: {}, sums=0, gradients=None, disabled_passes=passes
    )


def _step(traced: Traced, run: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    return lambda state, batch: jax.tree.unflatten(traced.out_tree, run(*jax.tree.leaves((state, batch))))


def _own(equation: Any, given: Sequence[Any]) -> Sequence[Any]:
    """The device's own operand in place of the result of a collective."""
    if equation.primitive.name == "axis_index":
        return [equation.primitive.bind(**equation.params)]
    sizes = [math.prod(x.shape) for x in given]

    operands = jax.lax.optimization_barrier(tuple(given)) if max(sizes) > 1 else given
    made = [_fitted(x, out.aval.shape, equation.params) for x, out in zip(operands, equation.outvars, strict=True)]
    return jax.lax.optimization_barrier(tuple(made)) if max(sizes) > 1 else made


def _own_when_it_comes(equation: Any, given: Sequence[Any]) -> Sequence[Any]:
    """The device's own operand in place of a message between stages, with one number of the message written into it.

    So whatever needs the message still waits for the sender.
    """
    own = _own(equation, given)
    if equation.primitive.name != "ppermute" or stage.AXIS not in equation.params["axis_name"]:
        return own
    firsts = [x.ravel()[:1].reshape((1,) * x.ndim) for x in own]
    come = [equation.primitive.bind(first, **equation.params) for first in firsts]
    return [jax.lax.dynamic_update_slice(x, one, (0,) * x.ndim) for x, one in zip(own, come, strict=True)]


def _fitted(x: Any, shape: tuple[int, ...], params: dict[str, Any]) -> Any:
    """x, repeated or cut to the shape of a collective's result."""
    size, wanted = math.prod(x.shape), math.prod(shape)
    if wanted > size:
        dimension = params["all_gather_dimension"]
        whole = x if params["tiled"] else jnp.expand_dims(x, dimension)
        return jnp.tile(whole, [params["axis_size"] if i == dimension else 1 for i in range(whole.ndim)])
    if wanted < size:
        dimension = params["scatter_dimension"]
        part = jax.lax.slice_in_dim(x, 0, x.shape[dimension] // params["axis_size"], axis=dimension)
        return part.reshape(shape)
    return x.reshape(shape)
