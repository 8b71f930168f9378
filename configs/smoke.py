# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Does it run at all? One and two devices, three short rounds, every strategy, small sizes. Not for numbers."""

from ml_collections import ConfigDict

TINY = True


def get_config(config: ConfigDict) -> ConfigDict:
    config.measure.rounds = 3
    if config.get("measures") == "cases":
        config.mesh.devices = "auto:2"
        config.measure.block_s = 0.001
        config.max_bytes = 1_000_000
        return config
    config.measure.block_s = 0.01
    config.batch = 16
    if config.mesh.devices == "auto":  # an experiment that pulls a lever says where
        config.mesh.devices, config.strategy = "auto:2", "all"
    return config
