# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What a right program must give: the same updates by one device on the whole batch, without mesh or strategy."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench.machine import mesh
from jaxbench.measure import memory
from jaxbench.measure.memory import Unfit
from jaxbench.parallel.draws import Keys, by_parts
from jaxbench.parallel.program import Program, TrainState, create_state, gradients, jit_once, update
from jaxbench.workloads import sharding_context
from jaxbench.workloads.base import Batch, PyTree, TrainWorkload
from jaxbench.workloads.weighted import WeightedMean

Answer = TypeVar("Answer")

STEPS = 3
IN_PARTS = "one device's answer, found in parts of the batch because the whole does not fit"
SCALED = "one device's answer, found in the program's parts of the batch because a scaled loss overflows part by part"
HOST_FLOPS = 1e14  # of a whole answer: some minutes on the CPU of a machine that has accelerators


@dataclass(frozen=True)
class Trained:
    """What STEPS updates leave behind, as host arrays."""

    params: PyTree
    opt_state: PyTree


@dataclass(frozen=True)
class Reference:
    """One device's answer: parameters (host arrays) before the first update, and what the last one left."""

    start: PyTree
    end: Trained
    model_state: PyTree = dataclasses.field(default_factory=dict)  # before the first update
    note: str = ""  # where the host gave it, because it does not fit one device: a sentence that says so
    how: str = ""  # where it was found in parts: a sentence that says so


@dataclass(frozen=True)
class Lies:
    """How a batch lies on the mesh of the program that is judged, as far as it changes what is computed.

    parts: of the batch, for statistics of each device's own examples. keys, order: as `Program` has them. draws:
    whether the loss uses its key.
    """

    parts: int = 1
    keys: Keys | None = None
    order: Callable[[Batch], Batch] = lambda batch: batch
    draws: bool = False

    @classmethod
    def of(cls, program: Program, *, draws: bool) -> Lies:
        return cls(program.parts, program.keys, program.order, draws)

    def identity(self, key: jax.Array, examples: int) -> tuple[Any, ...]:
        """Equal for those in which each example is drawn for alike, as for all strategies with a device a part."""
        keys = None if self.keys is None else np.asarray(self.keys(key)).tobytes()
        return keys, np.asarray(self.order({"at": jnp.arange(examples)})["at"]).tobytes()

    def prepared(self, workload: TrainWorkload, state: TrainState, batch: Batch) -> tuple[TrainState, Batch]:
        """(state with a key for each part, if parts draw by themselves; the batch in the program's order)."""
        if not self.draws:
            return state, batch
        drawn = state if self.keys is None else dataclasses.replace(state, key=jax.device_get(self.keys(state.key)))
        return drawn, self.order(batch)


def where_it_fits(run: Callable[[jax.Device], Answer], device: jax.Device, *, flops: float) -> tuple[Answer, str]:
    """(what `run` finds on the device, ""), or, where that runs out of memory, (on the host's CPU, a note of it).

    flops: of the whole run. Raises Unfit where they are more than a host does in minutes.
    """
    host = mesh.host_device()
    try:
        return run(device), ""
    except jax.errors.JaxRuntimeError as error:
        if device == host or "RESOURCE_EXHAUSTED" not in str(error):
            raise
    said = f"one device's answer does not fit one {device.device_kind}"
    if flops > HOST_FLOPS:
        raise Unfit(f"{said}, and its {flops:.1e} FLOPs would take the host too long")
    return run(host), f"{said}: it is the host's, computed in float32"


def initial_state(workload: TrainWorkload, key: jax.Array, *, device: jax.Device) -> TrainState:
    """The canonical state (host arrays) before the first update, made on one device without any strategy."""
    with jax.default_device(device):
        return jax.device_get(jit_once(lambda k: create_state(workload, k))(key))


def reference(
    workload: TrainWorkload,
    state: TrainState,
    batch: Batch,
    *,
    device: jax.Device,
    lies: Lies = Lies(),
    apart: bool = False,
    jit: Callable[..., Any] = jit_once,
) -> Reference:
    """STEPS plain updates of `state` (host arrays) on one device: no mesh, no sharding, no strategy, the whole batch.

    apart: but the parts of the batch one after the other, which takes less memory and is the same only for a loss of
    which that was shown (`loss_kind`), and for a model with state only where it is `independent`.

    Raises Unfit on a CPU whose memory would not hold it.
    """
    before = state
    drawn, batch = lies.prepared(workload, state, batch)
    workload = workload if drawn is state else by_parts(workload)
    step = jit(lambda state, grads, model_state: update(workload, state, grads, model_state))
    with jax.default_device(device):
        state = jax.device_put(drawn, device)
        if apart:
            gradient = _apart(workload, lies, batch, device, jit)
        else:
            gradient = _whole(workload, lies, state, jax.device_put(batch, device), jit)
        for _ in range(STEPS):
            state = jax.block_until_ready(step(state, *gradient(state)))
    return Reference(before.params, trained(state), before.model_state)


Gradient = Callable[[TrainState], tuple[PyTree, PyTree]]


