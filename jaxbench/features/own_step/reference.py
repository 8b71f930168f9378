# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What a user's step does to each array of its state on the fewest devices, and what rounding changes about that.

The step on several devices runs in another process, because a trainer may read all of `jax.devices()`; so the reference
is a file. `compare` reads it.
"""

from __future__ import annotations

import dataclasses
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench.core.program import Call, TrainState
from jaxbench.core.workload import Batch
from jaxbench.errors import Unsupported
from jaxbench.features.ablations.programs import SENDS
from jaxbench.features.own_step.one_device import OneDevice
from jaxbench.features.own_step.program import OwnProgram, digest
from jaxbench.measure.reference import STEPS
from jaxbench.measure.rounding import PERTURBED, rounded_otherwise
from jaxbench.parallel import multihost
from jaxbench.processes.group import members_of
from jaxbench.workloads import flops
from jaxbench.workloads.jaxprs import aval_of, equations

Arrays = dict[str, np.ndarray]  # by path
A_FEW = 16  # a change by this part of a number's spacing makes a few of all numbers round otherwise
MOST_STEPS = 16  # until a parameter moves: a gradient may be accumulated, or a loss scale may have to fall
SLOW_S = 3.0  # of a run: then one perturbed run must do
COARSE = 1e-3  # relative: moves a code of 8 bits, such as that of a quantized average, which the last bit rarely does


@dataclass(frozen=True)
class Movement:
    """The arrays of a state before the first step and after the last, on the host, by path.

    parameters: the paths of those that are compared as parameters. steps: how many were made. batches: the digest of
    the batch of each step, of one step if all take the same. copies: by path, the norm of the largest difference
    between devices that should hold the same numbers; only of arrays with such a difference.
    """

    start: Arrays
    end: Arrays
    parameters: tuple[str, ...] = ()
    steps: int = STEPS
    batches: tuple[str, ...] = ()
    copies: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def moved(self, path: str) -> np.ndarray:
        """The movement of an array, in 64 bits."""
        return in_64_bits(self.end[path]) - in_64_bits(self.start[path])


@dataclass(frozen=True, kw_only=True)
class OwnReference(Movement):
    """The result of the fewest devices that can hold the step.

    noise: by path, the norm of the distance between the movements from the first state and from a perturbed one; of
    whole numbers, a state that is perturbed by `COARSE`. spacing: by path, the distance between two neighbouring
    numbers of the array's format, at its largest number. by: the relative change of the parameters for `noise`, from
    `coarseness`; 0: the last bit. one: the step of one device, which other processes can run; None: the reason is
    `why`.
    """

    devices: int = 1
    noise: Mapping[str, float] = dataclasses.field(default_factory=dict)
    spacing: Mapping[str, float] = dataclasses.field(default_factory=dict)
    by: float = 0.0
    one: OneDevice | None = None
    why: str = ""

    @property
    def spacing_of_format(self) -> float:
        """Of the coarsest format that the step multiplies or sends in, relative to 1."""
        return self.by * A_FEW or float(np.finfo(np.float32).eps)

    def save(self, file: Path) -> None:
        arrays = {f"{part}/{path}": x for part in ("start", "end") for path, x in getattr(self, part).items()}
        if self.one is not None:
            arrays["one"] = np.frombuffer(self.one.text, np.uint8)
            held = enumerate(self.one.arrays)
            arrays |= {f"array/{i}": np.frombuffer(x.tobytes(), np.uint8) for i, x in held}  # of any format
        about = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        for name in ("start", "end", "one"):
            del about[name]
        partial = file.with_suffix(".part.npz")  # other processes look for the file, and must not read half of it
        np.savez(partial, about=np.array(json.dumps(about)), **arrays)
        partial.replace(file)

    @classmethod
    def load(cls, file: Path) -> OwnReference:
        with np.load(file, allow_pickle=False) as saved:
            parts: dict[str, Arrays] = {"start": {}, "end": {}, "array": {}}
            for name in (name for name in saved.files if "/" in name):
                part, _, path = name.partition("/")
                parts[part][path] = saved[name]
            one = None
            if "one" in saved:
                one = OneDevice(saved["one"].tobytes(), [])
                held = ((parts["array"][str(i)].tobytes(), x) for i, x in enumerate(one.exported.in_avals))
                one.arrays.extend(np.frombuffer(raw, x.dtype).reshape(x.shape) for raw, x in held)
            about = json.loads(str(saved["about"]))
            about |= {name: tuple(about[name]) for name in ("parameters", "batches")}
            return cls(start=parts["start"], end=parts["end"], one=one, **about)


def is_whole(x: np.ndarray) -> bool:
    """Whether an array holds integers or truth values."""
    return x.dtype.kind in "iub"


def _wide(x: np.ndarray) -> np.ndarray:
    """The numbers in a format that a file can hold: those of fewer bits as float32 or int32."""
    if jnp.issubdtype(x.dtype, jnp.inexact):
        return x if x.dtype.itemsize >= 4 else x.astype(np.float32)
    return x if is_whole(x) else x.astype(np.int32)


def host(arrays: Mapping[str, object]) -> Arrays:
    """Host copies, at least in float32 or int32 if NumPy lacks the format."""
    # A CPU's step overwrites what it donates, so a view would change.
    return {path: np.array(_wide(multihost.on_host(x)), copy=True) for path, x in arrays.items()}


def everything(state: TrainState) -> Batch:
    """The arrays of a state by path, without the suite's counter of steps."""
    return {**state.params, **state.opt_state}


