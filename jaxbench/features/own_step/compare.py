# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Compares a user's step on several devices with the same step on one device, by how each array of its state moves."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping

import jax
import numpy as np

from jaxbench.core.program import Call, TrainState
from jaxbench.core.schema import Verdict
from jaxbench.core.workload import Batch
from jaxbench.features.own_step import state as state_lib
from jaxbench.features.own_step.distances import (
    Limits,
    aligned,
    compared,
    copies_apart,
    finite,
    limit_of,
    listed,
    other_start,
    worst_of,
)
from jaxbench.features.own_step.one_device import OneDevice
from jaxbench.features.own_step.program import OwnProgram, draws_per_device
from jaxbench.features.own_step.reference import (
    MOST_STEPS,
    Arrays,
    Movement,
    OwnReference,
    has_moved,
    host,
    is_whole,
    run,
    with_noise,
)
from jaxbench.measure import memory
from jaxbench.measure.check import ROUNDING, TIMED_UPDATE, unchecked
from jaxbench.measure.rounding import rounded_otherwise
from jaxbench.parallel import multihost
from jaxbench.processes.group import members_of


class OwnCopies(Exception):
    """Devices hold different copies of a parameter. The message names it."""


def _parameters_of(found: Arrays, expected: OwnReference, devices: int) -> Arrays:
    """The parameters in the shapes of the reference. Raises OwnCopies if that is impossible."""
    like = {path: expected.end[path] for path in expected.parameters}
    fitting, shapes, own = aligned(found, like, devices, expected.devices)
    for path in own:
        if not is_whole(like[path]):
            raise OwnCopies(f"the devices hold different copies of '{path}': is its gradient averaged over them?")
    for path in shapes:
        if not is_whole(like[path]):
            raise OwnCopies(
                f"'{path}' has the shape {found[path].shape} on {devices} devices and {like[path].shape} on "
                f"{expected.devices}"
            )
    return {path: x for path, x in fitting.items() if not is_whole(x)}


def judge(program: OwnProgram, call: Call, expected: OwnReference) -> tuple[Verdict, ...]:
    """The verdicts "parameters" and "state" on a compiled step."""
    here, many = program.mesh.size, f"{program.mesh.size} devices"
    few = "one device" if expected.devices == 1 else f"{expected.devices} devices"
    if here == expected.devices:  # the program is the reference itself: a second run must do the same
        few = "the same device before"
    found = run(program, call, steps=expected.steps)
    if found.batches != expected.batches:
        steps = [i for i, (a, b) in enumerate(zip(found.batches, expected.batches, strict=False)) if a != b]
        at = f" of step {steps[0]}" if steps and steps[0] else ""
        return (
            unchecked(f"the batch{at} on {many} has other values than on {few}: draw it from the argument `batch`"),
        )
    try:
        start, end = (_parameters_of(x, expected, here) for x in (found.start, found.end))
    except OwnCopies as error:
        return (Verdict(name="parameters", ok=False, reason=str(error)),)
    if other := other_start(start, expected):
        # Movements from different starts cannot be compared, and nothing says that the step is wrong.
        path, apart = other
        reason = f"init gives other parameters on {many} than on {few} ('{path}', relative L2 {apart:.1e}): make "
        return (unchecked(f"{reason}them by the same random numbers, then place them"),)
    platform = program.mesh.devices.flat[0].platform
    moved = dataclasses.replace(found, start=start, end=end)
    verdict = _drawn(_parameters(moved, expected, platform=platform, few=few), program, few)
    if here == expected.devices:
        verdict = dataclasses.replace(verdict, reason=f"the reference of the other points: {verdict.reason}")
    if verdict.unchecked:
        return (verdict,)
    others = state_lib.judge(found, expected, program, platform=platform, few=few)
    return verdict, *(_drawn(each, program, few) for each in others)


