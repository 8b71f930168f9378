# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Prepares a kernel for timing: draws its arguments, and compares its result with the correct answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import SingleDeviceSharding

from jaxbench.parallel.chain import Chain, feed_back
from jaxbench.workloads.cases import Array, KernelWorkload
from jaxbench.workloads.fusion_fence import fenced

BLOCK = 2**20  # random values; a larger array repeats them, so that drawing 10^8 costs no more than a copy


def chain(workload: KernelWorkload, device: jax.Device) -> Chain:
    """The kernel as dependent steps on one device. state = (first argument, result), batch = (the others, zero).

    An `idempotent` kernel takes its own result: state = its argument and result, batch = ().
    """
    assert workload.function is not None
    if workload.idempotent:
        return _feeding_itself(workload, device)
    function = fenced(workload.function)

    def step(state: Any, batch: Any) -> tuple[Any, None]:
        (first, _), (others, zero) = state, batch
        result = function(first, *others)
        return (feed_back(first, result, zero), result), None

    def place(seed: int) -> tuple[Any, Any]:
        arguments = draw(workload.arguments, seed)
        shapes = jax.eval_shape(function, *arguments)
        with jax.default_device(device):
            result = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
        first, *others = (put(argument, device) for argument in arguments)
        return (first, result), (tuple(others), put(np.zeros((), np.float32), device))

    on = SingleDeviceSharding(device)
    given = [jax.ShapeDtypeStruct(a.shape, jnp.dtype(a.dtype), sharding=on) for a in workload.arguments]
    shapes = jax.eval_shape(function, *given)

    def avals() -> tuple[Any, Any]:
        result = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=on), shapes)
        return (given[0], result), (tuple(given[1:]), jax.ShapeDtypeStruct((), np.float32, sharding=on))

    return Chain(
        avals=avals,
        step=step,
        draw=place,
        wrong=None if unchecked(workload) else lambda state, seed: count_wrong(workload, state[1], seed),
        values=sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(shapes)),
        zeros=lambda seed: share_of_zeros(draw(workload.arguments, seed)),
    )


def _feeding_itself(workload: KernelWorkload, device: jax.Device) -> Chain:
    function, (argument, *_) = workload.function, workload.arguments
    assert function is not None
    aval = jax.ShapeDtypeStruct(argument.shape, jnp.dtype(argument.dtype), sharding=SingleDeviceSharding(device))
    return Chain(
        avals=lambda: (aval, ()),
        step=lambda state, batch: (function(state), None),
        draw=lambda seed: (put(draw(workload.arguments, seed)[0], device), ()),
        wrong=None if unchecked(workload) else lambda state, seed: count_wrong(workload, state, seed),
        values=math.prod(workload.arguments[0].shape),
        zeros=lambda seed: share_of_zeros(draw(workload.arguments, seed)),
    )


def put(array: np.ndarray, device: jax.Device) -> jax.Array:
    """Puts an array on the device.

    A CPU device may share the memory of `array`. That is safe: XLA writes in place only to memory that it alone owns,
    and copies otherwise.
    """
    return jax.device_put(array, device, may_alias=False)


def unchecked(workload: KernelWorkload) -> bool:
    return workload.answer is None and workload.wrong is None


def draw(arguments: tuple[Array, ...], seed: int) -> tuple[np.ndarray, ...]:
    """Host arrays that depend only on the seed, not on the process or implementation."""
    return tuple(_draw(argument, np.random.default_rng([seed, place])) for place, argument in enumerate(arguments))


def _draw(argument: Array, random: np.random.Generator) -> np.ndarray:
    dtype = jnp.dtype(argument.dtype)
    if argument.draw is not None:
        return argument.draw(random, argument.shape).astype(dtype)
    size = math.prod(argument.shape)
    if jnp.issubdtype(dtype, jnp.integer):
        values = random.integers(-4, 5, min(size, BLOCK)).astype(dtype)
    else:
        values = (argument.scale * random.standard_normal(min(size, BLOCK))).astype(dtype)
    return np.resize(values, argument.shape)


def share_of_zeros(arrays: tuple[np.ndarray, ...]) -> float:
    """The largest share of zeros among the arguments."""
    return max(float(np.mean(array.astype(np.float32, copy=False) == 0)) for array in arrays)


def count_wrong(workload: KernelWorkload, result: Any, seed: int) -> int:
    """The number of values of `result` (device or host arrays, or a list) outside the tolerance of the answer."""
    arguments = draw(workload.arguments, seed)
    result = jax.device_get(result)
    if workload.wrong is not None:
        return workload.wrong(result, tuple(map(_exact, arguments)))
    assert workload.answer is not None
    if isinstance(result, list):
        result = np.asarray(result, np.float64)
    parts = _parts(arguments, result) if workload.elementwise else iter([(arguments, result)])
    cached = _CachedAnswer(workload.answer)
    return sum(_wrong(part, cached(inputs), workload.tolerance) for inputs, part in parts)


class _CachedAnswer:
    """The answer, cached for the latest arguments, because the parts of a large array repeat."""

    def __init__(self, answer: Callable[..., Any]):
        self.answer = answer
        self.of: tuple[np.ndarray, ...] | None = None
        self.value: Any = None

    def __call__(self, inputs: tuple[np.ndarray, ...]) -> Any:
        same = self.of is not None and all(map(np.array_equal, self.of, inputs))
        if not same:
            self.of, self.value = inputs, self.answer(*map(_exact, inputs))
        return self.value


def _parts(
    arguments: tuple[np.ndarray, ...], result: np.ndarray
) -> Iterator[tuple[tuple[np.ndarray, ...], np.ndarray]]:
    flat = [argument.reshape(-1) for argument in arguments]
    values = np.asarray(result).reshape(-1)
    for start in range(0, values.size, BLOCK):
        yield tuple(a if a.size == 1 else a[start : start + BLOCK] for a in flat), values[start : start + BLOCK]


def _exact(array: np.ndarray) -> np.ndarray:
    return array.astype(np.int64 if jnp.issubdtype(array.dtype, jnp.integer) else np.float64)


def _wrong(result: Any, right: Any, tolerance: float) -> int:
    pairs = zip(jax.tree.leaves(result), jax.tree.leaves(right), strict=True)
    return sum(_differing(np.asarray(a).astype(np.float64), np.asarray(b), tolerance) for a, b in pairs)


def _differing(result: np.ndarray, right: np.ndarray, tolerance: float) -> int:
    if result.shape != right.shape:
        return max(result.size, right.size)
    largest = float(np.max(np.abs(right), initial=0))
    return int(np.sum(~(np.abs(result - right) <= tolerance * largest)))  # NaN is wrong
