# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Kernels as chains and as calls: right answers, results that cannot be skipped, and wrong ones counted."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbench.measure import kernel, runnable
from jaxbench.measure.clock import Timer
from jaxbench.parallel.chain import feed_back
from jaxbench.workloads.cases import Array, KernelWorkload


def tanh(elements: int = 1000, *, dtype: str = "float32", **changes) -> KernelWorkload:
    facts = dict(
        op="tanh", dtype=dtype, elements=elements, flops=None, bytes_moved=8.0 * elements,
        arguments=(Array((elements,), dtype),), function=jnp.tanh, answer=np.tanh, elementwise=True,
    )  # fmt: skip
    return KernelWorkload(**{**facts, **changes})


def after(ready: runnable.Runnable, steps: int, *, looped: bool = False):
    state, batch = ready.draw(7)
    if looped:
        return ready.loop(state, batch, ready.place(steps))
    for _ in range(steps):
        state, _ = ready.step(state, batch)
    return state


@pytest.mark.parametrize("looped", [False, True])
@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-6), ("bfloat16", 1e-2), ("float16", 1e-3)])
def test_a_chain_gives_the_right_result_however_often_it_is_run(dtype: str, tolerance: float, looped: bool) -> None:
    ready = runnable.compile_kernel(tanh(dtype=dtype, tolerance=tolerance), jax.devices()[0])
    state = after(ready, 5, looped=looped)
    assert ready.wrong(state, 7) == 0
    np.testing.assert_array_equal(state[0], kernel.draw((Array((1000,), dtype),), 7)[0])  # arguments do not change


def test_wrong_values_are_counted() -> None:
    ready = runnable.compile_kernel(tanh(function=lambda x: jnp.tanh(x).at[3:5].add(1.0)), jax.devices()[0])
    assert ready.wrong(after(ready, 1), 7) == 2
    ready = runnable.compile_kernel(tanh(function=lambda x: jnp.tanh(x) * jnp.nan), jax.devices()[0])
    assert ready.wrong(after(ready, 1), 7) == 1000


def test_the_products_in_a_loop_are_counted_as_often_as_they_run() -> None:
    ready = runnable.compile_kernel(
        tanh(
            64 * 64, arguments=(Array((64, 64)),), elementwise=False, answer=lambda x: x,
            function=lambda x: jax.lax.map(lambda row: jnp.tanh(row @ x), x),
        ),
        jax.devices()[0],
    )  # fmt: skip
    assert ready.facts.flops is not None and 1 <= ready.facts.flops / (2 * 64**3) < 1.2


def test_a_large_array_repeats_its_block_and_is_compared_part_by_part() -> None:
    size = kernel.BLOCK + 1000
    (array,) = kernel.draw((Array((size,)),), 3)
    np.testing.assert_array_equal(array[: kernel.BLOCK][:1000], array[kernel.BLOCK :])
    result = np.tanh(array.astype(np.float64)).astype(np.float32)
    result[-1] += 1
    assert kernel.count_wrong(tanh(size), result, 3) == 1


def test_integers_are_small_and_feed_back_nothing() -> None:
    workload = tanh(
        64, dtype="int8", function=lambda x: x + jnp.int8(1), answer=lambda x: x + 1, tolerance=0.0, elementwise=False
    )
    ready = runnable.compile_kernel(workload, jax.devices()[0])
    assert ready.wrong(after(ready, 9, looped=True), 7) == 0


def test_calls_run_on_the_host_and_one_by_one_on_a_device() -> None:
    def in_place(x: np.ndarray):
        out = np.empty_like(x)
        return lambda: np.tanh(x, out=out)

    host = runnable.compile_kernel(tanh(function=None, prepare=in_place, host=True, impl="numpy"), jax.devices()[0])
    assert host.loop is None and host.wrong(after(host, 2), 7) == 0 and host.values == 1000
    eager = tanh(function=None, prepare=lambda x: lambda: jnp.tanh(x), impl="op_by_op")
    ready = runnable.compile_kernel(eager, jax.devices()[0])
    assert ready.loop is None and ready.wrong(after(ready, 2), 7) == 0


def test_launch_is_timed_with_the_clock_given() -> None:
    """A clock that advances by 1 ms per reading: a block of any length seems to take 1 ms."""
    ticks = iter(np.arange(0.0, 1000.0, 0.001))
    timer = Timer(clock=lambda: float(next(ticks)), max_steps=16)
    assert runnable.launch_s(jax.devices()[0], timer) == pytest.approx(0.001 / 16)


def test_feed_back_leaves_the_argument_as_it_was_and_depends_on_the_result() -> None:
    x, out = jnp.arange(6.0).reshape(2, 3), jnp.full((2, 3), 5.0)
    np.testing.assert_array_equal(feed_back(x, out, jnp.zeros(())), x)
    assert feed_back(x, out, jnp.ones(()))[0, 0] == 5.0


def test_zeros_are_reported() -> None:
    assert kernel.share_of_zeros((np.zeros(4, np.float32), np.ones(4, np.float32))) == 1.0
    assert kernel.share_of_zeros(kernel.draw((Array((1000,)),), 0)) == 0.0