def run(program: OwnProgram, call: Call, start: TrainState | None = None, steps: int | None = None) -> Movement:
    """Makes steps from the first state, or from `start`, which may be donated.

    steps: None: `STEPS`, and more until a parameter has moved, up to `MOST_STEPS`.
    """
    call = members_of(program.mesh).after_barrier(call)
    batches: list[str] = []
    with program.context():
        state = program.init(None) if start is None else start  # type: ignore[arg-type]
        before, parameters = host(everything(state)), tuple(state.params)
        made = 0
        while made < (steps or MOST_STEPS):
            batch = program.batch_of(made)
            if not made or callable(program.own.batch):
                batches.append(digest(batch))
            # Waiting keeps the scratch memory of one step alive, not of three.
            state, _ = jax.block_until_ready(call(state, batch))
            made += 1
            if steps is None and made >= STEPS and has_moved(before, state):
                break
        after, copies = host(everything(state)), _copies(program, everything(state))
        return Movement(before, after, parameters, made, tuple(batches), copies)


def has_moved(before: Arrays, state: TrainState) -> bool:
    """Whether a parameter that is no whole number differs from its first value."""
    floats = {path: x for path, x in state.params.items() if not is_whole(before[path])}
    return any(not np.array_equal(x, before[path]) for path, x in host(floats).items())


def _copies(program: OwnProgram, arrays: Mapping[str, jax.Array]) -> dict[str, float]:
    """`Movement.copies`, of the devices of this process. Devices may draw from keys of their own, so those are left
    out."""
    found: dict[str, float] = {}
    for path, x in arrays.items():
        first: dict[str, np.ndarray] = {}
        for shard in x.addressable_shards if len(x.addressable_shards) > 1 else ():
            held = np.asarray(shard.data)
            like = first.setdefault(str(shard.index), held)
            if held.tobytes() != like.tobytes() and not is_key(program, path, x):
                found[path] = max(found.get(path, 0.0), distance(_wide(held), _wide(like)))
    return found


def is_key(program: OwnProgram, path: str, x: jax.Array | np.ndarray) -> bool:
    """Whether an array holds random keys. Those without a type are recognized by their shape and their name."""
    raw = x.dtype == np.uint32 and x.shape[-1:] in ((2,), (4,))
    name = path.rpartition("/")[2]
    return path in program.state_leaves.keys or bool(raw and re.search("key|rng|random|seed|dropout", name, re.I))


