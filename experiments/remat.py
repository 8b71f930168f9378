# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Rematerialization: the activation memory of a step against the time of recomputation, on 16 blocks (3 min).

    make run EXP=remat

The step of each policy is also compiled, but not run, at other depths: this shows the square-root law of Chen et al.
(2016). Expect none to be the fastest and to take most memory, and sqrt to take least.
"""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.discovery import load_experiment

base = load_experiment("gpt")


def get_config() -> ConfigDict:
    config = base.get_config()
    config.model.layers, config.model.width, config.model.heads = 16, 64, 2
    config.batch = 8
    config.lever = ConfigDict({"remat": "none,dots_saveable,sqrt,block"})
    config.depths = "4,8,16,32"
    config.mesh = ConfigDict({"devices": "1"})
    config.scaling = "strong"
    return config


def tiny(config: ConfigDict) -> ConfigDict:
    config = base.tiny(config)
    config.model.layers, config.depths = 4, "2,4"
    return config


build = base.build
