# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Compares a user's step on several devices with the same step on one device, by how its parameters move.

The two run in different processes, because a trainer may read all of `jax.devices()`; so the reference is a file. The
movement is compared, not the parameters: with a warmed-up learning rate they hardly change, whatever a step does.
"""

from __future__ import annotations

import dataclasses
import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench.core.program import TrainState
from jaxbench.core.reference import STEPS
from jaxbench.core.schema import Verdict
from jaxbench.errors import Unsupported
from jaxbench.features.own_step.program import OwnProgram, digest, draws_per_device
from jaxbench.features.own_step.shares import OneDevice
from jaxbench.measure import memory
from jaxbench.measure.check import OPTIMIZER_STATE, ROUNDING, SHARE, TIMED_UPDATE, unchecked
from jaxbench.measure.rounding import PERTURBED, rounded_otherwise
from jaxbench.parallel import multihost
from jaxbench.workloads import flops
from jaxbench.workloads.own_step import PyTree

Arrays = dict[str, np.ndarray]  # by path
WITHIN = {"cpu": 1e-3}  # of the movement of all parameters, relative: six public trainers were within 3e-4
WITHIN_ELSEWHERE = 3e-2  # an accelerator computes float32 products in TF32 or bfloat16 by default
SLOW_S = 3.0  # of a run: then one perturbed run must do
SAME_START = 1e-6  # relative: the same numbers, but perhaps drawn or cast by another program


@dataclass(frozen=True)
class Movement:
    """Floating-point arrays before the first step and after the last, on the host: parameters, then all others."""

    start: Arrays
    end: Arrays
    others: Arrays

    @property
    def moved(self) -> Arrays:
        return {path: x.astype(np.float64) - self.start[path] for path, x in self.end.items()}


@dataclass(frozen=True, kw_only=True)
class OwnReference(Movement):
    """The result of the fewest devices that can hold the step.

    noise: by path, the norm of the distance between a parameter's movements from the first state and from a perturbed
    one. one: the step of one device, which other processes can run; None: the reason is `why`.
    """

    devices: int = 1
    batch: str = ""
    noise: Mapping[str, float]
    one: OneDevice | None = None
    why: str = ""

    def save(self, file: Path) -> None:
        parts = ("start", "end", "others")
        arrays = {f"{part}/{path}": x for part in parts for path, x in getattr(self, part).items()}
        if self.one is not None:
            arrays["one"] = np.frombuffer(self.one.text, np.uint8)
            held = enumerate(self.one.arrays)
            arrays |= {f"array/{i}": np.frombuffer(x.tobytes(), np.uint8) for i, x in held}  # of any format
        about = {"devices": self.devices, "batch": self.batch, "noise": dict(self.noise), "why": self.why}
        partial = file.with_suffix(".part.npz")  # other processes look for the file, and must not read half of it
        np.savez(partial, about=np.array(json.dumps(about)), **arrays)
        partial.replace(file)

    @classmethod
    def load(cls, file: Path) -> OwnReference:
        with np.load(file, allow_pickle=False) as saved:
            parts: dict[str, Arrays] = {"start": {}, "end": {}, "others": {}, "array": {}}
            for name in (name for name in saved.files if "/" in name):
                part, _, path = name.partition("/")
                parts[part][path] = saved[name]
            one = None
            if "one" in saved:
                one = OneDevice(saved["one"].tobytes(), [])
                held = ((parts["array"][str(i)].tobytes(), x) for i, x in enumerate(one.exported.in_avals))
                one.arrays.extend(np.frombuffer(raw, x.dtype).reshape(x.shape) for raw, x in held)
            movement = parts["start"], parts["end"], parts["others"]
            return cls(*movement, one=one, **json.loads(str(saved["about"])))


def run(program: OwnProgram, call: Callable[..., PyTree], start: TrainState | None = None) -> Movement:
    """Makes `STEPS` steps from the first state, or from `start`, which may be donated."""
    call = program.members.after_barrier(call)
    with program.context():
        state = program.init(None) if start is None else start  # type: ignore[arg-type]
        before = _floats(state.params)
        for step in range(STEPS):
            # Waiting keeps the scratch memory of one step alive, not of three.
            state, _ = jax.block_until_ready(call(state, program.batch_of(step)))
        return Movement(before, _floats(state.params), _floats(state.opt_state))


def _floats(arrays: Mapping[str, PyTree]) -> Arrays:
    """Host copies of the floating-point arrays, at least in float32, which a file can hold."""
    chosen = {path: x for path, x in arrays.items() if jnp.issubdtype(x.dtype, jnp.inexact)}
    host = {path: multihost.on_host(x) for path, x in chosen.items()}
    wide = {path: x if x.dtype.itemsize >= 4 else x.astype(np.float32) for path, x in host.items()}
    return {path: np.array(x, copy=True) for path, x in wide.items()}  # a CPU's step overwrites what it donates


def reference(program: OwnProgram, call: Callable[..., PyTree] | None) -> OwnReference:
    """The movement of this program, and what rounding does to it: the first state is changed a little.

    call: its executable. None: only the step itself.
    """
    one, why = None, f"fewer than {program.mesh.size} devices cannot hold the step"
    if program.mesh.size == 1:
        try:
            one, why = OneDevice.of(program), ""
        except Unsupported as error:
            why = str(error)
    if call is None:
        return OwnReference({}, {}, {}, noise={}, one=one, why=why)

    by = rounding(program)

    def perturbed(random: np.random.Generator) -> Movement:
        state = program.init(None)  # type: ignore[arg-type]
        changed = {path: rounded_otherwise(multihost.on_host(x), random, by) for path, x in state.params.items()}
        placed = {path: multihost.put(x, state.params[path].sharding, may_alias=False) for path, x in changed.items()}
        return run(program, call, dataclasses.replace(state, params=placed))

    expected = _perturbed(lambda: run(program, call), perturbed)
    return dataclasses.replace(expected, devices=program.mesh.size, batch=digest(program.batch_of(0)), one=one, why=why)


def rounding(program: OwnProgram) -> float:
    """`flops.rounding` of the step."""
    with program.context():
        traced = program.step.trace(program.first, program.batch_of(0))
    return flops.rounding(traced.jaxpr.jaxpr, program.mesh.devices.flat[0].platform)


def _perturbed(plain: Callable[[], Movement], changed: Callable[[np.random.Generator], Movement]) -> OwnReference:
    """A movement, with the noise of the movements of perturbed starts."""
    begin = time.perf_counter()
    movement = plain()
    runs = PERTURBED if time.perf_counter() - begin < SLOW_S else 1
    # The largest of several: one random change may happen to move an array little.
    noise = dict.fromkeys(movement.end, 0.0)
    for seed in range(runs):
        for path, norm in _distances(changed(np.random.default_rng(seed)).moved, movement.moved).items():
            noise[path] = max(noise[path], norm)
    return OwnReference(**vars(movement), noise=noise)


def _distances(a: Arrays, b: Arrays) -> dict[str, float]:
    """The norm of the difference by path."""
    return {path: float(np.linalg.norm(np.abs(a[path] - b[path]))) for path in b}


class OwnCopies(Exception):
    """Devices hold different copies of a parameter. The message names it."""


def _aligned(found: Arrays, like: Arrays, devices: int, of: int, *, equal: bool = True) -> Arrays:
    """The arrays in the shapes of the reference on `of` devices.

    A pmapped step has a leading axis of one copy for each device. equal: the copies must be equal; those that are not
    are otherwise left out, such as the batch statistics of each device.
    """
    aligned: Arrays = {}
    for path, want in like.items():
        x = found[path]
        if x.shape == want.shape:
            aligned[path] = x
        elif (devices, *want.shape[1:]) == x.shape and want.shape[:1] == (of,):  # the axis that pmap maps over
            if all(np.array_equal(x[0], copy) for copy in x[1:]):
                aligned[path] = np.broadcast_to(x[:1], want.shape)
            elif equal:
                raise OwnCopies(f"the devices hold different copies of '{path}': is its gradient averaged over them?")
        elif equal:
            raise OwnCopies(f"'{path}' has the shape {x.shape} on {devices} devices and {want.shape} on {of}")
    return aligned


def judge(program: OwnProgram, call: Callable[..., PyTree], expected: OwnReference) -> tuple[Verdict, ...]:
    """The verdicts "parameters" and "state" on a compiled step."""
    here, many = program.mesh.size, f"{program.mesh.size} devices"
    few = "one device" if expected.devices == 1 else f"{expected.devices} devices"
    if here == expected.devices:  # the program is the reference itself: a second run must do the same
        few = "the same device before"
    if digest(program.batch_of(0)) != expected.batch:
        return (unchecked(f"the batch on {many} has other values than on {few}: draw it from the argument `batch`"),)
    found = run(program, call)
    try:
        start, end = (
            _aligned(getattr(found, name), getattr(expected, name), here, expected.devices) for name in ("start", "end")
        )
    except OwnCopies as error:
        return (Verdict(name="parameters", ok=False, reason=str(error)),)
    before = expected.start
    # Movements from different starts cannot be compared, and nothing says that the step is wrong.
    apart, size = _norm({path: start[path] - x for path, x in before.items()}), _norm(before)
    if apart > SAME_START * size:
        return (
            unchecked(
                f"init gives other parameters on {many} than on {few} (relative L2 {apart / (size or 1):.1e}): make "
                "them by the same random numbers, then place them"
            ),
        )
    moved, platform = Movement(start, end, {}).moved, program.mesh.devices.flat[0].platform
    verdict = _drawn(_parameters(moved, expected, platform=platform, few=few), program, few)
    if here == expected.devices:
        verdict = dataclasses.replace(verdict, reason=f"the reference of the other points: {verdict.reason}")
    return (verdict,) if verdict.unchecked else (verdict, *_others(found, expected, here, few=few))


def _drawn(verdict: Verdict, program: OwnProgram, few: str) -> Verdict:
    """The verdict, or "unchecked" if it fails and each device draws random numbers of its own."""
    if verdict.ok or verdict.unchecked or not (line := draws_per_device(program)):
        return verdict
    return unchecked(
        f"each device draws random numbers of its own ({line}), and {few} draws others, so the two must "
        f"differ: {verdict.reason}. Without them, such as with dropout 0, this check decides"
    )


def judge_timed(program: OwnProgram, call: Callable[..., PyTree], state: TrainState, expected: OwnReference) -> Verdict:
    """The verdict "timed update" on one more step of the timed state, which it donates.

    One device makes the same step here, as an exported program. In a model that has learnt its batch, rounding alone
    may move the timed parameters. Then the step is made from the first parameters and the other arrays of this state.
    """
    one, why, batch = expected.one, expected.why, program.batch_of(0)
    timed = jax.tree.map(lambda x: np.array(multihost.on_host(x), copy=True), state)
    if one is not None:
        try:
            step = _step_of_one(one, multihost.first_here([*program.mesh.devices.flat]), timed, batch)
        except (memory.Unfit, ValueError) as error:
            why = str(error)
    if not program.members.all(not why):  # the step below is a collective: all processes take it, or none
        return Verdict(name=TIMED_UPDATE, ok=True, reason=f"the timed state was not compared: {why or 'too large'}")

    few, by = "one device", rounding(program)

    def judged(state: TrainState) -> Verdict:
        start = {path: np.array(multihost.on_host(x), copy=True) for path, x in state.params.items()}
        with program.context():
            new, _ = jax.block_until_ready(program.members.after_barrier(call)(state, batch))
        ended = _floats(new.params)
        del new, state  # one device may need their memory
        try:
            right = _perturbed(
                lambda: step(start),
                lambda random: step({path: rounded_otherwise(x, random, by) for path, x in start.items()}),
            )
            end = _aligned(ended, right.end, program.mesh.size, 1)
        except OwnCopies as error:
            return Verdict(name="parameters", ok=False, reason=str(error))
        except jax.errors.JaxRuntimeError as error:
            if "RESOURCE_EXHAUSTED" not in str(error):
                raise
            return Verdict(name="parameters", ok=True, reason="not compared, because one device ran out of memory")
        moved, platform = Movement(right.start, end, {}).moved, program.mesh.devices.flat[0].platform
        return _parameters(moved, right, platform=platform, few=few, steps=1)

    verdict, after = judged(state), f"from the state after {int(timed.step)} timed steps"
    if program.members.broadcast(verdict.unchecked):  # processes may see different rounding; the first one decides
        first = program.init(None)  # type: ignore[arg-type]
        others = {path: multihost.put(x, first.opt_state[path].sharding) for path, x in timed.opt_state.items()}
        verdict = judged(dataclasses.replace(first, opt_state=others))
        after = f"from the first parameters, because rounding alone moves those {after}"
    verdict = _drawn(verdict, program, few)
    return dataclasses.replace(verdict, name=TIMED_UPDATE, reason=f"{after}: {verdict.reason}")


def _step_of_one(
    one: OneDevice, device: jax.Device, timed: TrainState, batch: PyTree
) -> Callable[[dict[str, np.ndarray]], Movement]:
    """Moves parameters by one step on one device. timed: the other arrays. Raises Unfit, or ValueError if they do not
    fit the step of one device."""
    batch, structure = multihost.on_host(batch), jax.tree.structure(timed)
    on_device = jax.sharding.SingleDeviceSharding(device)
    shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=on_device) for x in one.exported.in_avals]
    compiled = jax.jit(one.exported.call).lower(*shapes).compile()
    memory.require(compiled, device.platform)
    one.fitted(jax.tree.leaves((timed, batch)))  # raises here, before any step is made

    def step(params: dict[str, np.ndarray]) -> Movement:
        given = one.fitted(jax.tree.leaves((dataclasses.replace(timed, params=params), batch)))
        new = compiled(*jax.device_put(given, device))
        start, end = (jax.tree.unflatten(structure, x) for x in (given[: len(new)], new))
        return Movement(_floats(start.params), _floats(end.params), {})

    return step


def _norm(arrays: Arrays) -> float:
    return math.sqrt(sum(float(np.linalg.norm(np.abs(x))) ** 2 for x in arrays.values()))


def _parameters(moved: Arrays, expected: OwnReference, *, platform: str, few: str, steps: int = STEPS) -> Verdict:
    right, noise = expected.moved, expected.noise
    norms = {path: _norm({path: x}) for path, x in right.items()}
    # A rounding of the first state moves these as much as their gradient does: it is rounding alone.
    rounding = [path for path, norm in norms.items() if noise[path] > SHARE * norm]
    kept = [path for path in right if path not in rounding]

    def whole(values: Mapping[str, float]) -> float:
        return math.sqrt(sum(values[path] ** 2 for path in kept))

    noun = "one step" if steps == 1 else f"{steps} steps"
    # Rounding arrays are left out of the sum, too: one of them would hide a wrong movement of all others.
    if not (size := whole(norms)):
        return unchecked(f"no parameter changed in {noun}, so this proves nothing (is the learning rate 0?)")
    apart, within = _distances(moved, right), WITHIN.get(platform, WITHIN_ELSEWHERE)
    distance, changed = whole(apart) / size, whole(noise) / size
    limit = max(within, min(SHARE, ROUNDING * changed))
    text = f"after {noun} the movement of the parameters is {distance:.1e} (relative L2) from that on {few}"
    why = f"{ROUNDING} times the {changed:.1e} of another rounding" if limit > within else "sums in another order"
    if rounding:
        more = f" and {len(rounding) - 3} more" if len(rounding) > 3 else ""
        text += f", without {', '.join(map(repr, rounding[:3]))}{more}, moved by rounding alone"
    if not distance <= limit:  # and not `distance > limit`, which is false for NaN
        value = distance if math.isfinite(distance) else None
        reason = f"{text}: NOT within {limit:.0e} ({why})"
        return Verdict(name="parameters", ok=False, reason=reason, value=value, limit=limit)

    def share(path: str) -> float:
        far = apart[path] > ROUNDING * noise[path]
        return apart[path] / norms[path] if norms[path] else math.inf if far else 0.0

    # The whole hides a small array that is never reduced, such as a bias, so each is judged by itself, too.
    worst = max(kept, key=share)
    if not share(worst) <= SHARE:
        value = share(worst) if math.isfinite(share(worst)) else None
        reason = f"{text}, but '{worst}' by itself is {share(worst):.1e} away, NOT within {SHARE}: is it never reduced?"
        return Verdict(name="parameters", ok=False, reason=reason, value=value, limit=SHARE)
    reason = f"{text}: within {limit:.0e} ({why}); the worst array, '{worst}', {share(worst):.1e}"
    return Verdict(name="parameters", ok=True, reason=reason, value=distance, limit=limit)


def _others(found: Movement, expected: OwnReference, devices: int, *, few: str) -> tuple[Verdict, ...]:
    """The verdict on the other arrays, such as an optimizer's running means, which reveal a wrong gradient scale that
    Adam hides from the parameters; () without such arrays."""
    right = expected.others
    # equal=False: batch statistics of each device differ on purpose, and only the parameters must agree.
    aligned = _aligned(found.others, right, devices, expected.devices, equal=False)
    if not (size := _norm({path: right[path] for path in aligned})):
        return ()
    distance = _norm({path: x - right[path] for path, x in aligned.items()}) / size
    ok, value = distance <= OPTIMIZER_STATE, distance if math.isfinite(distance) else None
    reason = f"the {len(aligned)} other arrays of the state are {distance:.1e} (relative L2) from those on {few}, "
    reason += f"{'within' if ok else 'NOT within'} {OPTIMIZER_STATE:.0e} (a wrong gradient scale gives 1 or more)"
    if own := len(right) - len(aligned):
        reason += f"; {own} arrays differ from device to device and are not compared"
    return (Verdict(name="state", ok=ok, reason=reason, value=value, limit=OPTIMIZER_STATE),)
