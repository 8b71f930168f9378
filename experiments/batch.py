# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Latency and throughput by batch size; with --config.search=max, the largest batch that fits (1 min).

    make run EXP=batch
    make run EXP=batch ARGS="--config.search=max --config.search_bytes=500000000"

Expect a nearly constant step time for small batches, and a nearly constant throughput for large ones.
"""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.discovery import load_experiment

base = load_experiment("cnn")


def get_config() -> ConfigDict:
    config = base.get_config()
    config.lever = ConfigDict({"batch": "1,2,4,8,16,32,64,128,256"})
    config.mesh = ConfigDict({"devices": "1"})
    config.scaling = "strong"
    return config


build = base.build
