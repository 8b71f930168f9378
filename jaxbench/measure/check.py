# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Correctness in the same row as speed: a program's updates must be those of one device on the same global batch."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench.levers import SIXTEEN_BITS
from jaxbench.machine import mesh
from jaxbench.parallel.program import Program, TrainState, create_state, gradients, jit_once, update
from jaxbench.records.schema import Verdict
from jaxbench.workloads import flops, spread
from jaxbench.workloads.base import Batch, PyTree, TrainWorkload
from jaxbench.workloads.levers.freeze import stateful

Answer = TypeVar("Answer")

STEPS = 3
REDUCED_PRECISION = 1e-3  # parameters, relative: the default matrix precision of accelerators keeps 8 to 11 bits
MOSTLY = 0.9  # share of the products' FLOPs: what is left in float32 on purpose is small
PART = 1e-2  # relative: a loss or an answer in 16 bits; a part that computes something else is far off
ROUNDING = 3  # times as far as one device's answer is from itself, a strategy's may be from it
SHARE = 0.1  # of how far the updates moved the parameters: what may be further off was not shown to make them
OPTIMIZER_STATE = 3e-2  # relative: leaves room for bfloat16 gradients, none for a wrong scale
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


class Unfit(Exception):
    """No device here can give an answer to compare with; the message says why, as the end of a sentence."""


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
    passes: int = 1,
    jit: Callable[..., Any] = jit_once,
    apart: bool = False,
) -> Reference:
    """STEPS plain updates of `state` (host arrays) on one device: no mesh, no sharding, no strategy.

    The gradient of the whole batch is averaged over `passes` equal parts of it, so that a batch made for n devices fits
    one: for a loss that is a mean over examples this is the same gradient. A model with state (batch statistics) is not
    the same on parts, so it is given the whole batch, and told in how many parts that lies; apart: but where it is
    `independent` the parts one by one, which is the same and takes less memory.
    """
    apart = apart and workload.independent
    parts_of_batch, passes = passes, 1 if stateful(state.model_state) and not apart else passes

    # A loop in Python over parts: convolutions inside a compiled loop are many times slower on the CPU.
    def gradient_of(state: TrainState, part: Batch) -> tuple[PyTree, PyTree]:
        with spread.over(parts=parts_of_batch if passes == 1 else 1):
            return gradients(workload, state, part)[:2]

    gradient = jit(gradient_of)
    add = jit(lambda a, b: jax.tree.map(jnp.add, a, b))
    step = jit(
        lambda state, total, model_state: update(
            workload, state, jax.tree.map(lambda g: g / passes, total), model_state
        )
    )
    start, model_state_before = state.params, state.model_state
    with jax.default_device(device):
        state = jax.device_put(state, device)
        size = len(jax.tree.leaves(batch)[0]) // passes
        parts = [jax.tree.map(lambda x, at=at: x[at : at + size], batch) for at in range(0, passes * size, size)]
        for _ in range(STEPS):
            total, model_state = gradient(state, jax.device_put(parts[0], device))
            for part in parts[1:]:
                more, moved = gradient(state, jax.device_put(part, device))
                total, model_state = add(total, more), add(model_state, moved) if apart else model_state
            state = jax.block_until_ready(step(state, total, _shared(model_state, passes if apart else 1)))
    return Reference(start, _trained(state), model_state_before)


def _shared(total: PyTree, count: int) -> PyTree:
    """The mean of what `count` parts left of the model's state."""
    return total if count == 1 else jax.tree.map(lambda x: (x / count).astype(x.dtype), total)


def reference_that_fits(
    workload: TrainWorkload, key: jax.Array, batch: Batch, *, device: jax.Device, passes: int, flops: float
) -> Reference:
    """One device's answer, from the host where it does not fit the device. flops: of one update. Raises Unfit."""

    def answer(where: jax.Device) -> Reference:
        state = initial_state(workload, key, device=where)
        apart = device.platform != "cpu" or where != device
        # in as many parts as the mesh makes of the batch, one device holds what it does when there are others
        return reference(workload, state, batch, device=where, passes=passes, apart=apart)

    found, note = where_it_fits(answer, device, flops=STEPS * flops)
    return dataclasses.replace(found, note=note)


