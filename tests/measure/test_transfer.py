# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Each call really copies every value into other memory."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from jaxbench.measure import transfer
from jaxbench.workloads import TransferWorkload
from jaxbench.workloads.cases import TRANSFERS

PLACES = {
    "host_to_device": ("host", "cpu:3"),
    "device_to_host": ("cpu:3", "host"),
    "device_to_device": ("cpu:3", "cpu:5"),
}


def make(op: str, *, payload_bytes: int = 1024, dtype: str = "float32", seed: int = 0) -> transfer.Transfer:
    workload = TransferWorkload(op=op, payload_bytes=payload_bytes, dtype=dtype)
    return transfer.build(workload, *PLACES[op], jax.devices(), seed=seed)


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
def test_the_copy_is_on_the_device_that_was_named(op: str) -> None:
    assert make(op).call().devices() == {jax.devices()[int(PLACES[op][1][4:])]}


def test_the_copy_to_the_host_is_host_memory() -> None:
    copy = make("device_to_host").call()
    assert isinstance(copy, np.ndarray) and copy.flags.owndata


@pytest.mark.parametrize("op", TRANSFERS)
def test_a_copy_that_was_not_made_is_caught(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lie: the "copy" is the source's own memory, so every value is right."""
    starts: list[Any] = []

    def view(array: Any) -> Any:
        starts.append(array)
        return lambda: np.asarray(array)

    monkeypatch.setattr(transfer, "_to_host", view)
    monkeypatch.setattr(transfer, "_onto", lambda device, array: view(array))
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

    monkeypatch.setattr(transfer, "_to_host", almost)
    monkeypatch.setattr(transfer, "_onto", lambda device, array: almost(array))
    made = make(op)
    made.call()
    assert made.wrong() == 1


def test_half_a_copy_is_wrong_altogether(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "_to_host", lambda array: lambda: np.array(array)[:5])
    made = make("device_to_host")
    made.call()
    assert made.wrong() == made.values


def test_jax_shares_the_memory_of_an_array_that_lies_well_and_a_transfer_does_not() -> None:
    """The reason for the source's alignment: `may_alias=False` alone makes no copy. Delete this test when it does."""
    memory = np.zeros(4096, np.uint8)
    well = memory[-memory.ctypes.data % transfer.XLA_ALIGNMENT :][:1024]
    assert jax.device_put(well, jax.devices()[0], may_alias=False).unsafe_buffer_pointer() == well.ctypes.data
    for dtype in ("float32", "bfloat16", "int8"):
        for length in (1, 1000, 2**18):
            drawn = transfer._draw(length, jax.numpy.dtype(dtype), 0)
            assert drawn.ctypes.data % transfer.XLA_ALIGNMENT == drawn.dtype.itemsize
            assert drawn.flags.aligned and drawn.flags.c_contiguous
            copy = jax.device_put(drawn, jax.devices()[0], may_alias=False)
            assert copy.unsafe_buffer_pointer() != drawn.ctypes.data


def test_a_new_handle_is_copied_to_the_host_anew() -> None:
    """With int4: a CPU device copies these values to the host and caches them, like an accelerator for every type."""
    array = jax.device_put(np.arange(7).astype(jax.numpy.int4), jax.devices()[1])
    host = [np.asarray(array)]
    assert np.asarray(array).ctypes.data == host[0].ctypes.data  # the lie: a second request copies nothing
    for _ in range(3):
        array = transfer.handle(array)
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

    copy = transfer._to_host(Remote())  # type: ignore[arg-type]
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
    assert transfer.payload(workload) == used
    assert make("host_to_device", payload_bytes=asked, dtype=dtype).call().nbytes == used


def test_pairs() -> None:
    names = transfer.places("gpu", 3)
    assert names == ["gpu:0", "gpu:1", "gpu:2"]
    assert transfer.pairs("host_to_device", names) == [("host", name) for name in names]
    assert transfer.pairs("device_to_host", names) == [(name, "host") for name in names]
    both = transfer.pairs("device_to_device", names)
    assert len(both) == 6 and ("gpu:2", "gpu:0") in both and ("gpu:0", "gpu:2") in both
    assert transfer.pairs("device_to_device", names[:1]) == []
