# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""ZeRO stage 2: as stage 1, but each device keeps only its shard of each micro-batch's mean gradient."""

from __future__ import annotations

from functools import partial

from jaxbench.parallel.strategies import zero1

AXIS = zero1.AXIS
build = partial(zero1.build_stage, stage=2)
