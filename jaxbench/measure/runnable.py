# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A case that is compiled and ready to time: a jitted chain with its loop, or individual calls."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec, SingleDeviceSharding

from jaxbench.measure import census, dot_flops, host_calls, kernel, transfer
from jaxbench.measure.clock import Timer
from jaxbench.parallel import chain as chain_lib
from jaxbench.parallel import multihost
from jaxbench.parallel.chain import Chain
from jaxbench.workloads.cases import KernelWorkload, TransferWorkload


@dataclass(frozen=True, kw_only=True)
class Facts:
    """The compiler's figures for one call. None: nothing is compiled, or the compiler does not report the figure."""

    compile_s: float | None = None
    flops: float | None = None
    bytes: float | None = None
    temp_bytes: int | None = None
    collectives: tuple[str, ...] = ()  # kinds in the compiled step
    calls_library: bool | None = None  # it has a custom call; the compiler does not count the FLOPs of those
    host_calls: tuple[str, ...] | None = None  # the compiled step's requests to the host; None: nothing is compiled


@dataclass(frozen=True, kw_only=True)
class Runnable:
    """A case as the bench times it.

    Attributes:
      step: (state, batch) -> (state, None), compiled, or plain calls.
      loop: (state, batch, count) -> state, compiled; None if a loop would measure something else.
      draw: seed -> (state, batch), new arrays.
      wrong: (state after some steps, seed) -> the number of wrong values; None if the correct answer is unknown, for
        the reason in `why_unchecked`.
      fence: waits until a state is computed.
      outcome: state -> further facts about its result (`KernelWorkload.outcome`).
      place: puts an integer where `loop` expects its count.
      guard: the transfer guard of the timed region.
    """

    step: Callable[..., Any]
    loop: Callable[..., Any] | None
    draw: Callable[[int], tuple[Any, Any]]
    wrong: Callable[[Any, int], int] | None
    values: int
    zeros: Callable[[int], float]
    fence: Callable[[Any], Any] = jax.block_until_ready
    outcome: Callable[[Any], dict[str, float]] = lambda state: {}
    place: Callable[[int], jax.Array] | None = None
    guard: str = "disallow"
    mesh: jax.sharding.Mesh | None = None
    why_unchecked: str = ""
    facts: Facts = Facts()

    def context(self) -> contextlib.AbstractContextManager[Any]:
        """The mesh to run under."""
        return contextlib.nullcontext() if self.mesh is None else jax.set_mesh(self.mesh)


def compile_chain(
    chain: Chain,
    device: jax.Device,
    *,
    loop: bool = True,
    as_called: bool = False,
    why_unchecked: str = "",
    clock: Callable[[], float] = time.perf_counter,
) -> Runnable:
    """Compiles the step and the loop over it ahead of time. `device`: holds the loop's count.

    as_called: time the jitted function, as users call it, instead of the compiled executable. A call of the executable
    takes half a microsecond longer. This is for programs that measure only the cost of a call.
    """
    where = SingleDeviceSharding(device) if chain.mesh is None else NamedSharding(chain.mesh, PartitionSpec())

    def place(number: int) -> jax.Array:
        return multihost.put(np.int32(number), where)

    with contextlib.nullcontext() if chain.mesh is None else jax.set_mesh(chain.mesh):
        state, batch = jax.tree.map(_aval, chain.draw(0))
        start = clock()
        jitted = _jit(chain.step)
        traced = jitted.trace(state, batch)
        step = traced.lower().compile()
        compile_s = clock() - start
        looped = _jit(chain_lib.loop(chain.step)).lower(state, batch, _aval(place(1))).compile() if loop else None
    cost, memory, text = step.cost_analysis() or {}, step.memory_analysis(), step.as_text()
    facts = Facts(
        compile_s=compile_s,
        # XLA's own count takes the body of a loop only once, and omits library calls on a CPU. Ours has products only.
        # So the larger of the two is nearer to the work done.
        flops=max((f for f in (_known(cost.get("flops")), dot_flops.count(text)) if f is not None), default=None),
        bytes=_known(cost.get("bytes accessed")),
        temp_bytes=None if memory is None else int(memory.temp_size_in_bytes),
        collectives=census.kinds(text) if chain.mesh is not None else (),
        calls_library=" custom-call(" in text,
        host_calls=host_calls.find(text, traced.jaxpr, platform=device.platform),
    )
    return Runnable(
        step=jitted if as_called else step, loop=looped, draw=chain.draw, wrong=chain.wrong, values=chain.values,
        zeros=chain.zeros, place=place, mesh=chain.mesh, why_unchecked=why_unchecked, facts=facts,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """A step compiled for devices that are not here. record: fields of a CompiledRecord."""

    kinds: tuple[str, ...]
    host_calls: tuple[str, ...]
    record: dict[str, Any]


def compile_for(chain: Chain) -> Compiled:
    """Compiles the step of a chain for devices that are not here."""
    assert chain.avals is not None
    with contextlib.nullcontext() if chain.mesh is None else jax.set_mesh(chain.mesh):
        start = time.perf_counter()
        step = _jit(chain.step).lower(*chain.avals()).compile()
        compile_s = time.perf_counter() - start
    memory, text = step.memory_analysis(), step.as_text()
    buffers = memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
    record = {
        "compile_s": compile_s,
        "collectives": census.read(text, None if chain.mesh is None else chain.mesh.shape),
        "peak_bytes": buffers - memory.alias_size_in_bytes,
        "compiler_peak_bytes": getattr(memory, "peak_memory_in_bytes", None) or None,
        "temp_bytes": int(memory.temp_size_in_bytes),
        "product_flops": dot_flops.count(text),
    }
    return Compiled(kinds=census.kinds(text), host_calls=host_calls.find(text), record=record)


def _jit(function: Callable[..., Any]) -> Any:
    # keep_unused: the function does not read the previous result, but that argument's memory takes the new result.
    return jax.jit(function, donate_argnums=0, keep_unused=True)


def _aval(array: jax.Array) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=array.sharding)


