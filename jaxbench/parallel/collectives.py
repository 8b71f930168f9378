# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Cases as dependent steps, and collectives in this form.

A collective runs on a mesh, under `jax.shard_map`. On a 2-D mesh all groups along an axis run it.

The compiled step has one all-reduce, all-gather, reduce-scatter, all-to-all or collective-permute. Its operand and
result are in donated buffers (the tests check this). Broadcast is a collective-broadcast on a GPU, the only platform
for which JAX lowers it. On other platforms the step follows the definition of `jax.lax.pbroadcast`: an all-reduce in
which all devices except the first contribute zeros.

The result of every device is compared with the expected one, exactly. Each device draws small integers, so that every
sum is exact in the dtype, in any order.

Of dependent steps each needs the previous result, so no call can be skipped or overlapped.
Each step passes on its whole result, so the compiler must compute all of it. One element of the result, times a zero
that the compiler cannot see, is added in place to one element of the first argument. This changes no value and costs
one element, but the compiler can hoist nothing out of a loop over steps.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from jaxbench.core.trees import ArrayTree
from jaxbench.errors import UserError
from jaxbench.machine.mesh import AXES, grid, groups
from jaxbench.parallel import multihost
from jaxbench.workloads.cases import CollectiveWorkload

State = TypeVar("State")
Batch = TypeVar("Batch")
DIVIDES = ("all_gather", "reduce_scatter", "all_to_all")  # a buffer has one part for each device
SUMS = ("all_reduce", "reduce_scatter")
# A device's values repeat with this period, so that drawing a gigabyte costs no more than a copy. It is a prime, so
# that neighbouring parts of a buffer differ, whatever their length.
PERIOD = 65_521
LARGEST = 7  # small, so that many devices can add up exactly in 8 to 11 bits
BLOCK = 2**22  # elements compared at once


@dataclass(frozen=True, kw_only=True)
class Chain(Generic[State, Batch]):
    """A case in the form that is compiled and timed. State, Batch: trees of arrays, or any objects for plain calls.

    Attributes:
      step: (state, batch) -> (state, None), pure; jitted with the state donated and, in a loop, iterated.
      draw: seed -> (state, batch), new arrays on the devices. The result in the first state may have any values.
      wrong: (state after some steps, seed) -> the number of wrong values in the result; None: the answer is unknown.
      values: the number of values that `wrong` compares.
      zeros: seed -> the share of the input values that are zero.
      mesh: the mesh to run under; None for one device.
      avals: () -> (state, batch) as shapes with shardings, to compile for devices that are not here; None: unknown.
    """

    step: Callable[[State, Batch], tuple[State, None]]
    draw: Callable[[int], tuple[State, Batch]]
    wrong: Callable[[State, int], int] | None
    values: int
    zeros: Callable[[int], float]
    mesh: jax.sharding.Mesh | None = None
    avals: Callable[[], tuple[ArrayTree, ArrayTree]] | None = None

    def context(self) -> contextlib.AbstractContextManager[object]:
        """The mesh to run under."""
        return contextlib.nullcontext() if self.mesh is None else jax.set_mesh(self.mesh)


def feed_back(argument: jax.Array, result: ArrayTree, zero: jax.Array) -> jax.Array:
    """`argument` with `zero` x (one element of `result`) added to its first element. `zero`: a scalar 0."""
    # One element is enough: a compiled result is computed as a whole, and its other elements are carried along.
    one = jax.tree.leaves(result)[0].ravel()[0]
    if jnp.iscomplexobj(one):
        one = one.real  # its product with a zero is still 0
    # In place, because the state is donated: a sum over the whole argument would cost as much as STREAM's add. With a
    # constant place, XLA for GPUs reads and writes every element (measured on an H100: STREAM's copy at half the rate).
    place = (jnp.minimum(zero, 0).astype(jnp.int32),) * argument.ndim  # 0, which the compiler does not know
    first = jax.lax.dynamic_slice(argument, place, (1,) * argument.ndim)
    return jax.lax.dynamic_update_slice(argument, first + (zero.astype(one.dtype) * one).astype(argument.dtype), place)


def loop(step: Callable[[State, Batch], tuple[State, None]]) -> Callable[[State, Batch, jax.Array], State]:
    """(state, batch, count) -> the state after `count` steps, in one program."""

    # As a constant, each count would be another program, and XLA could unroll the loop.
    def iterate(state: State, batch: Batch, count: jax.Array) -> State:
        return jax.lax.fori_loop(0, count, lambda _, carried: step(carried, batch)[0], state)

    return iterate


def payload(workload: CollectiveWorkload, n: int) -> int:
    """The payload in bytes for a group of `n` devices: whole elements, in n equal parts if the op is in DIVIDES."""
    parts = n if workload.op in DIVIDES else 1
    itemsize = jnp.dtype(workload.dtype).itemsize
    return max(1, round(workload.payload_bytes / (itemsize * parts))) * parts * itemsize


