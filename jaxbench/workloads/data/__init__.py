# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Real data to train on, read from the disk and checked. Nothing here fetches anything or replaces what is missing."""

from jaxbench.workloads.data.images import Images, load
from jaxbench.workloads.data.order import order

__all__ = ["Images", "load", "order"]
