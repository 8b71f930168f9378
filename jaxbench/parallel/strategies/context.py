# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Context parallelism: each device holds a part of every sequence (see `sharding_context.own_positions`).

Keys and values travel in every attention (models/ring.py); gradients are averaged as in data parallelism.
"""

from __future__ import annotations

from jaxbench.parallel import sharded_step

AXIS = "context"
build = sharded_step.build
