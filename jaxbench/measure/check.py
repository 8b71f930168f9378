# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Correctness checks: a program must make the same updates as one device makes on the same global batch.

The checks before the first round show that a program's first updates are correct. They do not show that the timed steps
do the same work, so the state that a round leaves behind is checked too. An ablation that communicates must send what
the step sends, and one without communication must do all the work of the step.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench.core.program import Call, Program, TrainState
from jaxbench.core.schema import Collective, CompileReport, Verdict
from jaxbench.core.trees import ArrayTree, entries
from jaxbench.core.workload import KEY, Batch, TrainWorkload
from jaxbench.digits import counted
from jaxbench.errors import present
from jaxbench.levers import PRECISION, SIXTEEN_BITS
from jaxbench.measure import memory
from jaxbench.measure.reference import (
    STEPS,
    BatchLayout,
    Reference,
    TrainedState,
    initial_state,
    relative_l2,
    trained,
    where_it_fits,
)
from jaxbench.measure.step_facts import loss_of
from jaxbench.parallel import multihost
from jaxbench.parallel.step import gradients, jit_once
from jaxbench.processes.group import members_of
from jaxbench.workloads import flops, sharding_context
from jaxbench.workloads.levers import not_frozen
from jaxbench.workloads.rng_keys import by_parts

REDUCED_PRECISION = 1e-3  # parameters, relative: the default matrix precision of accelerators keeps 8 to 11 bits
MOSTLY = 0.9  # share of the matmul and convolution FLOPs: models keep a few small products in float32 on purpose
PART = 1e-2  # relative: the error of a 16-bit loss or prediction; a wrong computation differs by much more
ROUNDING = 3  # a strategy may differ by this many times the distance between two one-device references
SHARE = 0.1  # relative to the updates: a check with a larger error cannot show that they were made
OPTIMIZER_STATE = 3e-2  # relative: tolerates bfloat16 gradients, but not a wrong gradient scale
# What a check found.
REASONS = {
    "each within": "{others}; each parameter's update is within {limit} too",
    "one beyond": "{others}, but '{name}' by itself is {share:.1e} of its update away, NOT within {limit}: is it never "
    "reduced?",
    "other devices": "the compiled step uses {used} devices, NOT the {count} that were asked for{idle_one}",
    "not on all": "an input of shape {shape} does NOT lie on all {count} devices",
    "other parts": "the batch lies in {found} parts on {count} devices, NOT in {parts}",
    "same work": "the {count} devices hold the same examples and the same parameters and send nothing, so they do NOT "
    "share the work",
    "devices": "the compiled step uses {asked} asked for{share}",
    "only one": "only one of the program and the step has {kinds}",
    "neither": "neither the program nor the step has a collective",
}
TIMED_UPDATE, TIMED_PART = "timed update", "timed part"
# XLA merges reductions of equal gradients (such as those of biases that are added) in the step only. It may also drop
# products that the ablated program no longer needs.
SAME_WORK = 0.02


