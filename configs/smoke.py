# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Does it run at all? One and two devices, three short rounds, every strategy; about a minute. Not for numbers."""

from ml_collections import ConfigDict


def get_config(config: ConfigDict) -> ConfigDict:
    config.strategy = "all"
    config.batch = 16
    config.mesh.devices = "auto:2"
    config.measure.rounds = 3
    config.measure.block_s = 0.01
    return config
