# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The reference for every strategy: the same updates on one device with the whole batch, without a mesh.

`measure/rounding.py` shows how much of a difference is only rounding, and `measure/check.py` judges it.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench.core.program import Program, TrainState
from jaxbench.core.trees import ArrayTree
from jaxbench.core.weighted import WeightedMean
from jaxbench.core.workload import Batch, Keys, Mean, Metrics, Scalars, TrainWorkload
from jaxbench.errors import present
from jaxbench.machine import mesh
from jaxbench.machine.start import LARGE
from jaxbench.measure import memory
from jaxbench.measure.memory import Unfit
from jaxbench.parallel.step import create_state, drawing, gradients, jit_once, update
from jaxbench.workloads import sharding_context
from jaxbench.workloads.levers import not_frozen, stateful
from jaxbench.workloads.rng_keys import by_parts

Answer = TypeVar("Answer")
StateMaker = Callable[[jax.Array, jax.Device], TrainState]
Compile = Callable[[Callable[..., object]], jax.stages.Wrapped]  # `jax.jit`, with some options
Summed = tuple[ArrayTree, ArrayTree, jax.Array]  # gradients and model state, each times its weight; the weight

NO_MESH = jax.sharding.AbstractMesh((), ())
STEPS = 3  # updates: from the second one on, they depend on the optimizer's state
MOST_STEPS = 48  # for an optimizer that changes parameters only once in several steps
IN_PARTS = "one device (in parts of the batch, because the whole batch does not fit)"
SCALED = "one device (in the program's parts of the batch, because a scaled loss overflows part by part)"
HOST_FLOPS = 1e14  # limit for a reference on the host: minutes on the CPU of a machine with accelerators

# Frozen weights are a part of the model's state, where the lever `freeze` puts them. They never change, so results and
# comparisons leave them out (`not_frozen`).


@dataclass(frozen=True)
class TrainedState:
    """The canonical state after some updates, as host arrays."""

    params: ArrayTree
    opt_state: ArrayTree
    model_state: ArrayTree = dataclasses.field(default_factory=dict)  # without frozen weights


@dataclass(frozen=True)
class Reference:
    """One device's result: the parameters (host arrays) before the first update, and the state after the last."""

    start: ArrayTree
    end: TrainedState
    model_state: ArrayTree = dataclasses.field(default_factory=dict)  # before the first update
    note: str = ""  # says that the host computed it, if it does not fit on one device
    how: str = ""  # IN_PARTS or SCALED, if it was computed part by part
    updates: Updates | None = None  # the compiled programs that computed it, for other states
    count: int = STEPS  # updates between start and end

    def of(self, state: TrainState, batch: Batch, count: int) -> Reference:
        """The result of `count` updates of another state (host arrays), computed in the same way."""
        end = present(self.updates)(state, batch, count)
        return dataclasses.replace(self, start=state.params, end=end, model_state=state.model_state, count=count)

    def without_arrays(self) -> Reference:
        """What `of` needs: the compiled programs, without the memory of a result."""
        return dataclasses.replace(self, start=(), end=TrainedState((), ()), model_state={})


@dataclass(frozen=True)
class BatchLayout:
    """How the judged program lays out its batch on the mesh, as far as a correct result depends on that.

    parts: the number of parts of the batch, for statistics of each device's own examples. keys, order: as in `Program`,
    for random numbers. uses_key: whether the loss uses its random key.
    """

    parts: int = 1
    keys: Keys | None = None
    order: Callable[[Batch], Batch] = lambda batch: batch
    uses_key: bool = False

    @classmethod
    def of(cls, program: Program, *, uses_key: bool) -> BatchLayout:
        return cls(program.parts, program.keys, program.order, uses_key)

    def identity(self, key: jax.Array, examples: int) -> tuple[bytes | None, bytes]:
        """A value that is equal for layouts that draw the same random numbers for each example."""
        keys = None if self.keys is None else np.asarray(self.keys(key)).tobytes()
        return keys, np.asarray(self.order({"at": jnp.arange(examples)})["at"]).tobytes()

    def prepared(self, workload: TrainWorkload, state: TrainState, batch: Batch) -> tuple[TrainState, Batch]:
        """(state, with a key for each part if the parts draw separately; the batch in the program's order)."""
        if not self.uses_key:
            return state, batch
        if self.keys is not None:
            state = dataclasses.replace(state, key=jax.device_get(self.keys(state.key)))
        return state, self.order(batch)


