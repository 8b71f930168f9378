# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Real data to train on, read from disk and checked. Nothing is downloaded, and missing data is not replaced."""

from jaxbench.workloads.data.images import load
from jaxbench.workloads.data.input import order

__all__ = ["load", "order"]
