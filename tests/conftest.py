# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Eight fake CPU devices in every test process, started before anything touches the backend."""

import os

from jaxbench.machine.start import start_fake_cpu

# Most of the tests' time is LLVM optimising programs that run once. The processes that tests start do not inherit this:
# `doorway.environment` says what theirs is.
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=0".strip()
start_fake_cpu(8, pin=False, concurrent_collectives=12)