def _drawn(verdict: Verdict, program: OwnProgram, few: str) -> Verdict:
    """The verdict, or "unchecked" if it fails and each device draws random numbers of its own."""
    if verdict.ok or verdict.unchecked or not (line := draws_per_device(program)):
        return verdict
    found = unchecked(
        f"each device draws random numbers of its own ({line}), and {few} draws others, so the two must "
        f"differ: {verdict.reason}. Without them, such as with dropout 0, this check decides"
    )
    return dataclasses.replace(found, name=verdict.name)


def _parameters(found: Movement, expected: OwnReference, *, platform: str, few: str) -> Verdict:
    """The verdict on the parameters. found: its arrays are those to compare, in the shapes of the reference."""
    limits = Limits.of(expected, platform)
    each = [compared(path, found.moved(path), expected, limits) for path in found.end]
    rounding, kept = [x.path for x in each if x.by_rounding], [x for x in each if not x.by_rounding]
    noun = "one step" if expected.steps == 1 else f"{expected.steps} steps"

    def whole(values: Iterable[float]) -> float:
        return math.sqrt(sum(value**2 for value in values))

    # Rounding arrays are left out of the sum, too: one of them would hide a wrong movement of all others.
    size = whole(x.norm for x in kept)
    if not size and all(x.ok for x in each):
        return unchecked(_unmoved(expected, noun, rounding))
    apart, changed = whole(x.apart for x in kept) / (size or math.nan), whole(x.noise for x in kept) / (size or 1)
    limit = max(limits.whole, min(limits.most, ROUNDING * changed))
    text = f"after {noun} the movement of the parameters is {apart:.1e} (relative L2) from that on {few}"
    what = "16-bit rounding" if expected.by else "a last-bit change"
    why = f"{ROUNDING} times the {changed:.1e} of {what}" if limit > limits.whole else "sums in another order"
    if rounding:
        text += f", without {listed(rounding)}, moved by rounding alone"
    if size and not apart <= limit:  # and not `apart > limit`, which is false for NaN
        reason = f"{text}: NOT within {limit:.0e} ({why}); the worst array, {worst_of(kept)}"
        return Verdict(name="parameters", ok=False, reason=reason, value=finite(apart), limit=limit)
    # The whole hides a small array that is never reduced, such as a bias, so each is judged by itself, too.
    if not (worst := max(each, key=lambda x: x.excess)).ok:
        reason = f"{text}, but '{worst.path}' by itself is {worst.share:.1e} away, NOT within {limit_of(worst):.0e}"
        value = finite(worst.share)
        return Verdict(
            name="parameters", ok=False, reason=f"{reason}: is it never reduced?", value=value, limit=limit_of(worst)
        )
    if copies := copies_apart(found, each):
        return Verdict(name="parameters", ok=False, reason=f"{text}, but {copies}")
    reason = f"{text}: within {limit:.0e} ({why}); the worst array, {worst_of(kept)}"
    return Verdict(name="parameters", ok=True, reason=reason, value=apart, limit=limit)


def _unmoved(expected: OwnReference, noun: str, rounding: list[str]) -> str:
    """Why the parameters prove nothing."""
    if rounding:
        return f"rounding alone moves the parameters in {noun}, so this proves nothing"
    fell = [
        (path, float(expected.start[path].flat[0]), float(x.flat[0]))
        for path, x in expected.end.items()
        if path not in expected.parameters and x.dtype.kind == "f" and x.size == 1
    ]
    for path, before, after in fell:
        # A loss scale is halved, or divided by another power of two, after each step that overflows.
        if 0 < after < before and math.log2(before / after).is_integer():
            return (
                f"no parameter changed in {noun}, and '{path}' fell from {before:g} to {after:g}: it looks like a loss "
                "scale, so the gradients overflow and the steps are skipped; start with a smaller one"
            )
    return f"no parameter changed in {noun}, so this proves nothing (is the learning rate 0?)"


