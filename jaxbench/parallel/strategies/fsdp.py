# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Fully sharded data parallelism, ZeRO stage 3: each device keeps its shard of the whole training state.

Parameters are gathered where they are used, in the forward pass and again in the backward pass.
"""

from __future__ import annotations

from jaxbench.parallel import sharded_step

AXIS = "fsdp"
build = sharded_step.build
