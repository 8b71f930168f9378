# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Correctness checks: a program must make the same updates as one device makes on the same global batch."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench.levers import PRECISION, SIXTEEN_BITS
from jaxbench.measure.oracle import (
    STEPS,
    BatchLayout,
    Reference,
    TrainedState,
    initial_state,
    relative_l2,
    trained,
    where_it_fits,
)
from jaxbench.parallel import multihost
from jaxbench.parallel.draws import by_parts
from jaxbench.parallel.program import Program, TrainState, gradients, jit_once
from jaxbench.records.schema import Verdict
from jaxbench.workloads import flops, sharding_context
from jaxbench.workloads.base import KEY, Batch, PyTree, TrainWorkload
from jaxbench.workloads.levers.freeze import not_frozen

REDUCED_PRECISION = 1e-3  # parameters, relative: the default matrix precision of accelerators keeps 8 to 11 bits
MOSTLY = 0.9  # share of the matmul and convolution FLOPs: models keep a few small products in float32 on purpose
PART = 1e-2  # relative: the error of a 16-bit loss or prediction; a wrong computation differs by much more
ROUNDING = 3  # a strategy may differ by this many times the distance between two one-device references
SHARE = 0.1  # of the size of the updates: a check with a larger error cannot show that the updates were made
OPTIMIZER_STATE = 3e-2  # relative: tolerates bfloat16 gradients, but not a wrong gradient scale


def train(program: Program, call: Callable[..., Any], key: jax.Array, batch: Batch, count: int = STEPS) -> TrainedState:
    """Makes `count` updates with a strategy's compiled step, and returns the state as host arrays.

    Waits for each update. A CPU allocates the scratch memory of a step when the step is dispatched, so three steps in
    flight hold three times as much. ViT-S/16 with 32 images on two devices: 10.0 GiB without waiting, 8.3 GiB with it,
    6.9 GiB with `memory.give_back` too.
    """
    call = program.members.after_barrier(call)
    with jax.set_mesh(program.mesh):
        state, placed = program.init(key), program.put(batch)
        for _ in range(count):
            state, _ = jax.block_until_ready(call(state, placed))
        return trained(program.export(state))


def judge(
    actual: TrainedState,
    expected: Reference,
    workload: TrainWorkload,
    *,
    platform: str = "cpu",
    rounding: Callable[[], float] = lambda: 0.0,
    updates: int | None = None,
) -> Verdict:
    """The verdict on all parameters of a program, compared as one vector. NaN never passes.

    rounding: returns the relative L2 distance between two one-device references (`oracle.again`). It is called only
    when the program exceeds the limit. updates: how many were made; None: as many as for `expected`.
    """
    updates = updates or expected.count
    limit, why = workload.tolerance, workload.tolerance_reason
    if platform != "cpu" and limit < REDUCED_PRECISION:
        limit, why = REDUCED_PRECISION, f"a {platform} computes float32 products in TF32 or bfloat16 by default"
    distance, moved = relative_l2(actual.params, expected.end.params), relative_l2(expected.start, expected.end.params)
    doubt = distance
    if expected.note:  # the host computed it in float32 and the device does not, so any strategy differs from it
        limit, why = max(limit, SHARE * moved), expected.note
    elif distance > limit and (alone := rounding()) * ROUNDING > limit:
        limit = doubt = ROUNDING * alone
        why = f"{ROUNDING} times the {alone:.1e} between two one-device references, which is rounding"
    message = f"relative L2 distance to {expected.how or 'one device'} after {updates} updates is {distance:.1e}"
    if not distance <= limit:
        ok, reason = False, f"{message}, NOT within {limit:.0e} ({why})"
    elif not doubt < SHARE * moved:
        # Parameters that hardly move agree whatever the strategy does. A strategy cannot be checked either if two
        # one-device references disagree by as much as the parameters move.
        small = f"but the updates changed the parameters by only {moved:.1e}, so this proves nothing"
        if not moved:
            small = f"but no parameter changed in {updates} updates, so this proves nothing (is the learning rate 0?)"
        reason = f"unchecked: {message}, within {limit:.0e} ({why}), {small}"
        value = distance if np.isfinite(distance) else None
        return Verdict(name="parameters", ok=False, unchecked=True, reason=reason, value=value, limit=limit)
    else:
        ok, reason = True, f"{message}, within {limit:.0e} ({why})"
    return _verdict("parameters", ok, reason, distance=distance, limit=limit)


