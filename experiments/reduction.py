# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Gradient all-reduce in five ways and two number formats: compiler, fused, bucketed, scatter, ring (1 min).

    make run EXP=reduction

Each arm is the same data-parallel step with another reduction. Its compiled program must send the bytes of the closed
form, 2 (n - 1) / n of the gradient. In bfloat16 the sums keep 8 bits, and the table compares the parameters with those
of one device. bfloat16 halves the bytes sent, except on a CPU, where XLA widens it to float32.
"""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.discovery import load_experiment

base = load_experiment("mlp")


def get_config() -> ConfigDict:
    config = base.get_config()
    config.strategy = "shard_map"
    config.lever = ConfigDict({"reduction": "strategy,fused,bucketed,scatter,ring,fused:bfloat16,ring:bfloat16"})
    config.mesh = ConfigDict({"devices": "2"})
    config.scaling = "weak"
    return config


build = base.build
