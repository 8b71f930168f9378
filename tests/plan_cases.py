# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Machines and settings for tests that plan a sweep."""

from jaxbench import config as config_lib
from jaxbench import discovery, parallel

CPU = {"platform": "cpu", "devices": 1, "cores": 2, "device_kind": "cpu", "device_kinds": ["cpu"]}
GPUS = {"platform": "gpu", "devices": 6, "cores": 64, "device_kind": "NVIDIA H200", "device_kinds": ["NVIDIA H200"]}


def settings(**changes):
    config = config_lib.compose("mlp", discovery.load_experiment("mlp"), discovery.load_preset("auto"))
    with config.unlocked():
        config.update_from_flattened_dict({"batch": 24, **changes})
    return config_lib.parse(config, parallel.strategy_names(), parallel.of_any_model())