def judge_each(verdict: Verdict, actual: TrainedState, expected: Reference, others: Iterable[TrainedState]) -> Verdict:
    """The verdict of `judge`, failed if a single parameter (a leaf) differs from one device by more than SHARE of its
    own update. The distance over all parameters does not reveal that the gradient of a small one was never reduced.

    others: as in `farthest`. If the reference comes from the host, which rounds differently, only `judge` decides.
    """
    if not verdict.ok or expected.note:
        return verdict
    name, share = farthest(actual, expected, others)
    if share <= SHARE:
        return dataclasses.replace(verdict, reason=f"{verdict.reason}; each parameter's update is within {SHARE} too")
    reason = f"but '{name}' by itself is {share:.1e} of its update away, NOT within {SHARE}: is it never reduced?"
    return _verdict(verdict.name, False, f"{verdict.reason}, {reason}", distance=share, limit=SHARE)


def each_proven(actual: TrainedState, expected: Reference, others: Iterable[TrainedState]) -> bool:
    """Whether each single parameter agrees with one device to within SHARE of its own update."""
    return farthest(actual, expected, others)[1] <= SHARE


def farthest(actual: TrainedState, expected: Reference, others: Iterable[TrainedState]) -> tuple[str, float]:
    """(path, |p - q| / |q - start|) of the parameter that differs most from one device, relative to its own update.

    p is the parameter after the program's updates, q after those of one device.

    others: further one-device results (`oracle.nudged`), computed only while a parameter exceeds SHARE. The gradient
    of a bias before a normalization, or of the key projection's bias in attention, is zero except for rounding, and
    Adam scales that up to full-size steps. Such a parameter may differ by ROUNDING times as much as another one-device
    result does.
    """
    paths = [path for path, _ in jax.tree.leaves_with_path(actual.params)]
    trees = [jax.tree.leaves(tree) for tree in (actual.params, expected.end.params, expected.start)]
    shares = [_share(*leaves) for leaves in zip(*trees, strict=True)]
    more = iter(others)
    while (far := [i for i, share in enumerate(shares) if not share <= SHARE]) and (other := next(more, None)):
        rounded = jax.tree.leaves(other.params)
        for i in far:
            after, right = trees[0][i], trees[1][i]
            if relative_l2([after], [right]) <= ROUNDING * relative_l2([rounded[i]], [right]):
                shares[i] = SHARE
    index = max(range(len(shares)), key=lambda i: math.inf if math.isnan(shares[i]) else shares[i])
    return jax.tree_util.keystr(paths[index], simple=True, separator="/"), shares[index]


def _share(after: np.ndarray, right: np.ndarray, before: np.ndarray) -> float:
    """|after - right| / |right - before|; 0 if nothing moved and nothing differs, inf if only the program moved."""
    distance, moved = relative_l2([after], [right]), relative_l2([before], [right])
    return distance / moved if moved else math.inf if distance else distance


def unchecked(reason: str) -> Verdict:
    """The verdict on parameters that have no reference."""
    return Verdict(name="parameters", ok=False, unchecked=True, reason=f"unchecked: {reason}")


def judge_optimizer(actual: TrainedState, expected: Reference) -> Verdict:
    """The verdict on the optimizer state, which reveals a wrong gradient scale that the parameters hide.

    Adam normalizes the gradient, so a gradient that is n times too large still moves the parameters correctly. Adam's
    running means are then n and n^2 times too large.
    """
    distance = relative_l2(_floats(actual.opt_state), _floats(expected.end.opt_state))
    ok = distance <= OPTIMIZER_STATE
    reason = f"relative L2 distance of the optimizer's state to one device after {expected.count} updates "
    reason += f"is {distance:.1e}, {'within' if ok else 'NOT within'} {OPTIMIZER_STATE:.0e} "
    reason += "(a wrong gradient scale gives 1 or more)"
    return _verdict("optimizer", ok, reason, distance=distance, limit=OPTIMIZER_STATE)


def judge_state(
    actual: TrainedState, expected: Reference, others: Iterable[TrainedState], *, limit: float
) -> tuple[Verdict, ...]:
    """The verdict on the model's state, such as batch statistics; () for a model without state.

    As for the parameters, the error of each array must be within SHARE of the array's change on one device, or within
    `limit` of the array, relative. A count or a sum over only one device's part of the batch fails both.
    """

    def states(trained: TrainedState) -> TrainedState:
        return dataclasses.replace(trained, params=trained.model_state)

    right = dataclasses.replace(expected, start=not_frozen(expected.model_state), end=states(expected.end))
    if not jax.tree.leaves(right.start):
        return ()
    near = jax.tree.map(lambda x, y: y if relative_l2([x], [y]) <= limit else x, actual.model_state, right.end.params)
    name, share = farthest(dataclasses.replace(actual, params=near), right, map(states, others))
    reason = f"after {STEPS} updates the model's state '{name}' differs from one device by {share:.1e} of its change"
    reason += f", {'within' if share <= SHARE else 'NOT within'} {SHARE}"
    return (_verdict("state", share <= SHARE, reason, distance=share, limit=SHARE),)


