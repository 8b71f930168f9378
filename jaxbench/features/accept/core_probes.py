# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The speed of every core of a host, one after the other and all together: a hidden tenant halves the speed of a core
without any steal time."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from jaxbench.features.accept.device_probes import Runner
from jaxbench.machine import core_speed

SIDE = core_speed.SIDE  # BLAS multiplies it on one thread
TOGETHER_S = 0.03
READINGS = 5  # of each core alone: their mean counts, because a core switches between two speeds


def alone(cpus: Sequence[int]) -> Runner | None:
    """Processor seconds of a fixed product on each core while the others are idle; None where threads cannot be
    pinned."""
    probe = core_speed.probe_of(cpus)
    if probe is None:
        return None

    def run() -> list[float]:
        return list(np.mean([probe().product_s for _ in range(READINGS)], axis=0))

    return Runner(name="cores_alone", units=_core_names(cpus), amount=1.0, run=run, check=list)


def together(cpus: Sequence[int]) -> Runner | None:
    """The same while all cores work."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    begin, threads = threading.Barrier(len(cpus)), ThreadPoolExecutor(len(cpus))
    matrix = np.full((SIDE, SIDE), 1 / SIDE, np.float32)

    def work(cpu: int) -> float:
        os.sched_setaffinity(0, {cpu})  # of this thread alone
        result, done = np.empty_like(matrix), 0
        begin.wait()
        end, own = time.perf_counter() + TOGETHER_S, time.thread_time()
        while time.perf_counter() < end:
            for _ in range(core_speed.PRODUCTS):
                np.dot(matrix, matrix, out=result)
            done += 1
        return (time.thread_time() - own) / done

    def run() -> list[float]:
        return list(threads.map(work, cpus))

    return Runner(name="cores_together", units=_core_names(cpus), amount=1.0, run=run, check=list)


def _core_names(cpus: Sequence[int]) -> tuple[str, ...]:
    return tuple(f"core {cpu}" for cpu in cpus)
