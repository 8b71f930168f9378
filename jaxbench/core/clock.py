# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Times chained steps in fenced blocks. The clock and the fence are arguments, so that tests can fake both.

A block is K steps, each from the state of the previous one, and one fence at the end: inside the block the host runs
ahead of the devices, as in real training, and the fence's cost is paid once. On several CPU devices it runs two steps
ahead (`RUN_AHEAD`). There are three clocks to compare:

first   the time of a block over K
second  the slope between blocks of K and of 2 K steps, which cancels every cost that a block pays once
third   for cases: the slope between K and 2 K iterations of one jitted loop, which also cancels the cost of each call
"""

from __future__ import annotations

import dataclasses
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypedDict, TypeVar

import jax
import numpy as np

from jaxbench.machine import cores
from jaxbench.machine.core_speed import CoreSpeeds
from jaxbench.machine.cores import LoadCounters
from jaxbench.machine.device_speed import DeviceSpeeds
from jaxbench.machine.power import PowerMeter
from jaxbench.records.power import DevicePower

COMPILE_EVENT = "/jax/core/compile/backend_compile_duration"  # JAX records one for each program that XLA compiles
# CPU devices of one process share XLA's thread pool. A step that waits for its inputs holds a thread, so a host that
# runs far ahead fills the pool with waiting steps. Then a collective waits for a device that never gets a thread, and
# the process hangs: seen with jax 0.10.2 after 300 steps of 2, 4 and 8 devices on fewer than two threads each, and not
# with jax 0.12. With at most this many steps in flight, two threads are enough for 8 devices and 16 collectives at once
# (`tests/core/test_run_ahead.py`).
RUN_AHEAD = 2
State = TypeVar("State")  # this and the batch: trees of arrays on devices
Batch = TypeVar("Batch")
Step = Callable[[State, Batch], tuple[State, object]]  # compiled; returns the next state and metrics
Loop = Callable[[State, Batch, jax.Array], State]  # (state, batch, count) -> the state after `count` steps in one call
SIDE = 224  # of the matrix, small enough for a core's own cache


@dataclass(frozen=True)
class Round:
    """Raw wall times, seconds per block; and the load of the timed blocks, as in `RoundRecord`."""

    block_s: tuple[float, ...]
    double_block_s: tuple[float, ...]
    warmup_block_s: tuple[float, ...]
    settled: bool
    compilations: int
    cpu_s: tuple[float, ...] = ()
    switches: tuple[int, ...] = ()
    others_s: tuple[float, ...] = ()
    steal_s: tuple[float, ...] = ()
    cpus: int = 0
    quota: float = 0.0
    throttled_s: tuple[float, ...] = ()
    system_s: tuple[float, ...] = ()
    waits: tuple[int, ...] = ()
    faults: tuple[int, ...] = ()
    threads: tuple[int, ...] = ()
    probe_s: tuple[float, ...] = ()
    cores: tuple[int, ...] = ()
    core_product_s: tuple[tuple[float, ...], ...] = ()
    core_copy_s: tuple[tuple[float, ...], ...] = ()
    accelerators: tuple[str, ...] = ()
    accelerator_product_s: tuple[tuple[float, ...], ...] = ()
    warmup_steps: int = 0
    power: tuple[tuple[DevicePower, ...], ...] = ()


class Load(TypedDict, total=False):
    """The fields of a `Round` that say how loaded the machine was during each block."""

    cpu_s: tuple[float, ...]
    switches: tuple[int, ...]
    others_s: tuple[float, ...]
    steal_s: tuple[float, ...]
    cpus: int
    quota: float
    throttled_s: tuple[float, ...]
    system_s: tuple[float, ...]
    waits: tuple[int, ...]
    faults: tuple[int, ...]
    threads: tuple[int, ...]


class Speeds(TypedDict, total=False):
    """The fields of a `Round` that say how fast its cores or accelerators were during each block."""

    cores: tuple[int, ...]
    core_product_s: tuple[tuple[float, ...], ...]
    core_copy_s: tuple[tuple[float, ...], ...]
    accelerators: tuple[str, ...]
    accelerator_product_s: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Loops:
    """Wall times, seconds, of a loop of `steps` and of 2 x `steps` iterations."""

    steps: int
    single_s: tuple[float, ...]
    double_s: tuple[float, ...]


@dataclass(frozen=True)
class InFlight:
    """The outputs of the newest steps, at most `limit` of them unfinished; see `RUN_AHEAD`.

    limit: None for no limit, as on accelerators, where a step that waits holds no thread of the host.
    fence: waits until its argument is computed.
    """

    limit: int | None
    fence: Callable[[object], object] = jax.block_until_ready
    outputs: deque[object] = dataclasses.field(default_factory=deque)

    def add(self, state: object, metrics: object) -> None:
        """Notes a step that was just started. Waits for the oldest if too many are in flight."""
        if self.limit is None:
            return
        # The next step overwrites the state, so only metrics can be waited for later.
        if not jax.tree.leaves(metrics):
            self.fence(state)
            return
        self.outputs.append(metrics)
        if len(self.outputs) > self.limit:
            self.fence(self.outputs.popleft())


def run_ahead(devices: Sequence[jax.Device]) -> int | None:
    """The most steps of these devices that may be in flight; None: no limit. devices: of this process."""
    return RUN_AHEAD if len(devices) > 1 and devices[0].platform == "cpu" else None


@dataclass(frozen=True, kw_only=True)
class Timer:
    """How blocks are timed.

    Attributes:
      blocks: timed blocks of K steps per round, alternating with as many of 2 K steps if the round has a second clock.
      max_steps: K is at most this.
      warmup_blocks: the most blocks to run until two successive ones agree within `agreement` (relative).
      clock: seconds, monotonic. fence: waits until its argument is computed.
      ahead: the most steps in flight (`run_ahead`); None: no limit.
      before, after: read the load of the machine, outside the timed span of a block.
      probe: seconds of a fixed piece of work, done before each timed block; None: there is none.
      speeds: the speed of each core or accelerator, read before each timed block and after the last; None: not read.
      power: reads clocks, power and energy of the devices around each timed block; None: nothing can be read.
      barrier: waits for the other processes that run the step, so that all begin a block together.
      broadcast: a decision of this process -> that of the leader. If each decided by its own clock, one process could
        run a step that the others do not, and wait for them forever.
    """

    blocks: int = 1
    max_steps: int = 1024
    warmup_blocks: int = 6
    agreement: float = 0.1
    clock: Callable[[], float] = time.perf_counter
    fence: Callable[[object], object] = jax.block_until_ready
    ahead: int | None = None
    before: Callable[[], LoadCounters] = cores.load_before
    after: Callable[[], LoadCounters] = cores.load_after
    probe: Callable[[], float] | None = None
    speeds: Callable[[], CoreSpeeds | DeviceSpeeds] | None = None
    power: PowerMeter | None = None
    barrier: Callable[[], None] = lambda: None
    broadcast: Callable[[bool], bool] = lambda value: value

    def block(self, step: Step[State, Batch], state: State, batch: Batch, steps: int) -> tuple[float, State]:
        """Runs `steps` dependent steps. Returns (seconds, state)."""
        self.barrier()  # before the clock starts: waiting for a late process is no part of a step
        in_flight = InFlight(self.ahead, self.fence)
        start = self.clock()
        for _ in range(steps):
            state, metrics = step(state, batch)
            in_flight.add(state, metrics)
        self.fence((state, metrics))
        return self.clock() - start, state

    def steps_per_block(
        self, step: Step[State, Batch], state: State, batch: Batch, least_s: float
    ) -> tuple[int, State]:
        """(K, state). K: the smallest power of two (at most `max_steps`) for which two blocks in a row last `least_s`.

        It is found by doubling, because the first steps of a program are slower and predict nothing. One block is not
        enough, because it may be interrupted.
        """
        steps = 1
        while steps < self.max_steps:
            seconds, state = self.block(step, state, batch, steps)
            long_enough = self.broadcast(seconds >= least_s)
            if long_enough:
                seconds, state = self.block(step, state, batch, steps)
                long_enough = self.broadcast(seconds >= least_s)
            if long_enough:
                break
            steps *= 2
        return steps, state

    def loop(self, loop: Loop[State, Batch], state: State, batch: Batch, count: jax.Array) -> tuple[float, State]:
        """One run of the loop. `count`: its iterations, an int32 scalar on the device. Returns (seconds, state)."""
        self.barrier()
        start = self.clock()
        state = loop(state, batch, count)
        self.fence(state)
        return self.clock() - start, state

    def steps_per_loop(
        self,
        loop: Loop[State, Batch],
        state: State,
        batch: Batch,
        least_s: float,
        to_device: Callable[[int], jax.Array],
    ) -> tuple[int, State]:
        """Like `steps_per_block`, up to 2^20 iterations. to_device: puts a number on the device."""
        steps = 1
        while True:
            seconds, state = self.loop(loop, state, batch, to_device(steps))
            if steps >= 2**20 or self.broadcast(seconds >= least_s):
                return steps, state
            # Below an eighth of the goal, eightfold: that cannot overshoot.
            steps *= 2 if self.broadcast(seconds > least_s / 8) else 8

    def loops(
        self, loop: Loop[State, Batch], state: State, batch: Batch, steps: int, to_device: Callable[[int], jax.Array]
    ) -> tuple[Loops, State]:
        """Times loops of `steps` and 2 x `steps` iterations alternately, after one warm-up loop."""
        once, twice = to_device(steps), to_device(2 * steps)
        _, state = self.loop(loop, state, batch, once)
        single, double = [], []
        with jax.transfer_guard("disallow"):
            for _ in range(self.blocks):
                seconds, state = self.loop(loop, state, batch, once)
                single.append(seconds)
                seconds, state = self.loop(loop, state, batch, twice)
                double.append(seconds)
        return Loops(steps, tuple(single), tuple(double)), state

    def round(self, step: Step[State, Batch], state: State, batch: Batch, steps: int) -> Round:
        """Warms up until two successive blocks agree, then times the blocks. A host transfer inside raises an error."""
        return self.round_and_state(step, state, batch, steps)[0]

    def round_and_state(
        self,
        step: Step[State, Batch],
        state: State,
        batch: Batch,
        steps: int,
        *,
        guard: str = "disallow",
        repeated: bool = False,
        double: bool = True,
    ) -> tuple[Round, State]:
        """(`round`, the state after its last step). guard: "allow" for a step that is itself a transfer.

        repeated: the step has settled in an earlier round of this process, so half a block is enough to bring its data
        back into the caches. double: the round has the second clock, too.
        """
        warmup: list[float] = []
        settled = False
        warmup_steps = -(-steps // 2) if repeated else steps
        while not settled and len(warmup) < self.warmup_blocks:
            seconds, state = self.block(step, state, batch, warmup_steps)
            warmup.append(seconds)
            agree = len(warmup) > 1 and abs(warmup[-1] - warmup[-2]) <= self.agreement * min(warmup[-2:])
            settled = repeated or self.broadcast(agree)
        times: list[float] = []
        probe_s: list[float] = []
        speeds: list[CoreSpeeds | DeviceSpeeds] = []
        samples: list[tuple[LoadCounters, LoadCounters]] = []
        power: list[tuple[DevicePower, ...]] = []
        with jax.transfer_guard(guard), count_compilations() as compilations:
            # In turns, so that a drift of the machine moves both clocks alike.
            for count in self.blocks * ((steps, 2 * steps) if double else (steps,)):
                if self.speeds is not None:
                    speeds.append(self.speeds())
                if self.probe is not None:
                    probe_s.append(self.probe())
                if self.power is not None:
                    self.power.begin()
                before = self.before()  # after the probe, which is not the block's load
                seconds, state = self.block(step, state, batch, count)
                samples.append((before, self.after()))
                if self.power is not None:
                    power.append(self.power.end())
                times.append(seconds)
            if self.speeds is not None:
                speeds.append(self.speeds())
        measured = Round(
            block_s=tuple(times[:: 2 if double else 1]),
            double_block_s=tuple(times[1::2]) if double else (),
            warmup_block_s=tuple(warmup),
            settled=settled,
            compilations=len(compilations),
            probe_s=tuple(probe_s),
            warmup_steps=warmup_steps,
            power=tuple(power),
            **_speeds(speeds),
            **loads(samples),
        )
        return measured, state


def loads(samples: Sequence[tuple[LoadCounters, LoadCounters]]) -> Load:
    """The load of each block, from the samples before and after it, as the fields of `Round`."""
    load: Load = {
        "cpu_s": tuple(b.cpu_s - a.cpu_s for a, b in samples),
        "switches": tuple(b.switches - a.switches for a, b in samples),
        "system_s": tuple(b.system_s - a.system_s for a, b in samples),
        "waits": tuple(b.waits - a.waits for a, b in samples),
        "faults": tuple(b.faults - a.faults for a, b in samples),
        "cpus": samples[0][0].cpus,
    }
    counted = [b.threads for _, b in samples if b.threads is not None]  # after the block: its pools have started
    if len(counted) == len(samples):
        load["threads"] = tuple(counted)
    if busy := _between([(a.busy_s, b.busy_s) for a, b in samples]):
        load["others_s"] = tuple(all_s - own_s for all_s, own_s in zip(busy, load["cpu_s"], strict=True))
    if steal := _between([(a.steal_s, b.steal_s) for a, b in samples]):
        load["steal_s"] = steal
    quotas = [(a.quota, b.quota) for a, b in samples]
    if all(a is not None and b is not None for a, b in quotas):
        load["quota"] = min(each.cores for pair in quotas for each in pair if each is not None)
        stopped = _between([(a.throttled_s, b.throttled_s) for a, b in quotas if a is not None and b is not None])
        load["throttled_s"] = tuple(max(0.0, seconds) for seconds in stopped)  # another group may be the tightest now
    return load


def _speeds(readings: Sequence[CoreSpeeds | DeviceSpeeds]) -> Speeds:
    """Readings around the blocks of a round, as the fields of `Round`: for each block the faster of the reading before
    it and the one after it. A tenth of single readings on an idle virtual machine are slow for a moment; a neighbour
    that was there for the whole block slows both."""
    if not readings:
        return {}

    def faster(times: Sequence[tuple[float, ...]]) -> tuple[tuple[float, ...], ...]:
        return tuple(tuple(map(min, a, b)) for a, b in zip(times, times[1:], strict=False))

    product_s, first = faster([each.product_s for each in readings]), readings[0]
    if isinstance(first, DeviceSpeeds):
        return {"accelerators": first.names, "accelerator_product_s": product_s}
    copy_s = faster([each.copy_s for each in readings if isinstance(each, CoreSpeeds)])
    return {"cores": first.cpus, "core_product_s": product_s, "core_copy_s": copy_s}


def _between(readings: Sequence[tuple[float | None, float | None]]) -> tuple[float, ...]:
    """The difference of each pair; () if any reading is unknown."""
    complete = [(a, b) for a, b in readings if a is not None and b is not None]
    return tuple(b - a for a, b in complete) if len(complete) == len(readings) else ()


@contextmanager
def count_compilations() -> Iterator[list[str]]:
    """Yields a list that grows by one entry for each program compiled while the context is open."""
    compiled: list[str] = []

    def listen(event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event == COMPILE_EVENT:
            compiled.append(str(kwargs.get("fun_name", "a program")))

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield compiled
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


class Probe:
    """How fast the cores are right now: three products of a matrix on each of some CPU devices, all at once.

    It takes a millisecond or two. Many hypervisors do not report the time that they take from a machine; this shows it.
    """

    def __init__(self, devices: Sequence[jax.Device]):
        """Compiles and runs it once."""
        matrix = np.full((SIDE, SIDE), 1 / SIDE, np.float32)  # its own square: no product overflows or vanishes
        self._products = [_product(device) for device in devices]
        self._matrices = [jax.device_put(matrix, device) for device in devices]
        self()

    def __call__(self) -> float:
        """Seconds until all are done."""
        start = time.perf_counter()
        jax.block_until_ready([call(x) for call, x in zip(self._products, self._matrices, strict=True)])
        return time.perf_counter() - start


def _product(device: jax.Device) -> Callable[[jax.Array], jax.Array]:
    """The three products, compiled for one device, whatever mesh is in use when they are called."""
    aval = jax.ShapeDtypeStruct((SIDE, SIDE), np.float32, sharding=jax.sharding.SingleDeviceSharding(device))
    with jax.set_mesh(jax.sharding.Mesh(np.array([device]), ("one",))):
        return jax.jit(lambda x: x @ x @ x @ x).lower(aval).compile()
