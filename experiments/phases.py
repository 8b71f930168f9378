# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The phases of a step: forward, backward, update and communication, each timed by leaving it out (1 min).

    make run EXP=phases

Expect the backward pass to take about twice the forward pass, and no communication on one device.
"""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.discovery import load_experiment

base = load_experiment("cnn")


def get_config() -> ConfigDict:
    config = base.get_config()
    config.strategy = "shard_map"  # it writes out its communication, which can therefore be left out
    config.lever = ConfigDict({"part": "forward,gradient,local,step"})
    config.mesh = ConfigDict({"devices": "1,2"})
    config.scaling = "strong"
    return config


build = base.build
