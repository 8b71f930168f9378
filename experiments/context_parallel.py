# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Context parallelism: the longest sequence that fits, and step time, with positions split over devices (6 min).

    make run EXP=context_parallel
    make run EXP=context_parallel ARGS="--config.search_bytes=1073741824"

The longest context is found by compiling only: it is the largest for which the compiler reports at most `search_bytes`
per device. Keys and values travel round a ring (Liu et al., 2023). Each device holds an early and a late part of the
sequence, so that causal attention is equal work for all.
"""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.discovery import load_experiment

base = load_experiment("gpt")


def get_config() -> ConfigDict:
    config = base.get_config()
    config.strategy = "context"
    config.scaling = "strong"
    config.batch = 4
    config.model.layers, config.model.context = 2, 512
    config.search = "context"
    config.search_bytes = 512 * 2**20
    config.mesh = ConfigDict({"devices": "1,2,4,8", "oversubscribe": True})
    config.report = ConfigDict({"view": "context", "overlay": ""})
    return config


def tiny(config: ConfigDict) -> ConfigDict:
    config = base.tiny(config)
    config.model.context, config.search_bytes = 32, 2**23
    return config


build = base.build
