# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Tensor parallelism of a transformer: weak scaling with a growing model, and strong scaling (5 min).

    make run EXP=tensor_parallel

As in Megatron-LM (Shoeybi et al., 2019): weak scaling widens the model with the number of devices, keeps the batch and
compares FLOP/s per device; strong scaling splits the smallest of these models. Their measurements on V100s are drawn
dashed. `--config.lever.sequence_parallel=on` also splits positions between the products.
"""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.discovery import changed, load_experiment

base = load_experiment("gpt")

# Megatron's table 1 for 1, 2, 4 and 8 devices: 16, 20, 24 and 32 heads of 96 units, and 40, 54, 64 and 72 layers. The
# models here have the same heads, an eighth as wide, and a tenth of the layers.
HEADS, LAYERS = {1: 16, 2: 20, 4: 24, 8: 32}, {1: 40, 2: 54, 4: 64, 8: 72}


get_config = changed(
    base.get_config,
    strategy="tensor",
    batch=8,
    weak="model",
    model={"layers": 4, "width": 12 * HEADS[1], "heads": HEADS[1]},
    mesh={"devices": "auto:8", "oversubscribe": True},
    report={"view": "tensor", "overlay": ""},
)


def grow(config: ConfigDict, devices: int) -> ConfigDict:
    """The config with the model for `devices`, scaled like the row of the table with the most devices up to that."""
    step = max(n for n in HEADS if n <= devices)
    head, heads = config.model.width // config.model.heads, config.model.heads * HEADS[step] // HEADS[1]
    layers = round(config.model.layers * LAYERS[step] / LAYERS[1])
    config.model.update({"width": head * heads, "heads": heads, "layers": layers})
    return config


def tiny(config: ConfigDict) -> ConfigDict:
    config.model.update({"layers": 2, "width": 16, "heads": 8, "context": 8})
    return config


build = base.build