def train(program: Program, call: Call, key: jax.Array, batch: Batch, count: int = STEPS) -> TrainedState:
    """Makes `count` updates with a strategy's compiled step, and returns the state as host arrays."""
    call = members_of(program.mesh).after_barrier(call)
    with jax.set_mesh(program.mesh):
        state, placed = program.init(key), program.put(batch)
        for _ in range(count):
            # A CPU allocates the scratch memory of a step when the step is dispatched, so three steps in flight hold
            # three times as much. ViT-S/16 with 32 images on two devices: 10.0 GiB without waiting, 8.3 GiB with it,
            # 6.9 GiB with `memory.give_back` too.
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

    rounding: returns the relative L2 distance between two one-device references (`rerun`). It is called only when the
    program exceeds the limit. updates: how many were made; None: as many as for `expected`.
    """
    updates = updates or expected.count
    limit, why = workload.tolerance, workload.tolerance_reason
    if platform != "cpu" and limit < REDUCED_PRECISION:
        limit, why = REDUCED_PRECISION, f"a {platform} computes float32 products in TF32 or bfloat16 by default"
    distance, moved = relative_l2(actual.params, expected.end.params), relative_l2(expected.start, expected.end.params)
    doubt = distance  # the uncertainty of the check: it must be small compared with the updates
    if expected.note:  # the host computed it in float32 and the device does not, so any strategy differs from it
        limit, why = max(limit, SHARE * moved), expected.note
    # The limit grows only as far as one device differs from itself: a chaotic model excuses rounding, not a wrong
    # gradient.
    elif distance > limit and (alone := rounding()) * ROUNDING > limit:
        limit = doubt = ROUNDING * alone
        why = f"{ROUNDING} times the {alone:.1e} between two one-device references, which is rounding"
    made, other = counted(updates, "update"), expected.how or "one device"
    message = f"relative L2 distance to {other} after {made} is {distance:.1e}"
    if not distance <= limit:  # not `>`: a NaN must fail
        # The reason belongs to the limit. A distance above it has another one, which `first_step` may find.
        ok, reason = False, f"{message}, NOT within {limit:.0e}, the limit for correct programs ({why})"
    elif not doubt < SHARE * moved:
        # Parameters that hardly move agree whatever the strategy does. A strategy cannot be checked either if two
        # one-device references disagree by as much as the parameters move.
        small = f"but the updates changed the parameters by only {moved:.1e}, so this proves nothing"
        if not moved:
            small = f"but no parameter changed in {made}, so this proves nothing (is the learning rate 0?)"
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
        return dataclasses.replace(verdict, reason=REASONS["each within"].format(others=verdict.reason, limit=SHARE))
    reason = REASONS["one beyond"].format(others=verdict.reason, name=name, share=share, limit=SHARE)
    return _verdict(verdict.name, False, reason, distance=share, limit=SHARE)


def each_proven(actual: TrainedState, expected: Reference, others: Iterable[TrainedState]) -> bool:
    """Whether each single parameter agrees with one device to within SHARE of its own update."""
    return farthest(actual, expected, others)[1] <= SHARE


def farthest(actual: TrainedState, expected: Reference, others: Iterable[TrainedState]) -> tuple[str, float]:
    """(path, |p - q| / |q - start|) of the parameter that differs most from one device, relative to its own update.

    p is the parameter after the program's updates, q after those of one device.

    others: further one-device results (`perturbed`), computed only while a parameter exceeds SHARE. The gradient of a
    bias before a normalization, or of the key projection's bias in attention, is zero except for rounding, and Adam
    scales that up to full-size steps. Such a parameter may differ by ROUNDING times as much as another one-device
    result does.
    """
    paths = [path for path, _ in jax.tree.leaves_with_path(actual.params)]
    trees = [jax.tree.leaves(tree) for tree in (actual.params, expected.end.params, expected.start)]
    shares: list[float] = []
    for after, right, before in zip(*trees, strict=True):
        distance, moved = relative_l2([after], [right]), relative_l2([before], [right])
        # A parameter that one device leaves alone must not move at all.
        shares.append(distance / moved if moved else math.inf if distance else distance)
    more = iter(others)
    # Each further result costs a reference run, so they are drawn one by one while a parameter is still too far away.
    while (far := [i for i, share in enumerate(shares) if not share <= SHARE]) and (other := next(more, None)):
        rounded = jax.tree.leaves(other.params)
        for i in far:
            after, right = trees[0][i], trees[1][i]
            if relative_l2([after], [right]) <= ROUNDING * relative_l2([rounded[i]], [right]):
                shares[i] = SHARE  # excused: its update is rounding
    # A NaN compares as false with every number, so it must be made the largest explicitly.
    index = max(range(len(shares)), key=lambda i: math.inf if math.isnan(shares[i]) else shares[i])
    return jax.tree_util.keystr(paths[index], simple=True, separator="/"), shares[index]


def unchecked(reason: str) -> Verdict:
    """The verdict on parameters that have no reference."""
    return Verdict(name="parameters", ok=False, unchecked=True, reason=f"unchecked: {reason}")


def judge_optimizer(actual: TrainedState, expected: Reference) -> Verdict:
    """The verdict on the optimizer state, which reveals a wrong gradient scale that the parameters hide.

    Adam normalizes the gradient, so a gradient that is n times too large still moves the parameters correctly. Adam's
    running means are then n and n^2 times too large.
    """

    def floats(tree: ArrayTree) -> list[np.ndarray]:
        return [np.asarray(leaf) for leaf in jax.tree.leaves(tree) if jnp.issubdtype(leaf.dtype, jnp.floating)]

    # Only floats: step counters are equal in every program, and their large values would hide a wrong moment.
    distance = relative_l2(floats(actual.opt_state), floats(expected.end.opt_state))
    ok = distance <= OPTIMIZER_STATE
    reason = f"relative L2 distance of the optimizer's state to one device after {counted(expected.count, 'update')} "
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
    # Arrays within `limit` count as equal: `farthest` compares with the change, which may be near zero.
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
    # Counted in the jaxpr, before the compiler may upcast products that the hardware does not have.
    shares = flops.dot_flop_shares(gradient, params, model_state, workload.batch_avals(workload.least), KEY)
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
    inputs = dict.fromkeys([*by_size[:1], *floats[:1]])  # often the same field
    empty = [name for name in inputs if not np.any(np.asarray(batch[name]))]
    has = "has" if len(inputs) == 1 else "have"
    reason = f"{' and '.join(inputs)} of the batch {has} values other than zero"
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
    part: str, program: Program, workload: TrainWorkload, *, key: jax.Array, batch: Batch, flops: float, uses_key: bool
) -> ExpectedPart:
    """One device's loss (for inference, its predictions) of the first state. Raises Unfit if no device can compute it.

    key: the run's, uint32 (2,). flops: of the whole part. uses_key: whether the loss uses its random key.
    """
    layout = BatchLayout.of(program, uses_key=uses_key)

    def run(on: jax.Device) -> ArrayTree:
        state = initial_state(workload, key, device=on)
        with jax.default_device(on):
            drawn, ordered = layout.prepared(workload, state, batch)
            one = workload if drawn is state else by_parts(workload)

            def compute(state: TrainState, batch: Batch) -> ArrayTree:
                if part == "inference":
                    return present(one.predict)(state.params, state.model_state, batch)
                with sharding_context.over(parts=1 if state.key.ndim > 1 else layout.parts):
                    return gradients(one, state, batch)[2]["loss"]

            return jax.device_get(jit_once(compute)(drawn, ordered))

    result, note = where_it_fits(run, multihost.first_here(program.mesh.devices.flat), flops=flops)
    return ExpectedPart("predictions" if part == "inference" else "loss", jax.tree.leaves(result), note)


def judge_part(program: Program, call: Call, state: TrainState, batch: Batch, expected: ExpectedPart) -> Verdict:
    """The verdict "part": whether a part of a step computes what one device computes.

    call: the compiled part; it takes the state and may donate it. batch: canonical.
    """
    with jax.set_mesh(program.mesh):
        _, outputs = members_of(program.mesh).after_barrier(call)(state, program.put(batch))
    if expected.what == "predictions":
        actual = jax.tree.leaves(multihost.on_host(outputs))
    else:
        # The devices average their own examples, so the mean over devices is the loss of the batch.
        actual = [np.mean(x) for x in jax.tree.leaves(multihost.on_host(entries(outputs)["loss"]))]
    distance = relative_l2(actual, expected.leaves)
    ok = distance <= PART
    reason = f"relative L2 distance of the {expected.what} to one device is {distance:.1e}, "
    reason += f"{'within' if ok else 'NOT within'} {PART:.0e}" + (f" ({expected.note})" if expected.note else "")
    return _verdict("part", ok, reason, distance=distance, limit=PART)


def _verdict(name: str, ok: bool, reason: str, *, distance: float, limit: float) -> Verdict:
    """A verdict on a distance. A distance that is not finite is never ok."""
    value = distance if np.isfinite(distance) else None
    return Verdict(name=name, ok=ok and value is not None, reason=reason, value=value, limit=limit)


Again = Callable[[Reference, TrainState, int], TrainedState]


def judge_timed_state(state: TrainState, steps: int) -> tuple[Verdict, ...]:
    """Whether the parameters are finite and the step counter is `steps`, on every device.

    On an accelerator it compiles one small program for the shapes of a device's parameters, outside the timed region.
    """
    bad: dict[str, int] = {}
    shards: dict[jax.Device, dict[str, jax.Array]] = {}  # each device counts in its own, so no device waits for another
    for path, leaf in jax.tree.leaves_with_path(state.params):
        if jnp.issubdtype(leaf.dtype, jnp.inexact):
            for shard in leaf.addressable_shards:
                if shard.replica_id == 0:  # a replicated value counts once
                    name = jax.tree_util.keystr(path, simple=True, separator="/")
                    shards.setdefault(shard.device, {})[name] = shard.data
    for device, held in shards.items():
        for name, count in _not_finite(device, held).items():
            bad[name] = bad.get(name, 0) + int(count)
    wrong = {name: count for name, count in bad.items() if count}
    reason = "every parameter is finite after the timed steps"
    if wrong:
        first, count = next(iter(wrong.items()))
        reason = f"after the timed steps {count:,} values of the parameter '{first}' are NOT finite"
        reason += f", and {len(wrong) - 1} more parameters" if len(wrong) > 1 else ""
    finite = Verdict(name="finite", ok=not wrong, reason=reason, value=sum(wrong.values()), limit=0)
    return finite, judge_steps(state, steps)


def _not_finite(device: jax.Device, arrays: dict[str, jax.Array]) -> dict[str, int]:
    """How many numbers of each array are not finite. The arrays of a CPU are the host's, so nothing is compiled."""
    if device.platform == "cpu":
        return {name: int(np.count_nonzero(~np.isfinite(np.asarray(x)))) for name, x in arrays.items()}
    return {name: int(count) for name, count in jax.device_get(_count_not_finite()(arrays)).items()}


