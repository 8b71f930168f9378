# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""ZeRO stage 2: as stage 1, but each device keeps only its shard of each micro-batch's mean gradient."""

from __future__ import annotations

from functools import partial

from jaxbench.parallel import zero

AXIS = zero.AXIS
build = partial(zero.build, stage=2)
