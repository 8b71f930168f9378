# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""float32, bfloat16, and float16 with loss scaling, on one model: speed, memory and accuracy (1 min).

    make run EXP=precision

Each arm first trains on the real digits and reports its accuracy, then is timed. Any training experiment takes the
lever: ``--config.lever.precision=default,bfloat16``. Expect equal accuracies, and bfloat16 to be slower than float32 on
a CPU without bfloat16 units. tf32 needs an NVIDIA GPU.
"""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.discovery import load_experiment

base = load_experiment("cnn")


def get_config() -> ConfigDict:
    config = base.get_config()
    config.lever = ConfigDict({"precision": "default,bfloat16,float16"})
    config.measure = ConfigDict({"train_steps": 400})
    config.mesh = ConfigDict({"devices": "1"})
    config.scaling = "strong"
    return config


build = base.build
