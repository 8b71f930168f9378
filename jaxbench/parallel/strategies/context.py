# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Context parallelism: each device holds a part of every sequence (see workloads/positions.py and models/attention.py).

Keys and values travel around a ring in every attention; gradients are averaged as in data parallelism.
"""

from __future__ import annotations

from jaxbench.parallel import sharded_step

AXIS = "context"
build = sharded_step.build
