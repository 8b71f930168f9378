# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Steps and seconds to a target accuracy over batch size, devices and seeds, with the gradient noise scale (10 min).

    make run EXP=time_to_target
    make run EXP=time_to_target ARGS="--config.models=cnn --config.rule=linear,tuned --config.warmup=3"
    make run EXP=time_to_target ARGS=--price_per_hour=2.50      # of this machine: targets.csv then has costs, too
    make run EXP=time_to_target ARGS="--config.models=path/to/mine.py --config.target=0.9"

Expect doubling the batch to halve the steps until the batch reaches about the gradient noise scale. Beyond that a
larger batch saves little. The learning rate follows a rule: linear or sqrt in the batch, or tuned over a grid.
"""

from ml_collections import ConfigDict

from jaxbench.discovery import load_experiment


def get_config() -> ConfigDict:
    return ConfigDict({"measures": "targets", "models": "mlp,cnn", "rule": "sqrt", "target": 0.95, "epochs": 60})


def build(config: ConfigDict) -> dict[str, object]:
    """The modules of the trained models, by name; each is built with its own config."""
    return {name: load_experiment(name) for name in str(config.models).split(",")}
