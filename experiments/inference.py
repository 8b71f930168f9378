# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Inference by batch size: throughput, and the median and 99th percentile of latency (1 min).

    make run EXP=inference

Calls are synchronous. Expect throughput to grow with the batch until latency grows as fast.
"""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.discovery import load_experiment

base = load_experiment("cnn")


def get_config() -> ConfigDict:
    config = base.get_config()
    config.strategy = "shard_map"
    config.lever = ConfigDict({"part": "inference", "batch": "1,2,4,8,16,32,64,128"})
    config.mesh = ConfigDict({"devices": "1"})
    config.scaling = "strong"
    return config


build = base.build