@functools.cache
def _count_not_finite() -> Callable[[dict[str, jax.Array]], dict[str, jax.Array]]:
    return jit_once(lambda arrays: {name: jnp.sum(~jnp.isfinite(x)) for name, x in arrays.items()})


def counted_steps(state: TrainState) -> int:
    """The step counter of the state on the first device: the number of updates that it has counted."""
    return int(np.ravel(state.step.addressable_shards[0].data)[0])


def judge_steps(state: TrainState, steps: int) -> Verdict:
    """Whether the step counter of each device is `steps`."""
    found = {int(number) for shard in state.step.addressable_shards for number in np.ravel(shard.data)}
    wrong = max(abs(number - steps) for number in found)
    ticks = " and ".join(map(str, sorted(found)))
    ticks = counted(min(found), "update") if len(found) == 1 else f"{ticks} updates"
    reason = f"the state counted {ticks} in {counted(steps, 'step')}" + (", NOT one for each" if wrong else "")
    return Verdict(name="steps", ok=not wrong, reason=reason, value=wrong, limit=0)


def judge_update(
    program: Program,
    call: Call,
    state: TrainState,
    batch: Batch,
    *,
    key: jax.Array,
    reference: Reference,
    workload: TrainWorkload,
    platform: str,
    again: Again,
) -> tuple[Verdict, float | None]:
    """(the verdict on one more update of the timed state, the loss before that update). Donates the state.

    The update must equal one device's update of the same state. A model that has learnt its batch hardly moves, and
    then any update agrees. If one update therefore proves nothing, the program repeats the updates of the reference
    from its first state, with the step counter set to the timed steps.

    batch: canonical. again: (reference, state, updates) -> a second reference's result, for `judge`.
    """

    def judged(state: TrainState, updates: int) -> tuple[Verdict, float | None]:
        before, actual, loss = _updated(program, call, state, batch, updates)
        memory.give_back()
        expected = reference.of(before, batch, updates)

        def rounding() -> float:
            return relative_l2(again(expected, before, updates).params, expected.end.params)

        verdict = judge(actual, expected, workload, platform=platform, rounding=rounding, updates=updates)
        return verdict, loss

    timed = counted_steps(state)
    (verdict, loss), after = judged(state, 1), f"from the state after {counted(timed, 'timed step')}"
    # It is within its limit, but `judge` found that so small an update proves nothing.
    unmoved = not verdict.ok and verdict.value is not None and verdict.value <= (verdict.limit or 0)
    # Processes may round differently, but all must run the same programs next: the leader decides.
    if members_of(program.mesh).broadcast(unmoved):
        with jax.set_mesh(program.mesh):
            first = program.init(key)
            # The learning rate and Adam's bias correction depend on the step, so the repeated updates use the timed
            # one.
            step = multihost.put(np.full(first.step.shape, timed, first.step.dtype), first.step.sharding)
        verdict, _ = judged(dataclasses.replace(first, step=step), reference.count)
        after = f"from the first state as step {timed}, because the timed one hardly moves"
    return dataclasses.replace(verdict, name=TIMED_UPDATE, reason=f"{after}: {verdict.reason}"), loss


