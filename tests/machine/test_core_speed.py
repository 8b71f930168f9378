# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The speed of each core is read by a thread that visits them and then is where it was."""

import os
import threading

import numpy as np
import pytest

from jaxbench.core.clock import Timer
from jaxbench.machine.core_speed import CoreSpeeds, probe_of

CPUS = sorted(os.sched_getaffinity(0))


def test_each_core_is_read_and_the_thread_returns():
    probe = probe_of(CPUS)
    assert probe is not None
    read = probe()
    assert read.cpus == tuple(CPUS)
    assert len(read.product_s) == len(read.copy_s) == len(CPUS)
    assert all(seconds > 0 for seconds in (*read.product_s, *read.copy_s))
    assert sorted(os.sched_getaffinity(0)) == CPUS


def test_only_the_calling_thread_moves():
    elsewhere: list[set[int]] = []
    ready, done = threading.Event(), threading.Event()

    def watch() -> None:
        ready.set()
        done.wait()
        elsewhere.append(os.sched_getaffinity(0))

    thread = threading.Thread(target=watch)
    thread.start()
    ready.wait()
    probe_of(CPUS[:1])()
    done.set()
    thread.join()
    assert elsewhere == [set(CPUS)]


def test_no_cores_no_probe():
    assert probe_of(()) is None


@pytest.mark.parametrize("double", [False, True])
def test_a_block_has_the_faster_of_the_readings_around_it(double):
    # With the second clock a round has two blocks, and so three readings.
    readings = iter([(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)])

    def read() -> CoreSpeeds:
        product = next(readings)
        return CoreSpeeds((4, 5), product, product)

    timer = Timer(speeds=read, fence=lambda value: value)
    made, _ = timer.round_and_state(lambda state, batch: (state, {}), np.zeros(1), None, 1, double=double)
    assert made.cores == (4, 5)
    assert made.core_product_s == (((1.0, 2.0), (2.0, 1.0)) if double else ((1.0, 2.0),))
    assert made.core_copy_s == made.core_product_s
