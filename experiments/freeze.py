# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Layer freezing: the time, FLOPs and gradient bytes of a step when its first blocks are not trained (2 min).

    make run EXP=freeze

The pattern is a regular expression over parameter paths. Expect the FLOPs to fall by two thirds of the frozen blocks'
share: their backward pass is gone from the compiled program, their forward pass is not.
"""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.discovery import load_experiment

base = load_experiment("gpt")


def get_config() -> ConfigDict:
    config = base.get_config()
    first = "tokens|positions"  # the embeddings: were they trained, the backward pass would go through every block
    config.lever = ConfigDict({"freeze": f"none,{first},{first}|blocks/[01]/,{first}|blocks/[012]/"})
    config.mesh = ConfigDict({"devices": "1,2"})
    config.scaling = "strong"
    return config


def tiny(config: ConfigDict) -> ConfigDict:
    config = base.tiny(config)
    config.model.layers = 4
    return config


build = base.build