def judge_timed(program: OwnProgram, call: Call, state: TrainState, expected: OwnReference) -> Verdict:
    """The verdict "timed update" on one more step of the timed state, which it donates; on more, if the first ones move
    no parameter.

    One device makes the same steps here, as an exported program. In a model that has learnt its batch, rounding alone
    may move the timed parameters. Then the steps are made from the first parameters and the other arrays of this state.
    """
    one, why, batch = expected.one, expected.why, program.batch_of(0)
    timed = jax.tree.map(lambda x: np.array(multihost.on_host(x), copy=True), state)
    if one is not None:
        try:
            steps_of_one = _steps_of_one(one, multihost.first_here([*program.mesh.devices.flat]), timed, batch)
        except (memory.Unfit, ValueError) as error:
            why = str(error)
    # The step below is a collective: all processes take it, or none.
    if not members_of(program.mesh).all(not why):
        return Verdict(name=TIMED_UPDATE, ok=True, reason=f"the timed state was not compared: {why or 'too large'}")

    few, platform = "one device", program.mesh.devices.flat[0].platform

    def judged(state: TrainState) -> Verdict:
        start = {path: np.array(multihost.on_host(x), copy=True) for path, x in state.params.items()}
        before, step, made = host(state.params), members_of(program.mesh).after_barrier(call), 0
        with program.context():
            while made < MOST_STEPS:
                state, _ = jax.block_until_ready(step(state, batch))
                made += 1
                if members_of(program.mesh).broadcast(has_moved(before, state)):
                    break
        ended = host(state.params)
        del state  # one device may need its memory
        try:
            right = with_noise(
                lambda: steps_of_one(start, made),
                lambda random, by, steps: steps_of_one(
                    {path: rounded_otherwise(x, random, by) for path, x in start.items()}, steps
                ),
                expected.by,
            )
            right = dataclasses.replace(right, spacing=expected.spacing)
            end = _parameters_of(ended, right, program.mesh.size)
        except OwnCopies as error:
            return Verdict(name="parameters", ok=False, reason=str(error))
        except jax.errors.JaxRuntimeError as error:
            if "RESOURCE_EXHAUSTED" not in str(error):
                raise
            return Verdict(name="parameters", ok=True, reason="not compared, because one device ran out of memory")
        return _parameters(Movement(right.start, end), right, platform=platform, few=few)

    verdict, after = judged(state), f"from the state after {int(timed.step)} timed steps"
    # Processes may see different rounding; the first one decides.
    if members_of(program.mesh).broadcast(verdict.unchecked):
        first = program.init(None)  # type: ignore[arg-type]
        others = {path: multihost.put(x, first.opt_state[path].sharding) for path, x in timed.opt_state.items()}
        verdict = judged(dataclasses.replace(first, opt_state=others))
        after = f"from the first parameters, because rounding alone moves those {after}"
    verdict = _drawn(verdict, program, few)
    return dataclasses.replace(verdict, name=TIMED_UPDATE, reason=f"{after}: {verdict.reason}")


def _steps_of_one(
    one: OneDevice, device: jax.Device, timed: TrainState, batch: Batch
) -> Callable[[Mapping[str, np.ndarray], int], Movement]:
    """Moves parameters by steps on one device. timed: the other arrays. Raises Unfit, or ValueError if they do not fit
    the step of one device."""
    batch, structure = multihost.on_host(batch), jax.tree.structure(timed)
    on_device = jax.sharding.SingleDeviceSharding(device)
    shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=on_device) for x in one.exported.in_avals]
    compiled = jax.jit(one.exported.call).lower(*shapes).compile()
    memory.require(compiled, device.platform)
    one.fitted(jax.tree.leaves((timed, batch)))  # raises here, before any step is made

    def steps(params: Mapping[str, np.ndarray], count: int) -> Movement:
        given = one.fitted(jax.tree.leaves((dataclasses.replace(timed, params=dict(params)), batch)))
        arrays = jax.device_put(given, device)
        size = len(one.exported.out_avals)
        start = host(jax.tree.unflatten(structure, given[:size]).params)
        for _ in range(count):
            arrays = [*compiled(*arrays), *arrays[size:]]
        end = host(jax.tree.unflatten(structure, arrays[:size]).params)
        return Movement(start, end, (*end,), count)

    return steps
