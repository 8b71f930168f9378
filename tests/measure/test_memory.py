# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Memory that a worker has freed but keeps can be returned to the system."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import jax
import pytest

from jaxbench.measure import memory
from jaxbench.processes.messages import KEEP_MEMORY

WORKER = """
import numpy as np
from jaxbench.measure import memory

def resident():
    return memory._process_bytes("VmRSS") / 2**20

arrays = [np.ones(2**17) for _ in range(100)]  # 1 MiB each
last = arrays[-1]  # lies at the heap's end, as an array that is still in use does
full = resident()
del arrays
kept = resident()
memory.give_back()
spared = resident()
memory.SPARED = 0
memory.give_back()
print(full, kept, spared, resident())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc keeps memory")
def test_a_worker_keeps_what_it_freed_until_it_is_large():
    run = subprocess.run(
        [sys.executable, "-c", WORKER], env={**os.environ, **KEEP_MEMORY}, capture_output=True, text=True, check=True
    )
    full, kept, spared, after = map(float, run.stdout.split())
    assert kept == pytest.approx(full, abs=10) and spared == pytest.approx(full, abs=10)
    assert after < full - 90


class Accelerator:
    """A device that counts allocations like a real one: its peak is that of the whole process."""

    platform = "gpu"

    def __init__(self, earlier_peak, says=True):
        self.held, self.peak, self.says = 100, earlier_peak, says

    def take(self, held, peak):
        self.held, self.peak = held, max(self.peak, peak)

    def memory_stats(self):
        return {"bytes_in_use": self.held, "peak_bytes_in_use": self.peak} if self.says else None


@pytest.mark.parametrize(("earlier_peak", "found"), [(100, 900), (700, 900), (1000, None), (5000, None)])
def test_an_accelerators_peak_is_the_steps_only_where_the_step_raised_it(earlier_peak, found):
    device = Accelerator(earlier_peak)
    watch = memory.PeakMemory(device)
    device.take(400, 600)  # the state, the batch, and the memory for making them
    watch.step_begins(())
    device.take(400, 1000)
    assert watch.peak_bytes() == found


def test_a_step_that_was_never_announced_or_a_silent_device_cannot_tell():
    for device in (Accelerator(100), Accelerator(100, says=False)):
        watch = memory.PeakMemory(device)
        if not device.says:
            watch.step_begins(())
        device.take(400, 1000)
        assert watch.peak_bytes() is None


def test_a_cpu_is_watched_from_the_beginning():
    watch = memory.PeakMemory(jax.devices()[0])
    watch.step_begins(())
    assert watch.peak_bytes() is None or watch.peak_bytes() >= 0
