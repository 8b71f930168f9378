# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Kernels as chains and as calls: right answers, results that cannot be skipped, and wrong ones counted."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbench.cases import runnable
from jaxbench.core.clock import Timer
from jaxbench.parallel.collectives import feed_back
from jaxbench.workloads import TransferWorkload
from jaxbench.workloads.cases import TRANSFERS, Array, KernelWorkload


def tanh(elements: int = 1000, *, dtype: str = "float32", **changes) -> KernelWorkload:
    facts = dict(
        op="tanh", dtype=dtype, elements=elements, flops=None, bytes_moved=8.0 * elements,
        arguments=(Array((elements,), dtype),), function=jnp.tanh, answer=np.tanh, elementwise=True,
    )  # fmt: skip
    return KernelWorkload(**{**facts, **changes})


def after(ready: runnable.Runnable, steps: int, *, looped: bool = False):
    state, batch = ready.draw(7)
    if looped:
        return ready.loop(state, batch, ready.to_device(steps))
    for _ in range(steps):
        state, _ = ready.step(state, batch)
    return state


@pytest.mark.parametrize("looped", [False, True])
@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-6), ("bfloat16", 1e-2), ("float16", 1e-3)])
def test_a_chain_gives_the_right_result_however_often_it_is_run(dtype: str, tolerance: float, looped: bool) -> None:
    ready = runnable.compile_kernel(tanh(dtype=dtype, tolerance=tolerance), jax.devices()[0])
    state = after(ready, 5, looped=looped)
    assert ready.wrong(state, 7) == 0
    (drawn,) = runnable.draw_arguments((Array((1000,), dtype),), 7)
    np.testing.assert_array_equal(state[0], drawn)  # arguments do not change


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
    size = runnable.VALUES + 1000
    (array,) = runnable.draw_arguments((Array((size,)),), 3)
    np.testing.assert_array_equal(array[: runnable.VALUES][:1000], array[runnable.VALUES :])
    result = np.tanh(array.astype(np.float64)).astype(np.float32)
    result[-1] += 1
    assert runnable.count_wrong(tanh(size), result, 3) == 1


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
    assert runnable.share_of_zeros((np.zeros(4, np.float32), np.ones(4, np.float32))) == 1.0
    assert runnable.share_of_zeros(runnable.draw_arguments((Array((1000,)),), 0)) == 0.0


PLACES = dict(host_to_device=("host", "cpu:3"), device_to_host=("cpu:3", "host"), device_to_device=("cpu:3", "cpu:5"))


def make(op: str, *, payload_bytes: int = 1024, dtype: str = "float32", seed: int = 0) -> runnable.Transfer:
    workload = TransferWorkload(op=op, payload_bytes=payload_bytes, dtype=dtype)
    return runnable.build_transfer(workload, *PLACES[op], jax.devices(), seed=seed)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize("op", TRANSFERS)
def test_every_value_arrives(op: str, dtype: str) -> None:
    made = make(op, dtype=dtype, payload_bytes=2**20)
    assert made.wrong() == made.values == 2**20 // np.dtype(jax.numpy.dtype(dtype)).itemsize  # no copy yet
    for _ in range(3):
        copy = made.call()
        assert made.wrong() == 0
    assert copy.dtype == dtype and 0 < made.zeros < 0.2


@pytest.mark.parametrize("op", ["host_to_device", "device_to_device"])
def test_the_copy_is_on_the_device_that_was_named_or_in_host_memory(op: str) -> None:
    assert make(op).call().devices() == {jax.devices()[int(PLACES[op][1][4:])]}
    copy = make("device_to_host").call()
    assert isinstance(copy, np.ndarray) and copy.flags.owndata


