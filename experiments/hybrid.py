# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Every data, fsdp, stage and tensor mesh of the devices, ranked by time, memory and bytes sent (9 min).

    make run EXP=hybrid
    make run EXP=hybrid ARGS="--config.mesh.devices=8"
    make run EXP=hybrid ARGS='--config.lever.mesh="data=2,tensor=2;fsdp=4"'

Each arm is a mesh, one for each factorization of the device count; plain data parallelism comes first. Memory and bytes
are exact even when oversubscribed. The ranking by time then means nothing and is drawn hollow.
"""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.discovery import load_experiment

base = load_experiment("gpt")


def get_config() -> ConfigDict:
    config = base.get_config()
    config.strategy = "hybrid"
    config.scaling = "strong"
    config.batch = 32
    config.model.update({"layers": 8, "width": 64, "heads": 8, "context": 32})
    config.measure = ConfigDict({"rounds": 5, "processes": 1})
    config.lever = ConfigDict({"mesh": "all", "accumulate": "4"})
    config.mesh = ConfigDict({"devices": "4", "oversubscribe": True})
    config.report = ConfigDict({"view": "hybrid", "overlay": ""})
    return config


def tiny(config: ConfigDict) -> ConfigDict:
    config = base.tiny(config)
    config.model.update({"layers": 8, "heads": 8})
    return config


build = base.build
