# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""ZeRO: one device's share of the model's state under data parallelism, by stage (3 min).

    make run EXP=zero

Mixed-precision Adam, 16 bytes a parameter: 2 of the parameter, 2 of its gradient, 12 of the optimizer (Rajbhandari et
al., 2020). Bytes are those of the arrays on the first device, exact even when oversubscribed; the published curves are
drawn behind them. The table shows the cost: stage 3 sends 1.5 times the bytes.
"""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.discovery import load_experiment

base = load_experiment("mlp")


def get_config() -> ConfigDict:
    config = base.get_config()
    config.strategy = "jit_auto,zero1,zero2,fsdp"
    config.scaling = "weak"
    config.lever = ConfigDict({"precision": "mixed"})
    config.mesh = ConfigDict({"devices": "1,2,4,8"})
    config.measure = ConfigDict({"gradients": True})
    config.report = ConfigDict({"view": "zero", "overlay": ""})
    return config


tiny, build = base.tiny, base.build
