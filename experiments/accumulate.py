# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Gradient accumulation: step time and memory of one update from 1, 2, 4 or 8 micro-batches (1 min).

    make run EXP=accumulate

The parameters of each arm are compared with those of the undivided batch. Expect less memory and slightly more time.
"""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.discovery import load_experiment

base = load_experiment("cnn")


def get_config() -> ConfigDict:
    config = base.get_config()
    config.batch = 256
    config.lever = ConfigDict({"accumulate": "1,2,4,8"})
    config.mesh = ConfigDict({"devices": "1"})
    config.scaling = "strong"
    return config


build = base.build