def judge_products(workload: TrainWorkload, levers: dict[str, str]) -> tuple[Verdict, ...]:
    """The verdict "products": whether a 16-bit step really multiplies in 16 bits; () for other precisions."""
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


def judge_inputs(batch: Batch) -> Verdict:
    """The verdict "inputs": whether the batch has values. Products of zeros take less power and, on some devices, less
    time.

    The largest field and the largest floating-point field must not be all zeros. A mask or a weight may be constant.
    """
    by_size = sorted(batch, key=lambda name: -batch[name].size)
    floats = [name for name in by_size if jnp.issubdtype(batch[name].dtype, jnp.floating)]
    inputs = dict.fromkeys([*by_size[:1], *floats[:1]])
    empty = [name for name in inputs if not np.any(np.asarray(batch[name]))]
    reason = f"the inputs {', '.join(inputs)} of the batch have values other than zero"
    if empty:
        reason = f"every input value of the batch is zero: '{empty[0]}', so what is timed is NOT training on data"
    return Verdict(name="inputs", ok=not empty, reason=reason, value=len(empty), limit=0)


@dataclasses.dataclass(frozen=True)
class ExpectedPart:
    """One device's result for a part of a step: its predictions or its loss, and a note if the host computed it."""

    what: str
    leaves: list[np.ndarray]
    note: str


def expected_part(
    part: str,
    program: Program,
    workload: TrainWorkload,
    *,
    key: jax.Array,
    batch: Batch,
    flops: float = 0.0,
    draws: bool = False,
) -> ExpectedPart:
    """One device's loss (for inference, its predictions) of the first state. Raises Unfit if no device can compute it.

    key: the run's, uint32 (2,). flops: of the whole part. draws: whether the loss uses its random key.
    """

    def run(on: jax.Device) -> PyTree:
        state = initial_state(workload, key, device=on)
        with jax.default_device(on):
            return _part_on_one_device(part, workload, state, batch, BatchLayout.of(program, draws=draws))

    result, note = where_it_fits(run, multihost.first_here(program.mesh.devices.flat), flops=flops)
    return ExpectedPart("predictions" if part == "inference" else "loss", jax.tree.leaves(result), note)


def judge_part(
    program: Program, call: Callable[..., Any], state: TrainState, batch: Batch, expected: ExpectedPart
) -> Verdict:
    """The verdict "part": whether a part of a step computes what one device computes.

    call: the compiled part; it takes the state and may donate it. batch: canonical.
    """
    with jax.set_mesh(program.mesh):
        _, outputs = program.members.after_barrier(call)(state, program.put(batch))
    if expected.what == "predictions":
        actual = jax.tree.leaves(multihost.on_host(outputs))
    else:
        actual = [np.mean(x) for x in jax.tree.leaves(multihost.on_host(outputs["loss"]))]
    distance = relative_l2(actual, expected.leaves)
    ok = distance <= PART
    reason = f"relative L2 distance of the {expected.what} to one device is {distance:.1e}, "
    reason += f"{'within' if ok else 'NOT within'} {PART:.0e}" + (f" ({expected.note})" if expected.note else "")
    return _verdict("part", ok, reason, distance=distance, limit=PART)


def _part_on_one_device(
    part: str, workload: TrainWorkload, state: TrainState, batch: Batch, layout: BatchLayout
) -> PyTree:
    drawn, batch = layout.prepared(workload, state, batch)
    workload = workload if drawn is state else by_parts(workload)

    def run(state: TrainState, batch: Batch) -> PyTree:
        if part == "inference":
            assert workload.predict is not None
            return workload.predict(state.params, state.model_state, batch)
        with sharding_context.over(parts=1 if state.key.ndim > 1 else layout.parts):
            return gradients(workload, state, batch)[2]["loss"]

    return jax.device_get(jit_once(run)(drawn, batch))


def _floats(tree: PyTree) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree) if jnp.issubdtype(leaf.dtype, jnp.floating)]


def _verdict(name: str, ok: bool, reason: str, *, distance: float, limit: float) -> Verdict:
    value = distance if np.isfinite(distance) else None
    return Verdict(name=name, ok=ok and value is not None, reason=reason, value=value, limit=limit)