def rounding(
    expected: Reference,
    workload: TrainWorkload,
    key: jax.Array,
    batch: Batch,
    *,
    device: jax.Device,
    passes: int,
    platform: str = "cpu",
) -> float:
    """How far one device's answer, relative L2 of the parameters, is from its own, by programs of the same formulas.

    On a CPU these are optimised ones. Elsewhere all are optimised, so the examples are given in reverse, whose sums are
    the same in another order.

    A large model on large inputs amplifies rounding: where a ReLU or a maximum is nearly a tie, the last bit decides
    which way a gradient goes. What a strategy differs by is not its fault as far as one device differs from itself.
    """
    state, turned = initial_state(workload, key, device=device), platform != "cpu"
    batch = jax.tree.map(lambda x: x[::-1], batch) if turned else batch
    other = reference(workload, state, batch, device=device, passes=passes, jit=jax.jit, apart=turned)
    return relative_l2(other.end.params, expected.end.params)


def _trained(state: TrainState) -> Trained:
    return Trained(jax.device_get(state.params), jax.device_get(state.opt_state))


def train(program: Program, call: Callable[..., Any], key: jax.Array, batch: Batch) -> Trained:
    """STEPS updates by the compiled step of a strategy.

    Each is waited for: a CPU takes the scratch of a step when that is asked for, so three at once would hold three
    of them (ViT-S/16, 32 images on two devices: 10.0 GiB, waiting 8.3, and with `memory.give_back` 6.9).
    """
    with jax.set_mesh(program.mesh):
        state, placed = program.init(key), program.put(batch)
        for _ in range(STEPS):
            state, _ = jax.block_until_ready(call(state, placed))
        return _trained(program.export(state))


def relative_l2(a: PyTree, b: PyTree) -> float:
    """||a - b|| / ||b|| over all leaves, in float64; nan if any value is not finite."""
    pairs = list(zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))
    difference = sum(float(np.sum((np.float64(x) - np.float64(y)) ** 2)) for x, y in pairs)
    norm = sum(float(np.sum(np.float64(y) ** 2)) for _, y in pairs)
    return float(np.sqrt(difference / norm)) if norm else float(np.sqrt(difference))


def judge(
    actual: Trained,
    expected: Reference,
    workload: TrainWorkload,
    *,
    platform: str = "cpu",
    rounding: Callable[[], float] = lambda: 0.0,
) -> Verdict:
    """The verdict on a program's parameters. Not-a-number never passes.

    rounding: the function of that name, which is asked only where the distance is beyond the limit.
    """
    limit, why = workload.tolerance, workload.tolerance_reason
    if platform != "cpu" and limit < REDUCED_PRECISION:
        limit, why = REDUCED_PRECISION, f"float32 products on a {platform} are TF32 or bfloat16 by default"
    distance, moved = relative_l2(actual.params, expected.end.params), relative_l2(expected.start, expected.end.params)
    doubt = distance
    if expected.note:  # as far from the device's own arithmetic as that of one device is from float32
        limit, why = max(limit, SHARE * moved), expected.note
    elif distance > limit and (alone := rounding()) * ROUNDING > limit:
        limit = doubt = ROUNDING * alone
        why = f"{ROUNDING} times the {alone:.1e} of one device to itself, optimised or not"
    said = f"after {STEPS} updates, relative L2 to one device is {distance:.1e}"
    if not distance <= limit:
        ok, reason = False, f"{said}, NOT within {limit:.0e} ({why})"
    elif not doubt < SHARE * moved:
        # Parameters that hardly move agree whatever the strategy does, and where one device does not agree with itself
        # nobody can: such a check proves nothing.
        only = f"but the updates moved the parameters by only {moved:.1e}: nothing is proven"
        ok, reason = False, f"{said}, within {limit:.0e} ({why}), {only}"
    else:
        ok, reason = True, f"{said}, within {limit:.0e} ({why})"
    return _verdict("parameters", ok, reason, distance=distance, limit=limit)


def unchecked(reason: str) -> Verdict:
    """The verdict on parameters that nothing can be compared with."""
    return Verdict(name="parameters", ok=False, unchecked=True, reason=f"unchecked: {reason}")