@pytest.mark.parametrize("op", TRANSFERS)
def test_a_copy_that_was_not_made_is_caught(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lie: the "copy" is the source's own memory, so every value is right."""
    starts: list[Any] = []

    def view(array: Any) -> Any:
        starts.append(array)
        return lambda: np.asarray(array)

    monkeypatch.setattr(runnable, "_to_host", view)
    monkeypatch.setattr(runnable, "_copier_to", lambda place, devices, array: view(array))
    made = make(op)
    copy = made.call()
    np.testing.assert_array_equal(copy, np.asarray(starts[0]))
    assert made.wrong() == made.values


@pytest.mark.parametrize("op", TRANSFERS)
def test_one_wrong_value_is_counted(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def almost(array: Any) -> Any:
        changed = np.array(array)
        changed[7] += 1
        return lambda: changed

    monkeypatch.setattr(runnable, "_to_host", almost)
    monkeypatch.setattr(runnable, "_copier_to", lambda place, devices, array: almost(array))
    made = make(op)
    made.call()
    assert made.wrong() == 1


def test_half_a_copy_is_wrong_altogether(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runnable, "_to_host", lambda array: lambda: np.array(array)[:5])
    made = make("device_to_host")
    made.call()
    assert made.wrong() == made.values


def test_jax_shares_the_memory_of_an_array_that_lies_well_and_a_transfer_does_not() -> None:
    """The reason for the source's alignment: `may_alias=False` alone makes no copy. Delete this test when it does."""
    memory = np.zeros(4096, np.uint8)
    well = memory[-memory.ctypes.data % runnable.XLA_ALIGNMENT :][:1024]
    assert jax.device_put(well, jax.devices()[0], may_alias=False).unsafe_buffer_pointer() == well.ctypes.data
    for dtype in ("float32", "bfloat16", "int8"):
        for length in (1, 1000, 2**18):
            drawn = runnable._draw_source(length, jax.numpy.dtype(dtype), 0)
            assert drawn.ctypes.data % runnable.XLA_ALIGNMENT == drawn.dtype.itemsize
            assert drawn.flags.aligned and drawn.flags.c_contiguous
            copy = jax.device_put(drawn, jax.devices()[0], may_alias=False)
            assert copy.unsafe_buffer_pointer() != drawn.ctypes.data


def test_a_new_handle_is_copied_to_the_host_anew() -> None:
    """With int4: a CPU device copies these values to the host and caches them, like an accelerator for every type."""
    array = jax.device_put(np.arange(7).astype(jax.numpy.int4), jax.devices()[1])
    host = [np.asarray(array)]
    assert np.asarray(array).ctypes.data == host[0].ctypes.data  # the lie: a second request copies nothing
    for _ in range(3):
        array = runnable.handle(array)
        host.append(np.asarray(array))
    assert len({copy.ctypes.data for copy in host}) == 4
    assert all(np.array_equal(copy, host[0]) for copy in host)


def test_on_an_accelerator_each_copy_is_asked_of_the_next_handle() -> None:
    asked: list[Any] = []

    class Remote:
        """The attributes of an accelerator's array that a copy to the host reads."""

        def devices(self) -> set[Any]:
            return {type("Device", (), {"platform": "gpu"})()}

        def addressable_data(self, index: int) -> Remote:
            return Remote()

        def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
            asked.append(self)
            return np.zeros(1)

    copy = runnable._to_host(Remote())  # type: ignore[arg-type]
    for _ in range(3):
        copy()
    assert len({id(each) for each in asked}) == 3


def test_the_copy_before_is_given_back() -> None:
    made = make("device_to_device", payload_bytes=2**16)
    before = len(jax.live_arrays())
    for _ in range(5):
        made.call()
    assert len(jax.live_arrays()) <= before + 1


def test_another_seed_draws_other_values() -> None:
    first, second = make("host_to_device", seed=1).call(), make("host_to_device", seed=2).call()
    assert np.mean(np.asarray(first) != np.asarray(second)) > 0.5


@pytest.mark.parametrize(("asked", "dtype", "used"), [(1024, "float32", 1024), (1, "float32", 4), (1001, "int8", 1001)])
def test_whole_elements_are_copied(asked: int, dtype: str, used: int) -> None:
    workload = TransferWorkload(op="host_to_device", payload_bytes=asked, dtype=dtype)
    assert runnable.payload(workload) == used
    assert make("host_to_device", payload_bytes=asked, dtype=dtype).call().nbytes == used


def test_pairs() -> None:
    names = runnable.ends("gpu", 3)
    assert names == ["gpu:0", "gpu:1", "gpu:2"]
    assert runnable.pairs("host_to_device", names) == [("host", name) for name in names]
    assert runnable.pairs("device_to_host", names) == [(name, "host") for name in names]
    both = runnable.pairs("device_to_device", names)
    assert len(both) == 6 and ("gpu:2", "gpu:0") in both and ("gpu:0", "gpu:2") in both
    assert runnable.pairs("device_to_device", names[:1]) == []
