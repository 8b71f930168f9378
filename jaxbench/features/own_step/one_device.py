# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The step of one device as an exported function, which processes with other devices can run.

A trainer that uses all of `jax.devices()` cannot make programs for single devices in a process that has several. So
the process with one device exports its step. The process with n devices runs it on one of them, to compare a step of
its own, or n copies of it at once without communication, which is the ablation `local`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
from jax.extend import core
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from jaxbench.core.program import Program, TrainState
from jaxbench.core.trees import ArrayTree
from jaxbench.errors import Unsupported
from jaxbench.features.ablations.programs import SENDS
from jaxbench.features.own_step.program import AXIS, OwnProgram, aval
from jaxbench.parallel import multihost
from jaxbench.workloads.jaxprs import aval_of, evaluate, inner


@dataclass(frozen=True)
class OneDevice:
    """The step of one device: a function of flat arrays, those of a state and then those of a batch.

    text: the exported function, which returns the new state. arrays: its first arguments, on the host.
    """

    text: bytes
    arrays: list[np.ndarray]

    @classmethod
    def of(cls, program: OwnProgram) -> OneDevice:
        """Raises Unsupported for a step that JAX cannot export."""
        arrays, tree = jax.tree.flatten((program.init(None), program.batch_of(0)))  # type: ignore[arg-type]

        def run(*arrays: jax.Array) -> tuple[jax.Array, ...]:
            new, _ = program.step.__wrapped__(*jax.tree.unflatten(tree, arrays))
            return tuple(jax.tree.leaves(new))

        with program.context():
            closed = jax.make_jaxpr(run)(*arrays)
        # Without the layouts and the mesh of the one device, which would name the devices where the copies run.
        shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in arrays]
        text = _exported(_of_one_device(closed), shapes).serialize()
        return cls(bytes(text), [np.asarray(x) for x in arrays])

    @functools.cached_property
    def exported(self) -> jax.export.Exported:
        return jax.export.deserialize(bytearray(self.text))

    def fitted(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The arrays of a program on several devices as those of one. A pmapped step has a leading axis of devices,
        with copies of the state and with parts of the batch. Raises ValueError for arrays that do not fit."""
        pairs = zip(arrays, self.exported.in_avals, strict=True)
        return [(x if x.size == like.size else x[:1]).reshape(like.shape) for x, like in pairs]


def _of_one_device(closed: core.ClosedJaxpr) -> Callable[..., tuple[jax.Array, ...]]:
    """The function of a jaxpr without collectives, which on one device do nothing and elsewhere name other devices."""

    def inside(equation: core.JaxprEqn, given: Sequence[jax.Array]) -> Sequence[jax.Array]:
        ((body, consts),) = inner(equation)[:1]
        return evaluate(body, consts, given, rules)

    # A sum over one device is its argument; a gathered or divided array has the same numbers in another shape.
    def same(equation: core.JaxprEqn, given: Sequence[jax.Array]) -> Sequence[jax.Array]:
        return [x.reshape(aval_of(out).shape) for x, out in zip(given, equation.outvars, strict=True)]

    def first(equation: core.JaxprEqn, given: Sequence[jax.Array]) -> Sequence[jax.Array]:
        return [jnp.int32(0)]

    kept = ("sharding_constraint", "reshard")
    rules = {**dict.fromkeys((*SENDS, *kept), same), "shard_map": inside, "axis_index": first}
    return lambda *arrays: tuple(evaluate(closed.jaxpr, closed.consts, arrays, rules))


def program(one: OneDevice, devices: Sequence[jax.Device]) -> Program:
    """The Program in which each of these devices runs the step of one, each with a state of its own."""
    mesh = Mesh(np.array(devices), (AXIS,), axis_types=(AxisType.Auto,))
    spec = PartitionSpec(AXIS)
    spread = NamedSharding(mesh, spec)
    exported, arrays = one.exported, one.arrays
    states = len(exported.out_avals)  # they come before the arrays of the batch; the first counts the steps

    def stacked(some: Sequence[np.ndarray]) -> list[jax.Array]:
        wide = [np.broadcast_to(x, (len(devices), *x.shape)) for x in some]
        return [multihost.put(x, spread, may_alias=False) for x in wide]  # copies: a step overwrites what it donates

    def state_of(arrays: Sequence[Any]) -> TrainState:
        return TrainState(arrays[0], {str(i): x for i, x in enumerate(arrays[1:])}, (), (), ())  # type: ignore[arg-type]

    def on_device(*arrays: jax.Array) -> list[jax.Array]:
        return [jnp.asarray(x)[None] for x in exported.call(*(x[0] for x in arrays))]

    # check_vma=False: JAX cannot look into an exported function, so it does not know what varies between devices.
    run = jax.shard_map(on_device, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)

    def step(state: TrainState, batch: list[jax.Array]) -> tuple[TrainState, ArrayTree]:
        given = [state.step, *(state.params[str(i)] for i in range(states - 1))]
        return state_of(run(*given, *batch)), {}

    shapes = [jax.ShapeDtypeStruct((len(devices), *x.shape), x.dtype, sharding=spread) for x in arrays]
    return Program(
        mesh=mesh,
        init=lambda key: state_of(stacked(arrays[:states])),
        step=jax.jit(step, donate_argnums=0, out_shardings=(spread, spread)),
        put=lambda batch: stacked(arrays[states:]),  # type: ignore[arg-type, return-value]
        avals=lambda: (state_of(shapes[:states]), shapes[states:]),
    )


def elsewhere(program: OwnProgram, devices: Sequence[jax.Device]) -> Program:
    """The Program on as many devices that are not here, to compile. Raises Unsupported."""
    batch = jax.tree.map(aval, program.batch_of(0))
    mesh = program.mesh
    target = Mesh(np.array(devices).reshape(mesh.devices.shape), mesh.axis_names)
    arrays, tree = jax.tree.flatten((program.first, batch))
    step = program.step.__wrapped__

    def run(*arrays: jax.Array) -> list[jax.Array]:
        return jax.tree.leaves(step(*jax.tree.unflatten(tree, arrays)))

    def placed(x: jax.ShapeDtypeStruct, on: Mesh) -> jax.ShapeDtypeStruct:
        spec = x.sharding.spec if isinstance(x.sharding, NamedSharding) else PartitionSpec()
        return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=NamedSharding(on, spec))

    platform = {"gpu": "cuda"}.get(devices[0].platform, devices[0].platform)  # as jax.export names it
    with program.context():
        results = jax.tree.structure(jax.eval_shape(step, program.first, batch))
        exported = _exported(run, [placed(x, mesh) for x in arrays], platforms=[platform])
    donated = 0 if program.own.donate else ()
    # An exported function takes and returns flat arrays; the trees around it are those of the step.
    call = jax.jit(
        lambda state, batch: jax.tree.unflatten(results, exported.call(*jax.tree.leaves((state, batch)))),
        donate_argnums=donated,
    )
    avals = jax.tree.unflatten(tree, [placed(x, target) for x in arrays])
    return Program(mesh=target, step=call, avals=lambda: avals, init=program.init, put=program.put)


def _exported(run: Callable[..., object], arrays: Sequence[jax.ShapeDtypeStruct], **how: Any) -> jax.export.Exported:
    """The exported program. Raises Unsupported with JAX's reason."""
    try:
        return jax.export.export(jax.jit(run), **how)(*arrays)
    except (ValueError, TypeError, LookupError, NameError, NotImplementedError) as error:  # as the equation raises
        raise Unsupported(f"JAX cannot export it ({' '.join(str(error).split())[:200]})") from error
