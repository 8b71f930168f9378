# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Probes of the devices of one host: products, triad, copies, start latency, pairs and all-reduces, each with its
bits."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxbench.features.accept import bits
from jaxbench.machine import cores

Wrong = list[tuple[int, str]]  # (index of the unit, a clause that says what is wrong)
BLOCK_S = 0.008  # intended length of a timed block: long compared with its start, short compared with a disturbance
MOST_CALLS = 2000
MIB = 2**20
# What is wrong with the result of a probe.
FAULTS = {
    "result": "its result has wrong bits",
    "copy": "a copy has other bits than its source",
    "pair": "a copy between devices has other bits than its source",
    "sum": "the sum on device {device} is not the sum of what the devices had",
    "input": "a file has other bits than were written",
}
PAIRED = 6  # devices of a CPU that take part in pairs


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How large the operands are. side: rows of a square product. The others: bytes of one array."""

    side: int
    triad: int
    copy: int
    small: int = MIB
    large: int = 256 * MIB


def sizes(platform: str) -> Sizes:
    """Small enough for every host of this platform, and large enough to leave its caches."""
    if platform == "cpu":
        return Sizes(side=512, triad=16 * MIB, copy=16 * MIB)
    return Sizes(side=8192, triad=256 * MIB, copy=64 * MIB)


@dataclass(frozen=True, kw_only=True)
class Runner:
    """A probe that is compiled.

    Attributes:
      units, amount: as in `messages.ProbeFacts`. run: -> seconds of each unit. check: the last results' errors.
    """

    name: str
    units: tuple[str, ...]
    amount: float
    run: Callable[[], list[float]]
    check: Callable[[], Wrong]


class Devices:
    """The devices of one process, their sizes, and how one of them works alone or all work at once.

    own_cores: of a CPU: the core that each device has to itself while it works alone.
    """

    def __init__(self, devices: Sequence[jax.Device], own_cores: Sequence[int]):
        self.all = list(devices)
        self.sizes = sizes(devices[0].platform)
        self._cores = list(own_cores) if devices[0].platform == "cpu" else []
        self._threads = ThreadPoolExecutor(len(devices))

    @contextlib.contextmanager
    def alone(self, index: int) -> Iterator[None]:
        """Device `index` works alone: on a CPU on its own core, to which all threads of this process move."""
        if index >= len(self._cores):
            yield
            return
        before = os.sched_getaffinity(0)
        _pin({self._cores[index]})
        try:
            yield
        finally:
            _pin(before)

    def together(self, work: Callable[[int], float]) -> list[float]:
        """The results of `work(index)` for all devices, which begin at the same time."""
        begin = threading.Barrier(len(self.all))

        def started(index: int) -> float:
            begin.wait()
            return work(index)

        return list(self._threads.map(started, range(len(self.all))))


def _pin(cpus: set[int], tasks: Path = Path("/proc/self/task")) -> None:
    """Binds all threads of this process to these CPUs, where the system can."""
    if not hasattr(os, "sched_setaffinity"):
        return
    for task in tasks.iterdir() if tasks.exists() else ():
        with contextlib.suppress(OSError):  # a thread that has ended meanwhile
            os.sched_setaffinity(int(task.name), cpus)


def seconds(call: Callable[[], object], calls: int) -> float:
    """Wall seconds of one of `calls` successive calls, until the last result is there."""
    start = time.perf_counter()
    for _ in range(calls):
        last = call()
    jax.block_until_ready(last)
    return (time.perf_counter() - start) / calls


def calls_for(call: Callable[[], object]) -> int:
    """How many calls make a block."""
    seconds(call, 1)  # compiles
    return int(np.clip(BLOCK_S / min(seconds(call, 1) for _ in range(3)), 1, MOST_CALLS))


class Products:
    """Products of small integers on each device, in bfloat16 or float32, with float32 sums."""

    def __init__(self, devices: Devices, dtype: str):
        self._devices, side = devices, devices.sizes.side
        self._a, self._b = (bits.integers(side * side, seed).reshape(side, side) for seed in (1, 2))
        self._multiply = jax.jit(lambda x, y: jnp.matmul(x, y, preferred_element_type=jnp.float32))
        kind = jnp.dtype(dtype)
        self._operands = [
            tuple(jax.device_put(each.astype(kind), device) for each in (self._a, self._b)) for device in devices.all
        ]
        self._right = bits.of_product(self._a, self._b)
        self.results: list[jax.Array] = [self._multiply(*operands) for operands in self._operands]
        self._calls = calls_for(lambda: self._multiply(*self._operands[0]))

    def runner(self, name: str, *, together: bool) -> Runner:
        count, side = len(self._devices.all), self._devices.sizes.side

        def alone() -> list[float]:
            found = []
            for index in range(count):
                with self._devices.alone(index):
                    found.append(self._on(index))
            return found

        def run() -> list[float]:
            return self._devices.together(self._on) if together else alone()

        return Runner(
            name=name,
            units=tuple(map(str, range(count))),
            amount=2.0 * side**3,
            run=run,
            check=lambda: self._wrong(name),
        )

    def _on(self, index: int) -> float:
        """The seconds of one product on a device."""

        def call() -> jax.Array:
            self.results[index] = self._multiply(*self._operands[index])
            return self.results[index]

        return seconds(call, self._calls)

    def _wrong(self, name: str) -> Wrong:
        """A clause for each device with a product of wrong bits."""
        found = []
        for index, result in enumerate(self.results):
            if int(bits.on_device(shown := bits.seen(result, name, index))) != self._right:
                here = np.asarray(shown)
                text = bits.where_wrong(here, lambda first, end: self._a[first:end] @ self._b)
                found.append((index, f"a product is wrong: {text}"))
        return found


def triad(devices: Devices) -> Runner:
    """a = b + 3 c on each device."""
    count = devices.sizes.triad // 4
    b, c = bits.ascending(count), bits.ascending(count)[::-1].copy()
    right = bits.on_host(b + np.float32(3) * c)
    add = jax.jit(lambda b, c: b + jnp.float32(3) * c)
    return _alone(devices, "triad", (b, c), add, right, 12.0 * count)


def start_latency(devices: Devices) -> Runner:
    """The time of a program that adds 1 to a single number."""
    return _alone(
        devices,
        "start",
        (np.ones((1,), np.float32),),
        jax.jit(lambda x: x + 1),
        bits.on_host(np.array([2], np.float32)),
        1.0,
    )


def _alone(
    devices: Devices,
    name: str,
    host: tuple[np.ndarray, ...],
    compute: Callable[..., jax.Array],
    right: int,
    amount: float,
) -> Runner:
    """A probe in which each device in turn computes something. right: the weighted sum of the bits of the result."""
    given = [tuple(jax.device_put(each, device) for each in host) for device in devices.all]
    results = [compute(*operands) for operands in given]
    calls = calls_for(lambda: compute(*given[0]))

    def run() -> list[float]:
        found = []
        for index, operands in enumerate(given):
            with devices.alone(index):

                def call(index: int = index, operands: tuple[jax.Array, ...] = operands) -> jax.Array:
                    results[index] = compute(*operands)
                    return results[index]

                # One call at a time: a start latency must not hide behind the call before.
                found.append(seconds(call, calls) if name != "start" else _each(call, calls))
        return found

    def check() -> Wrong:
        sums = [int(bits.on_device(bits.seen(result, name, index))) for index, result in enumerate(results)]
        return [(index, FAULTS["result"]) for index, each in enumerate(sums) if each != right]

    return Runner(name=name, units=_device_names(devices), amount=amount, run=run, check=check)


def _each(call: Callable[[], jax.Array], calls: int) -> float:
    """The mean seconds of a call that is waited for each time."""
    start = time.perf_counter()
    for _ in range(calls):
        jax.block_until_ready(call())
    return (time.perf_counter() - start) / calls


def _device_names(devices: Devices) -> tuple[str, ...]:
    return tuple(map(str, range(len(devices.all))))


def copies(devices: Devices, *, inward: bool) -> Runner:
    """Copies from the host to each device, or back."""
    name = "copy_in" if inward else "copy_out"
    source = _not_shared(bits.ascending(devices.sizes.copy // 4))
    right = bits.on_host(source)
    held = [_put(source, device) for device in devices.all]
    taken = [np.array(each) for each in held]
    calls = calls_for(lambda: _put(source, devices.all[0]) if inward else np.array(held[0]))

    def run() -> list[float]:
        found = []
        for index, device in enumerate(devices.all):
            with devices.alone(index):
                start = time.perf_counter()
                for _ in range(calls):
                    if inward:
                        held[index] = jax.block_until_ready(_put(source, device))
                    else:
                        taken[index] = np.array(_unread(held[index]))
                found.append((time.perf_counter() - start) / calls)
        return found

    def check() -> Wrong:
        wrong = []
        for index in range(len(held)):
            if inward:
                same = int(bits.on_device(bits.seen(held[index], name, index))) == right
            else:
                same = bits.on_host(taken[index]) == right and not bits.flipped(name, index)
            if not same:
                wrong.append((index, FAULTS["copy"]))
        return wrong

    return Runner(name=name, units=_device_names(devices), amount=4.0 * len(source), run=run, check=check)


def _unread(array: jax.Array) -> jax.Array:
    """The same values in an array that the host has not read yet: JAX keeps what it has read once."""
    return array if array.devices().pop().platform == "cpu" else jax.block_until_ready(array + 0)


def _not_shared(array: np.ndarray) -> np.ndarray:
    """A copy that a CPU device must copy: it shares only memory that begins at a multiple of 64 bytes."""
    room = np.empty(array.size + 16, np.float32)
    at = 1 - room.ctypes.data // 4 % 16
    placed = room[at % 16 : at % 16 + array.size]
    placed[:] = array
    return placed


def _put(source: np.ndarray, device: jax.Device) -> jax.Array:
    """Copies an array to a device, even if both could share its memory."""
    return jax.device_put(source, device, may_alias=False)


def pairs(devices: Devices) -> Runner:
    """Copies from each device to each other device."""
    # Devices of a CPU copy within its memory, so more pairs would only take time and memory.
    count = min(len(devices.all), PAIRED) if devices.all[0].platform == "cpu" else len(devices.all)
    ways = [(a, b) for a in range(count) for b in range(count) if a != b]
    source = bits.ascending(devices.sizes.copy // 4)
    right = bits.on_host(source)
    held = [jax.device_put(source, device) for device in devices.all]
    arrived: list[jax.Array] = [jax.device_put(held[a], devices.all[b]) for a, b in ways]
    calls = calls_for(lambda: jax.device_put(held[ways[0][0]], devices.all[ways[0][1]]))

    def run() -> list[float]:
        found = []
        for at, (a, b) in enumerate(ways):

            def call(at: int = at, a: int = a, b: int = b) -> jax.Array:
                arrived[at] = jax.device_put(held[a], devices.all[b], may_alias=False)
                return arrived[at]

            found.append(seconds(call, calls))
        return found

    def check() -> Wrong:
        sums = [int(bits.on_device(bits.seen(each, "pairs", at))) for at, each in enumerate(arrived)]
        return [(at, FAULTS["pair"]) for at, s in enumerate(sums) if s != right]

    units = tuple(f"{a}>{b}" for a, b in ways)
    return Runner(name="pairs", units=units, amount=4.0 * len(source), run=run, check=check)


def all_reduce(
    name: str, devices: Sequence[jax.Device], size: int, barrier: Callable[[], None] | None = None
) -> Runner:
    """The sum of an array over devices, perhaps of several hosts. size: bytes on each device. Its amount is what one
    device sends: the bus bandwidth. barrier: waits for the other processes."""
    count, total = size // 4, len(devices)
    mesh = Mesh(np.array(devices), ("all",))
    spread = NamedSharding(mesh, PartitionSpec("all"))
    base = bits.ascending(count)

    def shard(index: tuple[slice, ...] | None) -> np.ndarray:
        number = (index[0].start or 0) // count if index else 0
        return base + np.float32(number)

    given = jax.make_array_from_callback((total * count,), spread, shard)
    reduce = functools.partial(jax.shard_map, mesh=mesh, in_specs=PartitionSpec("all"), out_specs=PartitionSpec("all"))
    add = jax.jit(reduce(lambda x: jax.lax.psum(x, "all")))
    right = bits.on_host(np.float32(total) * base + np.float32(total * (total - 1) // 2))
    last = [add(given)]
    jax.block_until_ready(last[0])
    # The same number of calls in all processes: they must not decide it alone.
    calls = max(1, min(20, int(2**25 // size)))

    def call() -> jax.Array:
        last[0] = add(given)
        return last[0]

    def run() -> list[float]:
        if barrier is not None:
            barrier()
        return [seconds(call, calls)]

    def check() -> Wrong:
        for each in last[0].addressable_shards:
            if int(bits.on_device(bits.seen(each.data, name, each.device.local_hardware_id or 0))) != right:
                return [(0, FAULTS["sum"].format(device=each.device.id))]
        return []

    sent = 2 * (total - 1) / total * size
    return Runner(name=name, units=("all",), amount=sent, run=run, check=check)


def from_disk(folder: Path, size: int = 64 * MIB) -> Runner:
    """Reads a file that no cache holds, as far as the system lets it go."""
    path = folder / f"accept-input-{os.getpid()}.bin"
    source = bits.ascending(size // 4)
    source.tofile(path)
    descriptor = os.open(path, os.O_RDONLY)
    # Only clean pages can be dropped from the cache.
    os.fsync(descriptor)
    path.unlink()  # the open descriptor keeps it; nothing stays when this process ends
    right, read = bits.on_host(source), [source]

    def run() -> list[float]:
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        start = time.perf_counter()
        read[0] = np.frombuffer(b"".join(_chunks(descriptor, size)), np.float32)
        return [time.perf_counter() - start]

    def check() -> Wrong:
        wrong = bits.on_host(read[0]) != right or bits.flipped("input", 0)
        return [(0, FAULTS["input"])] if wrong else []

    return Runner(name="input", units=("all",), amount=float(size), run=run, check=check)


def _chunks(descriptor: int, size: int) -> Iterator[bytes]:
    """The bytes of a file in pieces of 8 MiB."""
    at = 0
    while at < size and (chunk := os.pread(descriptor, 8 * MIB, at)):
        at += len(chunk)
        yield chunk


def too_large(devices: Devices) -> str:
    """Why the large all-reduce does not fit here; "" if it does. Devices of a CPU share the memory of the host."""
    needed = 3 * len(devices.all) * devices.sizes.large
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if devices.all[0].platform != "cpu" or needed < free / 2:
        return ""
    return f"it needs {needed / 2**30:.1f} GiB of the {free / 2**30:.1f} GiB that are free"


def usable_cores(order: Sequence[int]) -> list[int]:
    """The cores of this process: those that it was given, as far as it may use them."""
    mine = cores.physical_cores()
    return [core for core in order if core in mine] or mine