def where_it_fits(run: Callable[[jax.Device], Answer], device: jax.Device, *, flops: float) -> tuple[Answer, str]:
    """(the result of `run` on the device, ""). If that runs out of memory: (the result on the host's CPU, a note).

    flops: of the whole run. Raises Unfit if the host would take more than minutes.
    """
    host = mesh.host_device()
    try:
        return run(device), ""
    except (Unfit, jax.errors.JaxRuntimeError) as error:
        if device == host or not _out_of_memory(error):
            raise
    message = f"the one-device reference does not fit on one {device.device_kind}"
    if flops > HOST_FLOPS:
        raise Unfit(f"{message}, and its {flops:.1e} FLOPs would take the host too long")
    return run(host), f"{message}, so the host computed it in float32"


def _out_of_memory(error: Exception) -> bool:
    # jaxlib has one exception type for all its errors: only the status in the message says "out of memory".
    return isinstance(error, Unfit) or "RESOURCE_EXHAUSTED" in str(error)


def state_maker(workload: TrainWorkload) -> StateMaker:
    """The compiled `create_state`. Keep it: compiling the initial values of a deep model takes seconds on a GPU."""
    jitted, compiled = jit_once(functools.partial(create_state, workload)), dict[jax.Device, jax.stages.Compiled]()

    def make(key: jax.Array, device: jax.Device) -> TrainState:
        if device not in compiled:
            # Ahead of time, because within the context of a mesh JAX would compile it again.
            with drawing(), jax.sharding.use_abstract_mesh(NO_MESH), jax.default_device(device):
                compiled[device] = jitted.lower(key).compile()
        return compiled[device](key)

    return make


def with_first_state(program: Program, make: StateMaker) -> Program:
    """The program. On one device that holds the canonical state, `make` makes its first state, so that one compiled
    function is enough. make: the workload's `state_maker`."""
    if program.mesh.size > 1 or program.enter is not None or program.export is not Program.export:
        return program
    device, plain = program.mesh.devices.flat[0], getattr(program.init, "__wrapped__", program.init)

    def init(key: jax.Array) -> TrainState:
        if isinstance(key, jax.core.Tracer):  # only its shapes are asked for
            return plain(key)
        return jax.device_put(make(key, device), program.state_sharding)

    init.__wrapped__ = plain  # type: ignore[attr-defined]  # as that of jax.jit
    return dataclasses.replace(program, init=init)


def initial_state(
    workload: TrainWorkload, key: jax.Array, *, device: jax.Device, make: StateMaker | None = None
) -> TrainState:
    """The canonical state (host arrays) before the first update, made on one device without any strategy."""
    return jax.device_get((make or state_maker(workload))(key, device))