def _known(value: Any) -> float | None:
    return float(value) if value is not None and math.isfinite(value) and value > 0 else None


def compile_kernel(workload: KernelWorkload, device: jax.Device) -> Runnable:
    """A kernel on one device: as a chain, or as plain calls if it has a `prepare`."""
    if workload.prepare is None:
        chain = kernel.chain(workload, device)
        return compile_chain(chain, device, as_called=workload.idempotent, why_unchecked=workload.why_unchecked)
    return calls(workload, device)


def calls(workload: KernelWorkload, device: jax.Device) -> Runnable:
    """A kernel that is called directly, without a chain. state = its latest result; batch = the call itself."""
    prepare = workload.prepare
    assert prepare is not None

    def draw(seed: int) -> tuple[Any, Any]:
        arrays: tuple[Any, ...] = kernel.draw(workload.arguments, seed)
        if not workload.host:
            arrays = tuple(kernel.put(array, device) for array in arrays)
        return None, prepare(*arrays)

    def step(state: Any, call: Callable[[], Any]) -> tuple[Any, None]:
        result = call()
        if waits:  # at most one call is in flight, so the fence at the end of a block waits for all
            jax.block_until_ready(state)
        return result, None

    waits = not (workload.host or workload.waits)
    result = draw(0)[1]()
    return Runnable(
        step=step,
        loop=None,
        draw=draw,
        wrong=None if kernel.unchecked(workload) else lambda state, seed: kernel.count_wrong(workload, state, seed),
        values=sum(int(np.size(leaf)) for leaf in jax.tree.leaves(result)),
        zeros=lambda seed: kernel.share_of_zeros(kernel.draw(workload.arguments, seed)),
        outcome=workload.outcome or (lambda state: {}),
        # A host result is ready when the call returns; a fence that walks a list of 10^4 numbers would take longer.
        fence=(lambda state: state) if workload.host else jax.block_until_ready,
        guard="allow",
        why_unchecked=workload.why_unchecked,
    )


def copies(workload: TransferWorkload, source: str, target: str, devices: list[jax.Device]) -> Runnable:
    """A transfer: each call makes one copy and waits for it. state = the transfer itself, with its latest copy."""

    def draw(seed: int) -> tuple[Any, Any]:
        made = transfer.build(workload, source, target, devices, seed=seed)
        return made, made

    def step(state: Any, made: transfer.Transfer) -> tuple[Any, None]:
        made.call()
        return made, None

    once = transfer.build(workload, source, target, devices)
    values, zeros = once.values, once.zeros
    del once  # frees its arrays: a run has many transfers
    return Runnable(
        step=step,
        loop=None,
        draw=draw,
        wrong=lambda state, seed: state.wrong(),
        values=values,
        zeros=lambda seed: zeros,
        fence=lambda state: state,  # each call has already waited for its copy
        guard="allow",
    )


def launch_s(device: jax.Device, timer: Timer) -> float:
    """Seconds per call of an empty program, over many calls: the lower limit for any call on this machine."""
    empty = Chain(
        step=lambda state, batch: (chain_lib.feed_back(state, state, batch), None),
        draw=lambda seed: (kernel.put(np.ones(1, np.float32), device), kernel.put(np.zeros((), np.float32), device)),
        wrong=None,
        values=1,
        zeros=lambda seed: 0.0,
    )
    ready = compile_chain(empty, device, loop=False)
    state, batch = ready.draw(0)
    steps, state = timer.steps_per_block(ready.step, state, batch, 0.005)
    measured = timer.round(ready.step, state, batch, steps)
    return sum(measured.block_s) / len(measured.block_s) / steps
