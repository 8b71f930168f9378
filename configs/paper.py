# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""For a figure in print: every strategy, 30 rounds of longer blocks; about 20 minutes for cnn on two cores."""

from ml_collections import ConfigDict


def get_config(config: ConfigDict) -> ConfigDict:
    config.strategy = "all"
    config.measure.rounds = 30
    config.measure.block_s = 0.2
    return config
