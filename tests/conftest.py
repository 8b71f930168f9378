# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Eight fake CPU devices in every test process, started before anything touches the backend."""

import gc
import os

from doorway import UNOPTIMISED

from jaxbench.machine.start import start_fake_cpu

gc.set_threshold(50_000)  # tracing makes many objects that stay: searching them was a tenth of the tests' time
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {UNOPTIMISED}".strip()
start_fake_cpu(8, pin=False, concurrent_collectives=12)
