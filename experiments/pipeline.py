# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Pipeline parallelism: the bubble by number of stages and of micro-batches, for each schedule (9 min).

    make run EXP=pipeline

K stages and M micro-batches leave (K - 1) / (M + K - 1) of all slots in the schedule idle. The executed schedule's idle
slots and the compiled step's memory are exact, even when oversubscribed. GPipe's published throughputs (Huang et al.,
2019) are drawn dashed.
"""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.discovery import load_experiment

base = load_experiment("gpt")


def get_config() -> ConfigDict:
    config = base.get_config()
    config.strategy = "pipeline"
    config.scaling = "strong"
    config.batch = 32
    # Small, and few rounds: when oversubscribed, a tick costs as much as waking all device threads.
    config.model.update({"layers": 8, "width": 64, "heads": 4, "context": 32})
    config.measure = ConfigDict({"rounds": 5, "processes": 1})
    config.lever = ConfigDict({"accumulate": "1,4,32", "schedule": "gpipe,1f1b"})
    config.mesh = ConfigDict({"devices": "2,4,8", "oversubscribe": True})
    config.report = ConfigDict({"view": "pipeline", "overlay": ""})
    return config


def tiny(config: ConfigDict) -> ConfigDict:
    config = base.tiny(config)
    config.model.layers = 8
    config.lever.update({"accumulate": "1,4", "schedule": "gpipe,1f1b"})
    return config


build = base.build