class Updates:
    """Plain updates on one device with the whole batch: no mesh, no sharding, no strategy.

    The first call compiles the programs, which are kept. No arrays are kept.

    apart: the number of parts of the batch to compute one after the other; 0: none. Parts take less memory, but give
    the same result only for some losses (`loss_kind`), and for a model with state only if that is `independent` and the
    parts are those of the layout. jit: compiles the programs.
    """

    def __init__(
        self,
        workload: TrainWorkload,
        device: jax.Device,
        *,
        layout: BatchLayout = BatchLayout(),
        apart: int = 0,
        jit: Compile = jit_once,
    ):
        keys_of_parts = layout.uses_key and layout.keys is not None
        self.jit, self._device, self._layout, self.apart = jit, device, layout, apart
        self._workload = workload = by_parts(workload) if keys_of_parts else workload
        self._compiled: jax.stages.Compiled | None = None  # the update with the whole batch, or the gradient of a part
        self._step = jit(lambda state, grads, model_state: update(workload, state, grads, model_state))

        def loss(
            params: ArrayTree, model_state: ArrayTree, batch: Batch, key: jax.Array
        ) -> tuple[Mean, tuple[ArrayTree, Metrics]]:
            value, (model_state, _) = workload.loss(params, model_state, batch, key)
            weight = value.weight if isinstance(value, WeightedMean) else jnp.ones(())
            return value, (model_state, {"weight": weight.astype(jnp.float32)})

        with_weight = dataclasses.replace(workload, loss=loss)  # its only metric is the weight of its examples

        def weighted_gradient(state: TrainState, part: Batch) -> Summed:
            grads, model_state, metrics = gradients(with_weight, state, part)
            weight = metrics["weight"]
            return jax.tree.map(lambda g: g * weight.astype(g.dtype), grads), model_state, weight

        def divided(total: ArrayTree, by: jax.Array | int) -> ArrayTree:
            return jax.tree.map(lambda x: (x / by).astype(x.dtype), total)

        self._weighted_gradient, self._add = weighted_gradient, jit(lambda a, b: jax.tree.map(jnp.add, a, b))
        self._divide = jit(lambda total, model, weight: (divided(total, weight), divided(model, apart)))

    def __call__(self, state: TrainState, batch: Batch, count: int = STEPS) -> TrainedState:
        """The result of `count` updates of `state` (host arrays). Raises Unfit on a CPU with too little memory."""
        state, batch = self._layout.prepared(self._workload, state, batch)
        with jax.default_device(self._device):
            state = jax.device_put(state, self._device)
            batch = batch if self.apart else jax.device_put(batch, self._device)
            for _ in range(count):
                # Waiting keeps only one update's scratch memory alive, as in `check.train`.
                state = jax.block_until_ready((self._in_parts if self.apart else self._of_batch)(state, batch))
        return trained(state)

    def _of_batch(self, state: TrainState, batch: Batch) -> TrainState:
        """The state after an update with the whole batch: one program, so that one is compiled."""

        def run(state: TrainState, batch: Batch) -> tuple[TrainState, Scalars]:
            # With a key for each part, `by_parts` splits the batch. Otherwise layers such as batch normalization do.
            with sharding_context.over(parts=1 if state.key.ndim > 1 else self._layout.parts):
                # With the metrics, as the judged steps return them: without, XLA fuses otherwise, and in bfloat16 the
                # gradient of a bias then rounds differently by a tenth.
                grads, model_state, metrics = gradients(self._workload, state, batch)
            return update(self._workload, state, grads, model_state), metrics

        return self._fitting(run, state, batch)(state, batch)[0]

    def _in_parts(self, state: TrainState, batch: Batch) -> TrainState:
        """As `_of_batch`, but the gradient part by part; each part counts with its weight.

        The loop over parts is in Python: convolutions inside a compiled loop are many times slower on the CPU.
        """
        size = len(jax.tree.leaves(batch)[0]) // self.apart
        total: Summed | None = None
        for start in range(0, self.apart * size, size):
            part = jax.device_put(jax.tree.map(lambda x, start=start: x[start : start + size], batch), self._device)
            result = self._fitting(self._weighted_gradient, state, part)(state, part)
            total = result if total is None else self._add(total, result)
        return self._step(state, *self._divide(*present(total)))

    def _fitting(self, function: Callable[..., object], state: TrainState, batch: Batch) -> jax.stages.Compiled:
        """The compiled function. Raises Unfit on a CPU with too little memory."""
        if self._compiled is None:
            program = self.jit(function).lower(state, batch).compile()
            memory.require(program, self._device.platform)
            self._compiled = program
        return self._compiled


