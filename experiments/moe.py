# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A mixture of experts over devices: the bytes exchanged and the share of positions dropped (9 min).

    make run EXP=moe

Each block has eight perceptrons, and a router sends each position to one of them (Fedus et al., Switch, 2021): eight
times the parameters for the same FLOPs. An expert takes 1.25 times its even share of a sequence; the rest is dropped.
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
