# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Gradient all-reduce in five ways and two number formats: compiler, fused, bucketed, scatter, ring (1 min).

    make run EXP=reduction

Each arm is the same data-parallel step with another reduction. Its compiled program must send the expected bytes,
2 (n - 1) / n of the gradient. In bfloat16 the sums keep 8 bits, and the table compares the parameters with those of one
device. bfloat16 halves the bytes sent, except on a CPU, where XLA widens it to float32.
"""

from jaxbench.discovery import changed, load_experiment

base = load_experiment("mlp")
get_config = changed(
    base.get_config,
    strategy="shard_map",
    batch=100,  # little work, so that the cost of the reduction is visible
    lever={"reduction": "strategy,fused,bucketed,scatter,ring,fused:bfloat16,ring:bfloat16"},
    mesh={"devices": "2"},
    scaling="weak",
)
build = base.build