def judge_optimizer(actual: Trained, expected: Reference) -> Verdict:
    """The verdict on the optimizer's state, which shows the gradient's scale where the parameters do not.

    Adam divides the gradient by its own size, so a gradient that is n times too large moves the parameters as the right
    one does; its running means are n and n^2 times too large.
    """
    distance = relative_l2(_floats(actual.opt_state), _floats(expected.end.opt_state))
    ok = distance <= OPTIMIZER_STATE
    reason = f"after {STEPS} updates, relative L2 of the optimizer's state to one device is {distance:.1e}"
    reason += f", {'within' if ok else 'NOT within'} {OPTIMIZER_STATE:.0e} (a wrong gradient scale shows as 1 or more)"
    return _verdict("optimizer", ok, reason, distance=distance, limit=OPTIMIZER_STATE)


def judge_products(workload: TrainWorkload, levers: dict[str, str]) -> tuple[Verdict, ...]:
    """Whether a step that is called 16-bit multiplies in 16 bits. Nothing to say of other precisions."""
    precision = levers.get("precision", "default")
    if precision not in SIXTEEN_BITS:
        return ()
    dtype = SIXTEEN_BITS[precision]
    key = jax.ShapeDtypeStruct((2,), "uint32")
    params, model_state = jax.eval_shape(workload.init, key)
    gradient = jax.value_and_grad(workload.loss, has_aux=True)
    shares = flops.share_of_products(gradient, params, model_state, workload.batch_avals(1), key)
    share = shares.get(dtype, 0.0)
    reason = f"{100 * share:.1f} % of the FLOPs in products are of {dtype} operands"
    ok = share >= MOSTLY
    reason += "" if ok else f", NOT the {100 * MOSTLY:.0f} % that the name promises"
    return (Verdict(name="products", ok=ok, reason=reason, value=share, limit=MOSTLY),)


def judge_part(
    part: str,
    program: Program,
    call: Callable[..., Any],
    workload: TrainWorkload,
    *,
    key: jax.Array,
    batch: Batch,
    flops: float = 0.0,
) -> Verdict:
    """Whether a part of a step computes what it is a part of: its loss, or its answers, are those of one device."""
    device = program.mesh.devices.flat[0]

    def answer(where: jax.Device) -> PyTree:
        state = initial_state(workload, key, device=where)
        with jax.default_device(where):
            return _part_on_one_device(part, workload, state, batch, parts=program.mesh.size)

    try:
        found, note = where_it_fits(answer, device, flops=flops)
    except Unfit as error:
        return dataclasses.replace(unchecked(str(error)), name="part")
    expected = jax.tree.leaves(found)
    with jax.set_mesh(program.mesh):
        _, outputs = call(program.init(key), program.put(batch))
    shown = outputs if part == "inference" else outputs["loss"]
    distance = relative_l2([np.mean(x) if part != "inference" else x for x in jax.tree.leaves(shown)], expected)
    ok = distance <= PART
    what = "answers" if part == "inference" else "loss"
    reason = f"relative L2 of its {what} to one device is {distance:.1e}, {'within' if ok else 'NOT within'} {PART:.0e}"
    reason += f" ({note})" if note else ""
    return _verdict("part", ok, reason, distance=distance, limit=PART)


def _part_on_one_device(part: str, workload: TrainWorkload, state: TrainState, batch: Batch, *, parts: int) -> PyTree:
    def answer(state: TrainState, batch: Batch) -> PyTree:
        if part == "inference":
            assert workload.predict is not None
            return workload.predict(state.params, state.model_state, batch)
        with spread.over(parts=parts):
            return gradients(workload, state, batch)[2]["loss"]

    return jax.device_get(jit_once(answer)(state, batch))


def _floats(tree: PyTree) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree) if jnp.issubdtype(leaf.dtype, jnp.floating)]


def _verdict(name: str, ok: bool, reason: str, *, distance: float, limit: float) -> Verdict:
    value = distance if np.isfinite(distance) else None
    return Verdict(name=name, ok=ok and value is not None, reason=reason, value=value, limit=limit)
