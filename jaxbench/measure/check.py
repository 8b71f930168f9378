# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Correctness in the same row as speed: a program's updates must be those of one device on the same global batch."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench.levers.precision import PRECISION, SIXTEEN_BITS
from jaxbench.measure.memory import Unfit
from jaxbench.measure.oracle import STEPS, Lies, Reference, Trained, initial_state, relative_l2, trained, where_it_fits
from jaxbench.parallel.draws import by_parts
from jaxbench.parallel.program import Program, TrainState, gradients, jit_once
from jaxbench.records.schema import Verdict
from jaxbench.workloads import flops, sharding_context
from jaxbench.workloads.base import KEY, Batch, PyTree, TrainWorkload

REDUCED_PRECISION = 1e-3  # parameters, relative: the default matrix precision of accelerators keeps 8 to 11 bits
MOSTLY = 0.9  # share of the products' FLOPs: what is left in float32 on purpose is small
PART = 1e-2  # relative: a loss or an answer in 16 bits; a part that computes something else is far off
ROUNDING = 3  # times as far as one device's answer is from itself, a strategy's may be from it
SHARE = 0.1  # of how far the updates moved the parameters: what may be further off was not shown to make them
OPTIMIZER_STATE = 3e-2  # relative: leaves room for bfloat16 gradients, none for a wrong scale


def train(program: Program, call: Callable[..., Any], key: jax.Array, batch: Batch) -> Trained:
    """STEPS updates by the compiled step of a strategy.

    Each is waited for: a CPU takes the scratch of a step when that is asked for, so three at once would hold three
    of them (ViT-S/16, 32 images on two devices: 10.0 GiB, waiting 8.3, and with `memory.give_back` 6.9).
    """
    with jax.set_mesh(program.mesh):
        state, placed = program.init(key), program.put(batch)
        for _ in range(STEPS):
            state, _ = jax.block_until_ready(call(state, placed))
        return trained(program.export(state))


def judge(
    actual: Trained,
    expected: Reference,
    workload: TrainWorkload,
    *,
    platform: str = "cpu",
    rounding: Callable[[], float] = lambda: 0.0,
) -> Verdict:
    """The verdict on a program's parameters. Not-a-number never passes.

    rounding: the relative L2 of one device's answer to its own (`oracle.again`), which is asked only where the distance
    is beyond the limit.
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
    said = f"after {STEPS} updates, relative L2 to {expected.how or 'one device'} is {distance:.1e}"
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


def each_proven(actual: Trained, expected: Reference, again: Callable[[], Trained]) -> bool:
    """Whether every single parameter is where one device has it, nearer by far than it was moved: a small one that was
    never reduced does not show in the distance of all.

    again: one device's answer by another program, asked only where one is not. The gradient of a bias before a
    normalisation, or of an attention's keys, is zero but for rounding, which Adam makes into whole steps: where one
    device is as far from itself, nothing is to be seen.
    """
    trees = jax.tree.leaves(actual.params), jax.tree.leaves(expected.end.params), jax.tree.leaves(expected.start)
    far = [
        (place, relative_l2([found], [right]))
        for place, (found, right, before) in enumerate(zip(*trees, strict=True))
        if not relative_l2([found], [right]) <= SHARE * relative_l2([before], [right])
    ]
    if not far:
        return True
    others = jax.tree.leaves(again().params)
    return all(distance <= ROUNDING * relative_l2([others[place]], [trees[1][place]]) for place, distance in far)


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
    precision = PRECISION.of(levers)
    if precision not in SIXTEEN_BITS:
        return ()
    dtype = SIXTEEN_BITS[precision]
    params, model_state = jax.eval_shape(workload.init, KEY)
    gradient = jax.value_and_grad(workload.mean_loss, has_aux=True)
    shares = flops.dot_flop_shares(gradient, params, model_state, workload.batch_avals(1), KEY)
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
    draws: bool = False,
) -> Verdict:
    """Whether a part of a step computes what it is a part of: its loss, or its answers, are those of one device."""
    device = program.mesh.devices.flat[0]

    def answer(where: jax.Device) -> PyTree:
        state = initial_state(workload, key, device=where)
        with jax.default_device(where):
            return _part_on_one_device(part, workload, state, batch, Lies.of(program, draws=draws))

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


def _part_on_one_device(part: str, workload: TrainWorkload, state: TrainState, batch: Batch, lies: Lies) -> PyTree:
    drawn, batch = lies.prepared(workload, state, batch)
    workload = workload if drawn is state else by_parts(workload)

    def answer(state: TrainState, batch: Batch) -> PyTree:
        if part == "inference":
            assert workload.predict is not None
            return workload.predict(state.params, state.model_state, batch)
        with sharding_context.over(parts=1 if state.key.ndim > 1 else lies.parts):
            return gradients(workload, state, batch)[2]["loss"]

    return jax.device_get(jit_once(answer)(drawn, batch))


def _floats(tree: PyTree) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree) if jnp.issubdtype(leaf.dtype, jnp.floating)]


def _verdict(name: str, ok: bool, reason: str, *, distance: float, limit: float) -> Verdict:
    value = distance if np.isfinite(distance) else None
    return Verdict(name=name, ok=ok and value is not None, reason=reason, value=value, limit=limit)
