# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""ZeRO stage 1: each device keeps and updates its shard of the optimizer's state.

Each device adds up its own full gradients over micro-batches, and they are reduced once.
"""

from __future__ import annotations

from functools import partial

from jaxbench.parallel import zero

AXIS = zero.AXIS
build = partial(zero.build, stage=1)
