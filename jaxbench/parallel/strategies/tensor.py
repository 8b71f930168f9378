# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Tensor parallelism: every device has every example and computes its part of each product.

Each block needs two all-reduces of activations in the forward pass and two in the backward pass; see
workloads/models/sharded_layers.py.
"""

from __future__ import annotations

from jaxbench.parallel import sharded_step

AXIS = "tensor"
build = sharded_step.build