def _whole(workload: TrainWorkload, lies: Lies, state: TrainState, batch: Batch, jit: Callable[..., Any]) -> Gradient:
    """state -> (gradients, model_state) of the whole batch."""

    def of_batch(state: TrainState, batch: Batch) -> tuple[PyTree, PyTree]:
        with sharding_context.over(parts=1 if state.key.ndim > 1 else lies.parts):
            return gradients(workload, state, batch)[:2]

    compiled = jit(of_batch).lower(state, batch).compile()
    memory.require(compiled, jax.tree.leaves(state.params)[0].device.platform)
    return lambda state: compiled(state, batch)


def _apart(workload: TrainWorkload, lies: Lies, batch: Batch, device: jax.Device, jit: Callable[..., Any]) -> Gradient:
    """The same, found part by part. Each counts as what it weighs."""

    def loss(*given: Any) -> Any:
        value, (model_state, metrics) = workload.loss(*given)
        one = value.weight if isinstance(value, WeightedMean) else jnp.ones(())
        return value, (model_state, {"weight": one.astype(jnp.float32)})

    weighing = dataclasses.replace(workload, loss=loss)

    # A loop in Python over parts: convolutions inside a compiled loop are many times slower on the CPU.
    def of_part(state: TrainState, part: Batch) -> PyTree:
        grads, model_state, metrics = gradients(weighing, state, part)
        weight = metrics["weight"]
        return jax.tree.map(lambda g: g * weight.astype(g.dtype), grads), model_state, weight

    found, add = jit(of_part), jit(lambda a, b: jax.tree.map(jnp.add, a, b))
    split = jit(lambda total, model, weight: (_over(total, weight), _over(model, lies.parts)))
    size = len(jax.tree.leaves(batch)[0]) // lies.parts

    def gradient(state: TrainState) -> tuple[PyTree, PyTree]:
        total: Any = None
        for at in range(0, lies.parts * size, size):
            part = jax.device_put(jax.tree.map(lambda x, at=at: x[at : at + size], batch), device)
            one = found(state, part)
            total = one if total is None else add(total, one)
        return split(*total)

    return gradient


def _over(total: PyTree, count: Any) -> PyTree:
    return jax.tree.map(lambda x: (x / count).astype(x.dtype), total)


def reference_that_fits(
    workload: TrainWorkload,
    key: jax.Array,
    batch: Batch,
    *,
    device: jax.Device,
    lies: Lies,
    flops: float,
    apart: Callable[[], bool] = lambda: False,
    start: TrainState | None = None,
) -> Reference:
    """One device's answer to the whole batch; where that does not fit, in parts, if they were earned; else the host's.
    In parts too where the program gives the loss parts and the loss is scaled: a part's gradient is larger than that of
    the whole, so that it overflows, and the step is skipped, sooner.

    flops: of one update. apart: whether parts give the same. start: the initial state, where it is at hand. Raises
    Unfit.
    """

    def answer(where: jax.Device) -> Reference:
        state = initial_state(workload, key, device=where) if start is None else start
        given: dict[str, Any] = {"device": where, "lies": lies}
        if workload.loss_scale is not None and lies.keys is not None and lies.parts > 1 and apart():
            return dataclasses.replace(reference(workload, state, batch, **given, apart=True), how=SCALED)
        try:
            return reference(workload, state, batch, **given)
        except (Unfit, jax.errors.JaxRuntimeError) as error:
            short = isinstance(error, Unfit) or "RESOURCE_EXHAUSTED" in str(error)
            if not short or lies.parts == 1 or not apart():
                raise
        return dataclasses.replace(reference(workload, state, batch, **given, apart=True), how=IN_PARTS)

    found, note = where_it_fits(answer, device, flops=STEPS * flops)
    return dataclasses.replace(found, note=note)


def again(
    expected: Reference,
    workload: TrainWorkload,
    key: jax.Array,
    batch: Batch,
    *,
    device: jax.Device,
    lies: Lies,
    platform: str = "cpu",
) -> Trained:
    """One device's answer by other programs of the same formulas: how far it is from its own shows what rounding does.

    On a CPU these are optimised ones. Elsewhere all are optimised, so the examples are given in reverse, whose sums are
    the same in another order; of a model that draws, in which each example must keep its place, they are too.

    A large model on large inputs amplifies rounding: where a ReLU or a maximum is nearly a tie, the last bit decides
    which way a gradient goes. What a strategy differs by is not its fault as far as one device differs from itself.
    """
    state, turned = initial_state(workload, key, device=device), platform != "cpu" and not lies.draws
    batch = jax.tree.map(lambda x: x[::-1], batch) if turned else batch
    return reference(workload, state, batch, device=device, lies=lies, jit=jax.jit, apart=bool(expected.how)).end


def trained(state: TrainState) -> Trained:
    return Trained(jax.device_get(state.params), jax.device_get(state.opt_state))


def relative_l2(a: PyTree, b: PyTree) -> float:
    """||a - b|| / ||b|| over all leaves, in float64; nan if any value is not finite."""
    pairs = list(zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))
    difference = sum(float(np.sum((np.float64(x) - np.float64(y)) ** 2)) for x, y in pairs)
    norm = sum(float(np.sum(np.float64(y) ** 2)) for _, y in pairs)
    return float(np.sqrt(difference / norm)) if norm else float(np.sqrt(difference))
