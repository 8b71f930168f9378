# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Each kind of feed: its batches, its cost, its errors."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import jax
import numpy as np
import pytest
from workload_cases import KEY, linear_workload

from jaxbench import parallel
from jaxbench.errors import UserError
from jaxbench.input import feed
from jaxbench.input.feed import Feed


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


class Put:
    """Counts the calls and transfers nothing."""

    def __init__(self):
        self.calls = 0

    def __call__(self, batch):
        self.calls += 1
        return batch


def opened(kind, put, size=6):
    return feed.open(kind, linear_workload(), batch=size, put=put, seed=0)


def test_device_puts_once_and_hands_out_the_same_batch() -> None:
    put = Put()
    with contextlib.closing(opened("device", put)) as fed:
        first = fed.next()
        assert all(fed.next() is first for _ in range(5))
    assert put.calls == 1


def test_host_puts_a_batch_per_step_and_no_two_in_a_row_are_the_same() -> None:
    put = Put()
    with contextlib.closing(opened("host", put)) as fed:
        batches = [fed.next() for _ in range(feed.RING + 1)]
    assert put.calls == len(batches)
    assert all(isinstance(batch["x"], np.ndarray) and batch["x"].shape == (6, 3) for batch in batches)
    assert len({batch["x"].tobytes() for batch in batches}) == feed.RING and batches[-1] is batches[0]


@pytest.mark.parametrize("kind", ["device", "host", "pipeline:1"])
@pytest.mark.parametrize("strategy", parallel.of_any_model())
def test_batches_lie_where_the_program_wants_them(kind: str, strategy: str) -> None:
    workload = linear_workload()
    program = parallel.build(strategy, workload, jax.devices()[:2])
    wanted = program.put(workload.synthetic(KEY, 4))
    with jax.set_mesh(program.mesh):
        with contextlib.closing(feed.open(kind, workload, batch=4, put=program.put, seed=0)) as fed:
            made = fed.next()
    for name, array in wanted.items():
        assert made[name].sharding == array.sharding and made[name].shape == array.shape
        assert made[name].dtype == array.dtype


@pytest.mark.parametrize("kind", ["disk", "pipeline", "pipeline:", "pipeline:-1", "pipeline:x", "device:2"])
def test_another_kind_is_refused(kind: str) -> None:
    with pytest.raises(UserError, match="use device, host or pipeline:2"):
        opened(kind, Put())


@pytest.mark.parametrize("ahead", [1, 3])
def test_exactly_the_given_number_of_batches_is_ahead(ahead: int) -> None:
    made = []
    fed = Feed(lambda number: made.append(number) or {}, ahead=ahead)
    for taken in range(4):
        fed._thread.submit(int).result()  # its one thread has finished all earlier requests
        assert made == list(range(taken + ahead))
        fed.next()
    fed.close()


@pytest.mark.parametrize("ahead", [0, 2])
def test_only_without_batches_ahead_does_the_steps_own_thread_make_them(ahead: int) -> None:
    makers = []
    fed = Feed(lambda number: makers.append(threading.get_ident()) or {}, ahead=ahead)
    for _ in range(6):
        fed.next()
    fed.close()
    mine = {maker == threading.get_ident() for maker in makers}
    assert mine == {ahead == 0} and len(makers) >= 6


def test_waiting_is_timed_with_the_clock_given() -> None:
    ticks = iter(range(100))
    fed = Feed(lambda number: {}, clock=lambda: float(next(ticks)))
    fed.next()
    fed.next()
    assert fed.waited_s == 2.0


@pytest.mark.parametrize("ahead", [0, 2])
def test_an_error_reaches_the_caller(ahead: int) -> None:
    def broken(number):
        if number == 2:
            raise OSError("record 2 is damaged")
        return {"x": number}

    fed = Feed(broken, ahead=ahead)
    assert [fed.next()["x"], fed.next()["x"]] == [0, 1]
    with pytest.raises(OSError, match="record 2 is damaged"):
        fed.next()
    fed.close()


def test_closing_gives_back_once_and_ends_it() -> None:
    released = []
    fed = Feed(lambda number: {}, ahead=2, close=lambda: released.append(1))
    fed.close()
    fed.close()
    assert released == [1]
    with pytest.raises(RuntimeError, match="closed"):
        fed.next()
