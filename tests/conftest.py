# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Eight fake CPU devices in every test process, started before anything touches the backend."""

from jaxbench.machine.start import start_fake_cpu

start_fake_cpu(8, pin=False)
