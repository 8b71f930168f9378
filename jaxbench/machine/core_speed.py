# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How fast each core is right now: the processor time of a fixed product and of a fixed copy, one core after another.

Wall time shows that a thread was descheduled. Processor time does not grow by that, so it shows what no counter of the
kernel shows: another tenant on the other hardware thread of a core, a lower clock, or a shared cache that others use.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

SIDE = 64  # rows of a square matrix: it stays in a core's first cache, and BLAS multiplies it on one thread
PRODUCTS = 30  # a fifth of a millisecond on a core of 2023
COPY_BYTES = 2**23  # more than a second-level cache, so that it shows caches and memory that cores share


@dataclass(frozen=True)
class CoreSpeeds:
    """One reading. product_s, copy_s: processor seconds by core, in the order of `cpus`."""

    cpus: tuple[int, ...]
    product_s: tuple[float, ...]
    copy_s: tuple[float, ...]


class CoreProbe:
    """Reads the speed of some CPUs from the calling thread, which visits them one after the other.

    A reading takes a millisecond or two for each core. The caller makes sure that the cores are idle.
    """

    def __init__(self, cpus: Sequence[int]):
        self._cpus = tuple(cpus)
        self._matrix = np.full((SIDE, SIDE), 1 / SIDE, np.float32)
        self._product = np.empty_like(self._matrix)
        self._source = np.ones(COPY_BYTES // 4, np.float32)
        self._copy = np.zeros_like(self._source)
        self()  # loads BLAS and maps the pages

    def __call__(self) -> CoreSpeeds:
        allowed = os.sched_getaffinity(0)
        try:
            times = [self._on(cpu) for cpu in self._cpus]
        finally:
            os.sched_setaffinity(0, allowed)
        return CoreSpeeds(self._cpus, tuple(p for p, _ in times), tuple(c for _, c in times))

    def _on(self, cpu: int) -> tuple[float, float]:
        """(seconds of a product, seconds of a copy) on one CPU."""
        os.sched_setaffinity(0, {cpu})  # of this thread alone
        # The fastest of three: the first one may refill the caches that the block has used, and interrupts happen.
        product_s = min(self._products_s() for _ in range(3))
        start = time.thread_time()
        np.copyto(self._copy, self._source)
        return product_s, time.thread_time() - start

    def _products_s(self) -> float:
        start = time.thread_time()
        for _ in range(PRODUCTS):
            np.dot(self._matrix, self._matrix, out=self._product)
        return time.thread_time() - start


def probe_of(cpus: Sequence[int]) -> CoreProbe | None:
    """The probe of these CPUs; None where threads cannot be pinned."""
    return CoreProbe(cpus) if hasattr(os, "sched_setaffinity") and cpus else None
