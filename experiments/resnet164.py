# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""ResNet-164 with pre-activation on 32x32 images: 1.7 million parameters in 164 thin layers (17 min).

make run EXP=resnet164
make run EXP=resnet164 ARGS=--config.lever.remat=none,sqrt,block  # 54 identical blocks: sqrt keeps every 8th input
make train EXP=resnet164 ARGS=--config.data.path=folder/with/cifar-10-batches-bin
"""

from __future__ import annotations

import resnet18
from ml_collections import ConfigDict

from jaxbench.errors import UserError
from jaxbench.workloads import TrainWorkload

STAGES = 3
LAYERS = 3 * STAGES  # of one block in each stage, without the stem and the logits


def get_config() -> ConfigDict:
    config = resnet18.get_config()
    config.batch, config.accelerator_batch = 32, 256
    config.model = ConfigDict(
        {"depth": 164, "stem": "cifar", "size": 32, "classes": 10, "width": 16, "statistics": "device"}
    )
    return config


def tiny(config: ConfigDict) -> ConfigDict:
    config.model.update({"depth": 11, "size": 16, "width": 4})
    return config


def build(config: ConfigDict) -> TrainWorkload:
    each, rest = divmod(config.model.depth - 2, LAYERS)
    if rest or each < 1:
        near = max(1, round((config.model.depth - 2) / LAYERS)) * LAYERS + 2
        raise UserError(f"--config.model.depth={config.model.depth} is not 9 n + 2: use {near}, for example.")
    config = ConfigDict(config)
    with config.unlocked():
        config.model.update({"block": "preactivation", "blocks": ",".join([str(each)] * STAGES)})
    return resnet18.build(config, "resnet164")
