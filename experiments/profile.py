# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The time of a step by kind of operation, from a trace that also opens in Perfetto and TensorBoard (1 min).

    make run EXP=profile

Any training experiment takes ``--config.profile=true``. The traces are in profiles/ in the run's folder.
"""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.discovery import load_experiment

base = load_experiment("gpt")


def get_config() -> ConfigDict:
    config = base.get_config()
    config.profile = True
    config.mesh = ConfigDict({"devices": "1,2"})
    config.scaling = "strong"
    return config


tiny = base.tiny
build = base.build
