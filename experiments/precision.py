# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""float32, bfloat16, and float16 with loss scaling, on one model: speed, memory and accuracy (1 min).

    make run EXP=precision

Each arm first trains on the real digits and reports its accuracy, then is timed. Any training experiment takes the
lever: ``--config.lever.precision=default,bfloat16``. Expect equal accuracies, and bfloat16 to be slower than float32 on
a CPU without bfloat16 units. tf32 needs an NVIDIA GPU.
"""

from jaxbench.discovery import changed, load_experiment

base = load_experiment("cnn")
get_config = changed(
    base.get_config,
    batch=64,
    lever={"precision": "default,bfloat16,float16"},
    measure={"train_steps": 400},
    mesh={"devices": "1"},
    scaling="strong",
)
build = base.build
