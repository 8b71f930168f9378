# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Correctness checks: a program must make the same updates as one device does on the same global batch."""

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
MOSTLY = 0.9  # share of the matmul and convolution FLOPs: models keep a few small products in float32 on purpose
PART = 1e-2  # relative: the error of a 16-bit loss or prediction; a wrong computation is much further away
ROUNDING = 3  # a strategy may differ by this many times the distance between two one-device references
SHARE = 0.1  # of the updates' size: a check with a larger error cannot show that the updates were made
OPTIMIZER_STATE = 3e-2  # relative: tolerates bfloat16 gradients, but not a wrong gradient scale


def train(program: Program, call: Callable[..., Any], key: jax.Array, batch: Batch) -> Trained:
    """Makes STEPS updates with a strategy's compiled step.

    Waits for each one: a CPU allocates a step's scratch memory when the step is dispatched, so three steps in flight
    hold three times as much (ViT-S/16, 32 images, two devices: 10.0 GiB; 8.3 waiting; 6.9 with `memory.give_back`).
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
    """The verdict on a program's parameters. NaN never passes.

    rounding: the relative L2 distance between two one-device references (`oracle.again`); called only when the program
    exceeds the limit.
    """
    limit, why = workload.tolerance, workload.tolerance_reason
    if platform != "cpu" and limit < REDUCED_PRECISION:
        limit, why = REDUCED_PRECISION, f"a {platform} computes float32 products in TF32 or bfloat16 by default"
    distance, moved = relative_l2(actual.params, expected.end.params), relative_l2(expected.start, expected.end.params)
    doubt = distance
    if expected.note:  # the host computes in float32 and the device does not, so any strategy differs from it
        limit, why = max(limit, SHARE * moved), expected.note
    elif distance > limit and (alone := rounding()) * ROUNDING > limit:
        limit = doubt = ROUNDING * alone
        why = f"{ROUNDING} times the {alone:.1e} between two one-device references, which is rounding"
    message = f"relative L2 distance to {expected.how or 'one device'} after {STEPS} updates is {distance:.1e}"
    if not distance <= limit:
        ok, reason = False, f"{message}, NOT within {limit:.0e} ({why})"
    elif not doubt < SHARE * moved:
        # Parameters that hardly move agree whatever the strategy does. Neither can a strategy be checked where two
        # one-device references disagree by as much as the parameters move.
        small = f"but the updates changed the parameters by only {moved:.1e}, so this proves nothing"
        ok, reason = False, f"{message}, within {limit:.0e} ({why}), {small}"
    else:
        ok, reason = True, f"{message}, within {limit:.0e} ({why})"
    return _verdict("parameters", ok, reason, distance=distance, limit=limit)


def each_proven(actual: Trained, expected: Reference, again: Callable[[], Trained]) -> bool:
    """Whether each parameter by itself agrees with one device, to within SHARE of its own update. The distance over all
    parameters does not show a small parameter whose gradient was never reduced.

    again: a second one-device reference, computed only when a parameter disagrees. The gradient of a bias before a
    normalization, or of an attention's keys, is zero except for rounding, which Adam scales up to full-size steps.
    Such a parameter may differ by ROUNDING times as much as it does between the two references.
    """
    trees = jax.tree.leaves(actual.params), jax.tree.leaves(expected.end.params), jax.tree.leaves(expected.start)
    far = [
        (index, relative_l2([after], [right]))
        for index, (after, right, before) in enumerate(zip(*trees, strict=True))
        if not relative_l2([after], [right]) <= SHARE * relative_l2([before], [right])
    ]
    if not far:
        return True
    others = jax.tree.leaves(again().params)
    return all(distance <= ROUNDING * relative_l2([others[index]], [trees[1][index]]) for index, distance in far)


def unchecked(reason: str) -> Verdict:
    """The verdict on parameters that have no reference."""
    return Verdict(name="parameters", ok=False, unchecked=True, reason=f"unchecked: {reason}")


def judge_optimizer(actual: Trained, expected: Reference) -> Verdict:
    """The verdict on the optimizer's state, which reveals a wrong gradient scale that the parameters hide.

    Adam normalizes the gradient, so one that is n times too large moves the parameters correctly; but Adam's running
    means are then n and n^2 times too large.
    """
    distance = relative_l2(_floats(actual.opt_state), _floats(expected.end.opt_state))
    ok = distance <= OPTIMIZER_STATE
    reason = f"relative L2 distance of the optimizer's state to one device after {STEPS} updates is {distance:.1e}"
    reason += f", {'within' if ok else 'NOT within'} {OPTIMIZER_STATE:.0e} (a wrong gradient scale gives 1 or more)"
    return _verdict("optimizer", ok, reason, distance=distance, limit=OPTIMIZER_STATE)


def judge_products(workload: TrainWorkload, levers: dict[str, str]) -> tuple[Verdict, ...]:
    """Whether a 16-bit step really multiplies in 16 bits; () for other precisions."""
    precision = PRECISION.of(levers)
    if precision not in SIXTEEN_BITS:
        return ()
    dtype = SIXTEEN_BITS[precision]
    params, model_state = jax.eval_shape(workload.init, KEY)
    gradient = jax.value_and_grad(workload.mean_loss, has_aux=True)
    shares = flops.dot_flop_shares(gradient, params, model_state, workload.batch_avals(1), KEY)
    share = shares.get(dtype, 0.0)
    reason = f"{100 * share:.1f} % of the FLOPs in products have {dtype} operands"
    ok = share >= MOSTLY
    reason += "" if ok else f", NOT the {100 * MOSTLY:.0f} % that precision={precision} promises"
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
    """Whether a part of a step gives the same loss (for inference, the same predictions) as one device."""
    device = program.mesh.devices.flat[0]

    def run(on: jax.Device) -> PyTree:
        state = initial_state(workload, key, device=on)
        with jax.default_device(on):
            return _part_on_one_device(part, workload, state, batch, Lies.of(program, draws=draws))

    try:
        result, note = where_it_fits(run, device, flops=flops)
    except Unfit as error:
        return dataclasses.replace(unchecked(str(error)), name="part")
    expected = jax.tree.leaves(result)
    with jax.set_mesh(program.mesh):
        _, outputs = call(program.init(key), program.put(batch))
    if part == "inference":
        what, actual = "predictions", jax.tree.leaves(outputs)
    else:
        what, actual = "loss", [np.mean(x) for x in jax.tree.leaves(outputs["loss"])]
    distance = relative_l2(actual, expected)
    ok = distance <= PART
    reason = f"relative L2 distance of the {what} to one device is {distance:.1e}, "
    reason += f"{'within' if ok else 'NOT within'} {PART:.0e}" + (f" ({note})" if note else "")
    return _verdict("part", ok, reason, distance=distance, limit=PART)


def _part_on_one_device(part: str, workload: TrainWorkload, state: TrainState, batch: Batch, lies: Lies) -> PyTree:
    drawn, batch = lies.prepared(workload, state, batch)
    workload = workload if drawn is state else by_parts(workload)

    def run(state: TrainState, batch: Batch) -> PyTree:
        if part == "inference":
            assert workload.predict is not None
            return workload.predict(state.params, state.model_state, batch)
        with sharding_context.over(parts=1 if state.key.ndim > 1 else lies.parts):
            return gradients(workload, state, batch)[2]["loss"]

    return jax.device_get(jit_once(run)(drawn, batch))


def _floats(tree: PyTree) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree) if jnp.issubdtype(leaf.dtype, jnp.floating)]


def _verdict(name: str, ok: bool, reason: str, *, distance: float, limit: float) -> Verdict:
    value = distance if np.isfinite(distance) else None
    return Verdict(name=name, ok=ok and value is not None, reason=reason, value=value, limit=limit)
