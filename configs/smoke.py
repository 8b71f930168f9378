# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Does it run at all? One and two devices, three short rounds, every strategy, small sizes. Not for numbers."""

from ml_collections import ConfigDict


def get_config(config: ConfigDict) -> ConfigDict:
    config.mesh.devices = "auto:2"
    config.measure.rounds = 3
    if config.get("measures") == "cases":
        config.measure.block_s = 0.001
        config.most_bytes = 1_000_000
    else:
        config.measure.block_s = 0.01
        config.strategy = "all"
        config.batch = 16
    return config