def lengths(workload: CollectiveWorkload, n: int) -> tuple[int, int]:
    """Elements of one device's argument and of its result, in a group of `n` devices."""
    count = payload(workload, n) // jnp.dtype(workload.dtype).itemsize
    if workload.op == "all_gather":
        return count // n, count
    return count, count // n if workload.op == "reduce_scatter" else count


def resident_bytes(workload: CollectiveWorkload, devices: int, n: int, platform: str) -> int:
    """An upper bound on the bytes that `devices` in groups of `n` hold: carried buffers and scratch memory."""
    argument, result = lengths(workload, n)
    carried = argument + result
    if workload.op == "broadcast" and not has_broadcast(platform):
        carried += argument  # the masked copy, see `build`
    scratch = 2 * result if workload.op == "all_to_all" else 0
    if platform == "cpu" and workload.dtype == "bfloat16":  # computed in float32, see docs/metrics
        scratch = 2 * carried
    return devices * (carried + scratch) * jnp.dtype(workload.dtype).itemsize


def has_broadcast(platform: str) -> bool:
    """Whether JAX lowers a broadcast on the platform. platform: `jax.Device.platform`."""
    return platform == "gpu"


def instruction(op: str, platform: str) -> str:
    """The HLO instruction that does the work."""
    if op == "broadcast":
        return "collective-broadcast" if has_broadcast(platform) else "all-reduce"
    return {"ppermute": "collective-permute"}.get(op, op.replace("_", "-"))


def build(
    workload: CollectiveWorkload, devices: list[jax.Device], mesh_shape: tuple[int, ...], axis: str
) -> Chain[tuple[jax.Array, ...], tuple[jax.Array]]:
    """The collective over the groups along `axis` of a mesh of `mesh_shape`, made of the first `devices`.

    state = (argument, ..., result), one shard for each device; batch = (zero,).

    Raises:
      UserError: the sum is not exact, so its result could not be checked.
    """
    devices = devices[: math.prod(mesh_shape)]
    mesh = grid(devices, mesh_shape)
    devices = list(mesh.devices.flat)  # by position in the mesh, which may differ from the given order (torus)
    axes = AXES[: len(mesh_shape)]
    n = mesh.shape[axis]
    dtype = jnp.dtype(workload.dtype)
    argument, result = lengths(workload, n)
    largest = require_exact(workload.op, dtype, n if workload.op in SUMS else 1)
    masked = workload.op == "broadcast" and not has_broadcast(devices[0].platform)
    collective = _collective("all_reduce" if masked else workload.op, axis, n)
    split, whole = NamedSharding(mesh, PartitionSpec(axes)), NamedSharding(mesh, PartitionSpec())

    def local_step(state: tuple[jax.Array, ...], batch: tuple[jax.Array]) -> tuple[tuple[jax.Array, ...], None]:
        (x, *_), (zero,) = state, batch
        if not masked:
            out = collective(x)
            return (feed_back(x, out, zero), out), None
        # `sent` is carried too: as scratch memory, the system would have to provide it again in each call.
        sent = jnp.where(jax.lax.axis_index(axis) == 0, x, jnp.zeros_like(x))
        out = collective(sent)
        return (feed_back(x, out, zero), sent, out), None

    def draw(seed: int) -> tuple[tuple[jax.Array, ...], tuple[jax.Array]]:
        drawn = (drawn_values(seed, (position,), 0, argument, dtype, largest) for position in range(len(devices)))
        x = _shards(split, devices, drawn, argument)
        # The step donates its state, so the first one has room for the results.
        empty = [np.zeros(length, dtype) for length in ([argument] if masked else []) + [result]]
        others = [_shards(split, devices, itertools.repeat(array, len(devices)), array.size) for array in empty]
        return (x, *others), (multihost.put(np.zeros((), np.float32), whole),)

    def avals() -> tuple[ArrayTree, ArrayTree]:
        sizes = [argument, *([argument] if masked else []), result]
        state = tuple(jax.ShapeDtypeStruct((len(devices) * size,), dtype, sharding=split) for size in sizes)
        return state, (jax.ShapeDtypeStruct((), np.float32, sharding=whole),)

    def zeros(seed: int) -> float:
        """The share of zeros in all arguments, from one period of each."""
        length = min(argument, PERIOD)  # the values repeat after that
        drawn = [drawn_values(seed, (position,), 0, length, dtype, largest) for position in range(len(devices))]
        return float(np.mean(np.stack(drawn) == 0))

    specs = PartitionSpec(axes), PartitionSpec()
    return Chain(
        step=jax.shard_map(local_step, mesh=mesh, in_specs=specs, out_specs=specs),
        draw=draw,
        wrong=lambda state, seed: _count_wrong_on_devices(workload.op, state[-1], mesh, axis, seed, largest),
        values=len(devices) * result,
        zeros=zeros,
        mesh=mesh,
        avals=avals,
    )


