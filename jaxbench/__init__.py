# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How does training scale from device to device? Measured, checked, and drawn."""

__version__ = "0.1.0"