def judge_timed_part(program: Program, call: Call, state: TrainState, batch: Batch, expected: ExpectedPart) -> Verdict:
    """Whether one more call of a part of a step, from the timed state, computes what one device computes.

    Donates the state. Such a part updates nothing, so the timed state must still equal the first one, and this call
    does the same work as the timed calls.
    """
    verdict = judge_part(program, call, state, batch, expected)
    return dataclasses.replace(verdict, name=TIMED_PART, reason=f"from the timed state: {verdict.reason}")


def _updated(
    program: Program, call: Call, state: TrainState, batch: Batch, updates: int
) -> tuple[TrainState, TrainedState, float | None]:
    """(the canonical state before the updates, the state after them, the loss of the first). Donates `state`."""
    call = members_of(program.mesh).after_barrier(call)
    with jax.set_mesh(program.mesh):
        # Host arrays that share no memory with the devices: the next step overwrites the state.
        before = jax.tree.map(lambda x: np.array(jax.device_get(x), copy=True), program.export(state))
        placed = program.put(batch)
        state, first = jax.block_until_ready(call(state, placed))
        for _ in range(updates - 1):
            state, _ = jax.block_until_ready(call(state, placed))
        return before, trained(program.export(state)), loss_of(first)


def judge_devices(
    asked: Sequence[jax.Device],
    parts: int | None,
    state: TrainState,
    batch: ArrayTree,
    collectives: Sequence[Collective],
) -> Verdict:
    """The verdict "devices": whether a step runs on the devices of its point, each with its own share of the work.

    The check reads the shardings of the compiled step's inputs, which every call enforces. It does not trust the
    strategy: one that is given two devices and uses one sends nothing, which is what one device is expected to send.

    asked: the devices of the point. parts: the number of parts into which their mesh splits the batch; None: as many as
    it lies in, in a user's own step. state, batch: the inputs of the compiled step, as shapes with shardings.
    collectives: the counts of the step.
    """

    def verdict(why: str, *, idle: int, **facts: object) -> Verdict:
        return Verdict(name="devices", ok=not idle, reason=REASONS[why].format(**facts), value=idle, limit=0)

    inputs, count = jax.tree.leaves((state, batch)), len(asked)
    used = {device for leaf in inputs for device in leaf.sharding.device_set}
    if used != {*asked}:
        idle = [str(device) for device in asked if device not in used]
        named = f": '{idle[0]}' is idle" if idle else ""
        return verdict("other devices", used=len(used), count=count, idle=max(1, len(idle)), idle_one=named)
    if partial := [leaf for leaf in inputs if leaf.sharding.device_set != used]:
        return verdict("not on all", shape=partial[0].shape, count=count, idle=1)
    lies_in = [_parts_of(leaf) for leaf in jax.tree.leaves(batch)]
    if parts is None:
        parts = max(lies_in, default=1)
    elif wrong := [found for found in lies_in if found != parts]:
        return verdict("other parts", found=wrong[0], count=count, parts=parts, idle=1)
    split = any(_parts_of(leaf) > 1 for leaf in jax.tree.leaves(state.params))
    # More devices than parts of the batch is legal only if they split the model, or exchange results.
    if count > parts and not split and not any(each.elements for each in collectives):
        return verdict("same work", count=count, idle=count - parts)
    share = f", each with 1/{parts} of the batch" if parts > 1 else ", each with a part of the model" if split else ""
    asked = "the one device" if count == 1 else f"the {count} devices"
    return verdict("devices", asked=asked, share=share, idle=0)


