# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A smoke test: one and two devices, three short rounds, every strategy, small sizes. Its numbers mean nothing."""

from ml_collections import ConfigDict

TINY = True


def get_config(config: ConfigDict) -> ConfigDict:
    if config.get("measures") == "targets":
        # every batch reaches its target, within 5 epochs
        config.batches, config.seeds, config.epochs, config.mesh.devices = "16,64", 2, 12, "auto:2"
        return config
    config.measure.rounds, config.measure.processes = 3, 1
    if config.get("measures") == "cases":
        config.mesh.devices = "auto:2"
        config.measure.block_s = 0.001
        config.max_bytes = 1_000_000
        return config
    config.measure.block_s = 0.01
    config.batch = 16
    config.explain = "off"  # three rounds are too few for an ablation
    if config.mesh.devices == "auto":  # experiments with a lever choose their own devices
        config.mesh.devices, config.strategy = "auto:2", "all"
    return config
