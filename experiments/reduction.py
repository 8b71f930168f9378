# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The mean of gradients over devices in five ways and two formats: the compiler's, fused, bucketed, a ring (1 min).

    make run EXP=reduction

Each arm is the same data-parallel step with another reduction, and its compiled program must hold the closed form's
bytes: 2 (n - 1) / n of the gradient for each. In bfloat16 the sums keep 8 bits, and the row says how far the parameters
are then from one device's; on the wire it is half as much, but not on a CPU, where XLA widens it to float32 again.
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
