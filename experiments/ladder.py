# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One optimization at a time: from eager to jit, fusion, donation, 16 bits, prefetched input (1 min).

    make run EXP=ladder

Each rung keeps the rungs below it. Expect the largest gain from jit, and a loss from bfloat16 on a CPU.
"""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.discovery import load_experiment

base = load_experiment("cnn")

RUNGS = (
    "execution=eager",
    "execution=unfused",
    "execution=jit",
    "execution=donated",
    "precision=bfloat16",
    "input=pipeline:2",
)


def get_config() -> ConfigDict:
    config = base.get_config()
    config.lever = ConfigDict({"input": "pipeline:0", "ladder": "; ".join(RUNGS)})
    config.mesh = ConfigDict({"devices": "1"})
    config.scaling = "strong"
    return config


build = base.build
