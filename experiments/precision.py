# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Number formats on one model: float32, bfloat16, float16 with loss scaling: speed, memory, accuracy (1 min).

    make run EXP=precision

Each arm first trains on the real digits and says what it came to, then is timed. Any training experiment takes the
lever: ``--config.lever.precision=default,bfloat16``. Expect bfloat16 to be slower than float32 on a CPU without
units for it, and the accuracies to agree. TF32 is a format of NVIDIA's GPUs: name it there.
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