def reference(program: OwnProgram, call: Call | None) -> OwnReference:
    """The movement of this program, and what rounding does to it: its first parameters are changed by a rounding.

    call: its executable. None: only the step itself.
    """
    one, why = None, f"fewer than {program.mesh.size} devices cannot hold the step"
    if program.mesh.size == 1:
        try:
            one, why = OneDevice.of(program), ""
        except Unsupported as error:
            why = str(error)
    if call is None:
        return OwnReference(start={}, end={}, one=one, why=why)
    by = coarseness(program)

    def perturbed(random: np.random.Generator, by: float, steps: int) -> Movement:
        state = program.init(None)  # type: ignore[arg-type]
        changed = {path: rounded_otherwise(multihost.on_host(x), random, by) for path, x in state.params.items()}
        placed = {path: multihost.put(x, state.params[path].sharding, may_alias=False) for path, x in changed.items()}
        return run(program, call, dataclasses.replace(state, params=placed), steps)

    expected = with_noise(lambda: run(program, call), perturbed, by)
    spacing: dict[str, float] = {}
    for path, x in everything(program.init(None)).items():  # type: ignore[arg-type]
        eps = float(jnp.finfo(x.dtype).eps) if jnp.issubdtype(x.dtype, jnp.inexact) else 0.0
        spacing[path] = eps * float(np.max(np.abs(expected.end[path]), initial=0))
    return dataclasses.replace(expected, devices=program.mesh.size, spacing=spacing, one=one, why=why)


def coarseness(program: OwnProgram) -> float:
    """A relative change of float32 numbers after which one in eight or so rounds otherwise in the coarsest number
    format that a step multiplies or sends in; 0 for float32.

    If all did, each gradient would move by more than another order of sums moves it.
    """
    with program.context():
        jaxpr = program.step.trace(program.first, program.batch_of(0)).jaxpr.jaxpr
        shares = flops.dot_flop_shares(program.step.__wrapped__, program.first, program.batch_of(0))
    # Fewer products in a coarse format are the exception, not how a model computes.
    used = {jnp.dtype(name) for name, share in shares.items() if share >= flops.A_PART}
    sent = [aval_of(x) for each in equations(jaxpr) if each.primitive.name in SENDS for x in each.invars]
    used |= {x.dtype for x in sent if x.ndim}
    coarse = [jnp.finfo(x).eps for x in used if jnp.issubdtype(x, jnp.inexact) and x.itemsize < 4]
    return float(max(coarse, default=0.0)) / A_FEW


def with_noise(
    plain: Callable[[], Movement], changed: Callable[[np.random.Generator, float, int], Movement], by: float
) -> OwnReference:
    """A movement, with the noise of the movements of perturbed starts.

    changed: (random numbers, a relative change, steps) -> the movement from a start with that change. by: the change
    that rounding makes, at least the last bit.
    """
    begin = time.perf_counter()
    movement = plain()
    runs = PERTURBED if time.perf_counter() - begin < SLOW_S else 1
    whole = [path for path, x in movement.end.items() if is_whole(x) and not np.array_equal(x, movement.start[path])]
    # The largest of several: one random change may happen to move an array little.
    noise = dict.fromkeys(movement.end, 0.0)

    def take(other: Movement, paths: Mapping[str, object] | list[str]) -> None:
        for path in paths:
            noise[path] = max(noise[path], distance(other.moved(path), movement.moved(path)))

    for seed in range(runs):
        take(changed(np.random.default_rng(seed), by, movement.steps), noise)
    if whole:
        take(changed(np.random.default_rng(runs), max(by, COARSE), movement.steps), whole)
    return OwnReference(**vars(movement), noise=noise, by=by)


def in_64_bits(x: np.ndarray) -> np.ndarray:
    return x.astype(np.int64 if is_whole(x) else np.result_type(x.dtype, np.float64))


def distance(a: np.ndarray, b: np.ndarray) -> float:
    """The norm of the difference."""
    return norm(in_64_bits(a) - in_64_bits(b))


def norm(x: np.ndarray) -> float:
    return float(np.linalg.norm(np.abs(in_64_bits(x)).reshape(-1).astype(np.float64)))
