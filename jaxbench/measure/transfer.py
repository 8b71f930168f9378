# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Copies between host and device, and between devices: one at a time, waiting for each.

JAX avoids copies where it can, but here every copy must be real. Copies to a device use `jax.device_put`, into new
memory each time. On a CPU the system provides large blocks page by page, which is part of the time. Even with
`may_alias=False` a CPU device may share the memory of a NumPy array that has XLA's alignment, so the source is
misaligned on purpose. Device to host is `numpy.asarray`. An array caches its host value, so each copy uses a new handle
to the same buffer. On a CPU the host value of an array is a view of it, which is then copied into a buffer that is
allocated once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench.workloads.cases import TransferWorkload

HOST = "host"
# Values repeat with this period, a prime, so that neighbouring parts of an array differ.
PERIOD = 65_521
XLA_ALIGNMENT = 64  # bytes; a CPU device shares a NumPy array's memory only if its address is a multiple of this


@dataclass(frozen=True)
class Transfer:
    """One copy, ready to be repeated.

    Attributes:
      call: makes one copy, waits for it and returns it.
      wrong: the number of values of the latest copy that differ from the source; all of them if no copy was made, or if
        it shares the source's memory.
      values: the number of values that are copied.
      zeros: the share of the source's values that are zero.
    """

    call: Callable[[], Any]
    wrong: Callable[[], int]
    values: int
    zeros: float


def places(platform: str, count: int) -> list[str]:
    """The names of the first devices of a process: "gpu:0", "gpu:1"; the host is "host"."""
    return [f"{platform}:{index}" for index in range(count)]


def pairs(op: str, devices: Sequence[str]) -> list[tuple[str, str]]:
    """All (source, target) of a transfer. `devices`: names such as `places` gives. Touches no device."""
    if op == "host_to_device":
        return [(HOST, device) for device in devices]
    if op == "device_to_host":
        return [(device, HOST) for device in devices]
    return [(source, target) for source in devices for target in devices if source != target]


def payload(workload: TransferWorkload) -> int:
    """The bytes that are copied, rounded to a whole number of elements."""
    itemsize = jnp.dtype(workload.dtype).itemsize
    return max(1, round(workload.payload_bytes / itemsize)) * itemsize


def build(
    workload: TransferWorkload, source: str, target: str, devices: list[jax.Device], *, seed: int = 0
) -> Transfer:
    """Draws an array, puts it where the copy starts, and returns the copy from `source` to `target`.

    Args:
      source, target: "host", or a platform and an index into `devices`, "gpu:3".
    """
    dtype = jnp.dtype(workload.dtype)
    original = _draw(payload(workload) // dtype.itemsize, dtype, seed)
    start: Any = original
    if source != HOST:
        start = _onto(_device(source, devices), original)()
    copy = _to_host(start) if target == HOST else _onto(_device(target, devices), start)
    newest: list[Any] = []

    def call() -> Any:
        newest[:] = ()  # frees the previous copy first, so that only one exists
        newest.append(copy())
        return newest[0]

    return Transfer(
        call=call,
        wrong=lambda: _count_wrong(original, start, newest[0]) if newest else original.size,
        values=original.size,
        zeros=float(np.mean(original[:PERIOD] == 0)),
    )


def _device(place: str, devices: list[jax.Device]) -> jax.Device:
    return devices[int(place.rpartition(":")[2])]


def _draw(length: int, dtype: np.dtype, seed: int) -> np.ndarray:
    """Small integers, (length,), at an address that is not a multiple of XLA_ALIGNMENT."""
    memory = np.empty(length * dtype.itemsize + 2 * XLA_ALIGNMENT, np.uint8)
    # One element past an aligned address: aligned for the dtype, but not for XLA.
    offset = dtype.itemsize - memory.ctypes.data % XLA_ALIGNMENT + XLA_ALIGNMENT
    drawn = memory[offset : offset + length * dtype.itemsize].view(dtype)
    period = np.random.default_rng(seed).integers(0, 8, min(length, PERIOD)).astype(dtype)
    drawn[:] = np.resize(period, length)
    return drawn


def _onto(device: jax.Device, array: Any) -> Callable[[], Any]:
    return lambda: jax.device_put(array, device, may_alias=False).block_until_ready()


def _to_host(array: jax.Array) -> Callable[[], Any]:
    if array.devices().pop().platform == "cpu":
        buffer = np.zeros(array.shape, array.dtype)

        def copy() -> np.ndarray:
            np.copyto(buffer, np.asarray(array))
            return buffer

        return copy
    newest = [array]

    def ask() -> np.ndarray:
        newest[0] = handle(newest[0])
        return np.asarray(newest[0])

    return ask


def handle(array: jax.Array) -> jax.Array:
    """A new array over the same device buffer, without a cached host value.

    The same array always returns the same handle, so each handle must be made from the previous one.
    """
    return array.addressable_data(0)


def address(array: Any) -> int | None:
    """The host address of the values; None for an array on an accelerator."""
    if isinstance(array, jax.Array):
        return array.unsafe_buffer_pointer() if array.devices().pop().platform == "cpu" else None
    return array.ctypes.data


def _count_wrong(original: np.ndarray, start: Any, copy: Any) -> int:
    copied = np.asarray(copy)
    shared = address(copy) is not None and address(copy) == address(start)
    if shared or copied.shape != original.shape or copied.dtype != original.dtype:
        return original.size
    return int(np.sum(copied != original))