def reference(
    workload: TrainWorkload,
    state: TrainState,
    batch: Batch,
    *,
    device: jax.Device,
    layout: BatchLayout = BatchLayout(),
    apart: int = 0,
    jit: Compile = jit_once,
) -> Reference:
    """The result of STEPS updates of `state` (host arrays) on one device.

    For an optimizer that changes parameters only once in several steps, such as optax.MultiSteps, the number of updates
    is doubled until a parameter changes. Raises Unfit on a CPU with too little memory.
    """
    updates = Updates(workload, device, layout=layout, apart=apart, jit=jit)
    end, count = updates(state, batch), STEPS
    while count < MOST_STEPS and collects(state, end):
        count *= 2
        end = updates(state, batch, count)
    return Reference(state.params, end, state.model_state, updates=updates, count=count)


def collects(before: TrainState | TrainedState, after: TrainState | TrainedState) -> bool:
    """Whether the updates changed the optimizer's state but no parameter, so it is still accumulating gradients."""

    def equal(old: ArrayTree, new: ArrayTree) -> bool:
        return all(map(np.array_equal, jax.tree.leaves(old), jax.tree.leaves(new)))

    return equal(before.params, after.params) and not equal(before.opt_state, after.opt_state)


def reference_that_fits(
    workload: TrainWorkload,
    key: jax.Array,
    batch: Batch,
    *,
    device: jax.Device,
    layout: BatchLayout,
    flops: float,
    apart: Callable[[], bool] = lambda: False,
    make: StateMaker | None = None,
) -> Reference:
    """`reference` for the whole batch, or for its parts one after the other, or on the host: the first that fits.

    Parts are used only where they give the same result. They are preferred if the program computes a scaled loss in
    parts: the gradient of a part is larger than that of the whole batch, so it overflows, and skips the step, sooner.

    flops: of one update. apart: returns whether parts give the same result. make: the workload's `state_maker`. Raises
    Unfit if neither the device nor the host can compute it. The parts are those of the program first. A model without
    state may be split further, as a step that recomputes its blocks may need far less memory than this reference.
    """
    jit = functools.partial(jit_once, flops=flops) if flops >= LARGE else jit_once

    def run(on: jax.Device) -> Reference:
        state = initial_state(workload, key, device=on, make=make)
        options: dict[str, Any] = {"device": on, "layout": layout, "jit": jit}
        if workload.loss_scale is not None and layout.keys is not None and layout.parts > 1 and apart():
            return dataclasses.replace(reference(workload, state, batch, **options, apart=layout.parts), how=SCALED)
        examples = len(jax.tree.leaves(batch)[0])
        for parts in (0, *_finer(layout.parts, 1 if stateful(state.model_state) else examples)):
            if parts and not apart():
                break
            try:
                made = reference(workload, state, batch, **options, apart=parts)
                return dataclasses.replace(made, how=IN_PARTS if parts else "")
            except (Unfit, jax.errors.JaxRuntimeError) as error:
                if not _out_of_memory(error):
                    raise
                short = str(error)  # not the error, which would keep the arrays of the attempt alive
        raise Unfit(short)

    result, note = where_it_fits(run, device, flops=STEPS * flops)
    return dataclasses.replace(result, note=note)


def _finer(parts: int, most: int) -> Iterator[int]:
    """The program's number of parts, if it is more than one, then about four times as many until `most`."""
    if parts > 1:
        yield parts
    while parts < most:
        parts = next(n for n in range(min(4 * parts, most), most + 1) if most % n == 0)
        yield parts


def trained(state: TrainState) -> TrainedState:
    """The result of a canonical state, copied to the host."""
    return TrainedState(*jax.device_get((state.params, state.opt_state, not_frozen(state.model_state))))


def relative_l2(a: ArrayTree, b: ArrayTree) -> float:
    """||a - b|| / ||b|| over all leaves, in float64; nan if any value is not finite."""
    pairs = list(zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))
    difference = sum(float(np.sum((np.float64(x) - np.float64(y)) ** 2)) for x, y in pairs)
    norm = sum(float(np.sum(np.float64(y) ** 2)) for _, y in pairs)
    return float(np.sqrt(difference / norm)) if norm else float(np.sqrt(difference))  # absolute if b is zero
