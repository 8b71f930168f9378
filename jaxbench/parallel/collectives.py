# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One collective as dependent steps on a mesh, under `jax.shard_map`. On a 2-D mesh all groups along an axis run it.

The compiled step has one all-reduce, all-gather, reduce-scatter, all-to-all or collective-permute. Its operand and
result are in donated buffers (the tests check this). Broadcast is a collective-broadcast on a GPU, the only platform
for which JAX lowers it. On other platforms the step follows the definition of `jax.lax.pbroadcast`: an all-reduce in
which all devices except the first contribute zeros.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from jaxbench.machine.mesh import AXES, grid, groups
from jaxbench.parallel import collective_answers as answers
from jaxbench.parallel import multihost
from jaxbench.parallel.chain import Chain, feed_back
from jaxbench.workloads.cases import CollectiveWorkload

DIVIDES = ("all_gather", "reduce_scatter", "all_to_all")  # a buffer has one part for each device
SUMS = ("all_reduce", "reduce_scatter")


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


def resident_bytes(workload: CollectiveWorkload, places: int, n: int, platform: str) -> int:
    """An upper bound on the bytes that `places` devices in groups of `n` hold: carried buffers and scratch memory."""
    argument, result = lengths(workload, n)
    carried = argument + result
    if workload.op == "broadcast" and not has_broadcast(platform):
        carried += argument
    scratch = 2 * result if workload.op == "all_to_all" else 0
    if platform == "cpu" and workload.dtype == "bfloat16":  # computed in float32, see docs/metrics
        scratch = 2 * carried
    return places * (carried + scratch) * jnp.dtype(workload.dtype).itemsize


def has_broadcast(platform: str) -> bool:
    """Whether JAX lowers a broadcast on the platform. platform: `jax.Device.platform`."""
    return platform == "gpu"


def instruction(op: str, platform: str) -> str:
    """The HLO instruction that does the work."""
    if op == "broadcast":
        return "collective-broadcast" if has_broadcast(platform) else "all-reduce"
    return {"ppermute": "collective-permute"}.get(op, op.replace("_", "-"))


def build(workload: CollectiveWorkload, devices: list[jax.Device], mesh_shape: tuple[int, ...], axis: str) -> Chain:
    """The collective over the groups along `axis` of a mesh of `mesh_shape`, made of the first `devices`.

    state = (argument, ..., result), one shard for each device; batch = (zero,).

    Raises:
      UserError: the sum is not exact, so its result could not be checked.
    """
    devices = devices[: math.prod(mesh_shape)]
    mesh = grid(devices, mesh_shape)
    devices = list(mesh.devices.flat)  # by position in the mesh
    axes = AXES[: len(mesh_shape)]
    n = mesh.shape[axis]
    dtype = jnp.dtype(workload.dtype)
    argument, result = lengths(workload, n)
    largest = answers.require_exact(workload.op, dtype, n if workload.op in SUMS else 1)
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

    def draw(seed: int) -> tuple[Any, Any]:
        drawn = (answers.values(seed, (place,), 0, argument, dtype, largest) for place in range(len(devices)))
        x = _shards(split, devices, drawn, argument)
        zeros = [np.zeros(length, dtype) for length in ([argument] if masked else []) + [result]]
        others = [_shards(split, devices, itertools.repeat(array, len(devices)), array.size) for array in zeros]
        return (x, *others), (multihost.put(np.zeros((), np.float32), whole),)

    specs = PartitionSpec(axes), PartitionSpec()
    return Chain(
        step=jax.shard_map(local_step, mesh=mesh, in_specs=specs, out_specs=specs),
        draw=draw,
        wrong=lambda state, seed: _count_wrong(workload.op, state[-1], mesh, axis, seed, largest),
        values=len(devices) * result,
        zeros=lambda seed: _zeros(seed, len(devices), argument, dtype, largest),
        mesh=mesh,
        avals=lambda: _avals([argument, *([argument] if masked else []), result], len(devices), dtype, split, whole),
    )


def _avals(lengths: list[int], places: int, dtype: Any, split: NamedSharding, whole: NamedSharding) -> tuple[Any, Any]:
    """State and batch as shapes: an array of each length on every device, and the zero."""
    state = tuple(jax.ShapeDtypeStruct((places * length,), dtype, sharding=split) for length in lengths)
    return state, (jax.ShapeDtypeStruct((), np.float32, sharding=whole),)


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


def _count_wrong(op: str, result: jax.Array, mesh: jax.sharding.Mesh, axis: str, seed: int, largest: int) -> int:
    """The number of wrong values on this process's devices."""
    place_of = {device: place for place, device in enumerate(mesh.devices.flat)}
    shards = {place_of[shard.device]: shard for shard in result.addressable_shards}
    wrong = 0
    for members in groups(tuple(mesh.shape.values()), axis):
        for rank, place in enumerate(members):
            if place in shards:
                expected = answers.segments(op, members, rank, result.size // len(place_of))
                wrong += answers.count_wrong(np.asarray(shards.pop(place).data), expected, seed, largest)
    return wrong


def _zeros(seed: int, places: int, length: int, dtype: np.dtype, largest: int) -> float:
    """The share of zeros in all arguments, from one period of each."""
    length = min(length, answers.PERIOD)  # the values repeat after that
    drawn = [answers.values(seed, (place,), 0, length, dtype, largest) for place in range(places)]
    return float(np.mean(np.stack(drawn) == 0))
