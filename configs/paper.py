# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""For publication: every strategy, 30 rounds of longer blocks; about 20 minutes for cnn on two cores."""

from ml_collections import ConfigDict


def get_config(config: ConfigDict) -> ConfigDict:
    config.measure.rounds = 30
    if config.get("measures") == "cases":
        config.measure.block_s = 0.05
    else:
        config.measure.block_s = 0.2
        config.strategy = "all"
    return config
