# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Layer freezing: the time, FLOPs and gradient bytes of a step whose first blocks are frozen (2 min).

    make run EXP=freeze

The pattern is a regular expression over parameter paths. Expect the FLOPs to fall by two thirds of the frozen blocks'
share: the compiled program keeps their forward pass and drops their backward pass.
"""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.discovery import load_experiment

base = load_experiment("gpt")


def get_config() -> ConfigDict:
    config = base.get_config()
    first = "tokens|positions"  # the embeddings: training them would take the backward pass through every block
    config.lever = ConfigDict({"freeze": f"none,{first},{first}|blocks/[01]/,{first}|blocks/[012]/"})
    config.mesh = ConfigDict({"devices": "1,2"})
    config.scaling = "strong"
    return config


def tiny(config: ConfigDict) -> ConfigDict:
    config = base.tiny(config)
    config.model.layers = 4
    return config


build = base.build
