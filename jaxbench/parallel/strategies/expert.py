# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Expert parallelism: data parallelism in which the experts of a mixture are split over devices (models/gpt.py).

The activations of each position travel to the device of their expert and back: two all-to-alls for each mixture in the
forward pass and two in the backward pass.
"""

from __future__ import annotations

from jaxbench.parallel import sharded_step

AXIS = "expert"
build = sharded_step.build