def _parts_of(leaf: jax.ShapeDtypeStruct) -> int:
    """The number of different parts of an array that its devices hold."""
    indices = leaf.sharding.devices_indices_map(leaf.shape)
    return len({str(index) for index in indices.values()})


def judge_host_calls(calls: tuple[str, ...]) -> Verdict:
    """The verdict "host": the step must run without the host. calls: as `hlo.operations.host_calls` returns them."""
    reason = "the compiled step has no callback, infeed or outfeed: nothing comes from the host"
    if calls:
        reason = f"the compiled step does NOT run by itself, it waits for the host: {', '.join(calls)}"
    return Verdict(name="host", ok=not calls, reason=reason, value=len(calls), limit=0)


def judge_silent(part: CompileReport) -> Verdict:
    """The verdict "collectives" of a program that must send nothing."""
    sent = sum(each.count for each in part.collectives)
    reason = "the program has no collective" if not sent else f"the program has {sent} collectives, NOT none"
    return Verdict(name="collectives", ok=not sent, reason=reason, value=sent, limit=0)


def judge_schedule(part: CompileReport, step: CompileReport, axis: str) -> Verdict:
    """Whether a program sends one number in place of each message that the step sends over `axis`, and nothing else."""
    own = "collective-permute", axis
    others = sorted({each.kind for each in part.collectives if (each.kind, each.axis) != own})
    numbers = _numbers(part.collectives).get(own, 0)
    messages = sum(each.count for each in step.collectives if (each.kind, each.axis) == own)
    reason = f"{numbers} numbers are sent over '{axis}', and {messages} messages in the step"
    reason += f"; and {', '.join(others)}, which must NOT be" if others else ""
    reason += ": NOT one for each" if numbers != messages else ""
    return Verdict(
        name="collectives", ok=numbers == messages and not others, reason=reason, value=numbers, limit=messages
    )


