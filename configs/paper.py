# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""For publication: every strategy, 30 rounds of longer blocks in 10 processes; about an hour for cnn on two cores.

Experiments about specific strategies keep theirs.
"""

from ml_collections import ConfigDict


def get_config(config: ConfigDict) -> ConfigDict:
    if config.get("measures") == "targets":
        config.seeds, config.rule = 10, "linear,sqrt,tuned"
        return config
    config.measure.rounds = 30
    if config.get("measures") == "cases":
        config.measure.block_s, config.measure.processes = 0.05, 3
    else:
        config.measure.block_s, config.measure.processes = 0.5, 10
        config.strategy = "all" if config.strategy == "jit_auto" else config.strategy
    return config
