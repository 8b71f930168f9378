# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A mixture of experts spread over devices: what travels, and the share of positions that find no place (9 min).

    make run EXP=moe

Each block's perceptron is eight, and a router sends each position to one (Fedus et al., Switch, 2021): eight times the
parameters for the same products. An expert takes 1.25 times its even share of a sequence; what comes beyond is dropped.
"""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.discovery import load_experiment

base = load_experiment("gpt")


def get_config() -> ConfigDict:
    config = base.get_config()
    config.strategy = "expert,fsdp"
    config.scaling = "weak"
    config.batch = 8
    config.model.experts = 8
    config.mesh = ConfigDict({"devices": "1,2,4,8", "oversubscribe": True})
    config.report = ConfigDict({"view": "moe", "overlay": ""})
    return config


tiny = base.tiny
build = base.build