def _collective(op: str, axis: str, n: int) -> Callable[[jax.Array], jax.Array]:
    """A device's argument -> its result, for use inside shard_map, over groups of `n` devices along `axis`."""
    lax = jax.lax
    functions: dict[str, Callable[[jax.Array], jax.Array]] = {
        # Its result is equal on all devices. The cast to *varying*, as for the others, costs nothing.
        "all_reduce": lambda x: lax.pcast(lax.psum(x, axis), axis, to="varying"),
        "all_gather": lambda x: lax.all_gather(x, axis, tiled=True),
        "reduce_scatter": lambda x: lax.psum_scatter(x, axis, tiled=True),
        "all_to_all": lambda x: lax.all_to_all(x, axis, 0, 0, tiled=True),
        "broadcast": lambda x: lax.pbroadcast(x, axis, 0),
        "ppermute": lambda x: lax.ppermute(x, axis, [(i, (i + 1) % n) for i in range(n)]),
    }
    return functions[op]


def _shards(
    sharding: NamedSharding, devices: Sequence[jax.Device], parts: Iterable[np.ndarray], length: int
) -> jax.Array:
    """An array with one part, (length,), for each device. Other processes put their own parts."""
    # On a CPU the array may share the memory of a part. XLA never writes there: such a donation has no effect.
    put = [
        jax.device_put(part, device)
        for part, device in zip(parts, devices, strict=True)
        if device.process_index == jax.process_index()
    ]
    return jax.make_array_from_single_device_arrays((len(devices) * length,), sharding, put)


def _count_wrong_on_devices(
    op: str, result: jax.Array, mesh: jax.sharding.Mesh, axis: str, seed: int, largest: int
) -> int:
    """The number of wrong values on this process's devices."""
    position_of = {device: position for position, device in enumerate(mesh.devices.flat)}
    shards = {position_of[shard.device]: shard for shard in result.addressable_shards}
    wrong = 0
    for members in groups(tuple(mesh.shape.values()), axis):
        for rank, position in enumerate(members):
            if position in shards:
                # `rank` is the position within the group, which decides the part that it gets.
                expected = segments(op, members, rank, result.size // len(position_of))
                wrong += count_wrong(np.asarray(shards.pop(position).data), expected, seed, largest)
    return wrong


@dataclass(frozen=True)
class Segment:
    """A part of a result: the sum over the devices at `positions` of their `length` elements from `start` on."""

    positions: tuple[int, ...]
    start: int
    length: int


def segments(op: str, members: tuple[int, ...], rank: int, length: int) -> list[Segment]:
    """The result of device `members[rank]`, as consecutive segments.

    Args:
      members: the positions in the mesh of the devices of its group, in the order of the axis.
      length: elements of the argument of one device.
    """
    part = length // len(members)
    return {
        "all_reduce": lambda: [Segment(members, 0, length)],
        "all_gather": lambda: [Segment((position,), 0, part) for position in members],
        "reduce_scatter": lambda: [Segment(members, rank * length, length)],
        "all_to_all": lambda: [Segment((position,), rank * part, part) for position in members],
        "broadcast": lambda: [Segment(members[:1], 0, length)],
        "ppermute": lambda: [Segment((members[rank - 1],), 0, length)],  # rank 0 gets that of the last: index -1
    }[op]()


def require_exact(op: str, dtype: np.dtype, summands: int) -> int:
    """The largest value, up to LARGEST, for which a sum of `summands` values is exact. Raises UserError if none is."""
    whole = jnp.issubdtype(dtype, jnp.integer)
    # A float holds every whole number up to 2 to the number of its significant bits.
    exact = int(jnp.iinfo(dtype).max) if whole else 2 ** (jnp.finfo(dtype).nmant + 1)
    if exact < summands:
        raise UserError(f"{op} in {dtype} over {summands} devices cannot be exact: use a wider type, such as float32.")
    return min(LARGEST, exact // summands)


@functools.lru_cache(maxsize=256)
def _period(seed: int, position: int, largest: int) -> np.ndarray:
    """The whole numbers that a device sends again and again, read-only."""
    drawn = np.random.default_rng([seed, position]).integers(0, largest + 1, PERIOD, np.uint8)
    drawn.flags.writeable = False  # cached: all callers share it
    return drawn


def drawn_values(
    seed: int, positions: Sequence[int], start: int, length: int, dtype: np.dtype, largest: int
) -> np.ndarray:
    """Elements start .. start + length of the sum over `positions`, in `dtype`. Shape (length,)."""
    period = np.sum([_period(seed, position, largest) for position in positions], axis=0, dtype=np.int64).astype(dtype)
    return np.resize(np.roll(period, -(start % PERIOD)), length)


def count_wrong(actual: np.ndarray, expected: list[Segment], seed: int, largest: int) -> int:
    """The number of wrong elements of `actual`, (length,); all of them if the length is wrong."""
    if actual.size != sum(segment.length for segment in expected):
        return max(actual.size, sum(segment.length for segment in expected))
    wrong, at = 0, 0
    for segment in expected:
        for done in range(0, segment.length, BLOCK):
            length = min(BLOCK, segment.length - done)
            right = drawn_values(seed, segment.positions, segment.start + done, length, actual.dtype, largest)
            wrong += int(np.sum(actual[at : at + length] != right))  # NaN is wrong
            at += length
    return wrong