def judge_work(part: CompileReport, step: CompileReport) -> Verdict | None:
    """Whether a program without collectives has the matrix products of the step; None if either's are unknown."""
    mine, whole = part.product_flops_per_step, step.product_flops_per_step
    if mine is None or not whole:
        return None
    return _relative("work", mine, whole, "FLOPs of matrix products")


def judge_communication(part: CompileReport, step: CompileReport) -> Verdict:
    """Whether a program sends as many numbers as the step, by kind of collective and mesh axis."""
    mine, whole = _numbers(part.collectives), _numbers(step.collectives)
    if mine.keys() != whole.keys():
        kinds = ", ".join(sorted(f"{kind} over '{axis}'" for kind, axis in mine.keys() ^ whole.keys()))
        return Verdict(name="collectives", ok=False, reason=REASONS["only one"].format(kinds=kinds))
    # Kind by kind: a missing all-gather could otherwise be made up by an all-reduce that is too large.
    verdicts = [_relative("collectives", mine[key], whole[key], f"numbers of {key[0]}") for key in whole]
    worst = max(verdicts, key=lambda verdict: verdict.value or 0.0, default=None)
    return worst or Verdict(name="collectives", ok=True, reason=REASONS["neither"])


def _numbers(collectives: Sequence[Collective]) -> dict[tuple[str, str], int]:
    """How many numbers travel, by kind of collective and axis."""
    total: dict[tuple[str, str], int] = {}
    for each in collectives:
        key = each.kind, each.axis
        total[key] = total.get(key, 0) + each.elements + each.scalars
    return total


def _relative(name: str, mine: float, whole: float, what: str) -> Verdict:
    """The verdict on whether an ablation does the same amount of work as the step."""
    distance = abs(mine - whole) / whole if whole else float(mine != 0)
    ok = distance <= SAME_WORK
    reason = f"{mine:,.0f} {what}, {whole:,.0f} in the step" + ("" if ok else ": NOT the same work")
    return Verdict(name=name, ok=ok, reason=reason, value=distance, limit=SAME_WORK)
