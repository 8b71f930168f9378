# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What a worker has freed and keeps can be given back to the system."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from jaxbench.runner.plan import KEEP_MEMORY

WORKER = """
import numpy as np
from jaxbench.measure import memory

def resident():
    return memory._status("VmRSS") / 2**20

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
