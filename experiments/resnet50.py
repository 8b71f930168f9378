# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""ResNet-50 (version 1.5) on 224x224 images: the model of most published scaling curves (25 min).

make run EXP=resnet50
make run EXP=resnet50 ARGS=--config.lever.remat=none,sqrt,block   # memory against time
The dashed line of the figure: eight GPUs of 2017 were 7.5 to 8 times as fast as one.
"""

from __future__ import annotations

import resnet18
from ml_collections import ConfigDict

from jaxbench.discovery import changed
from jaxbench.workloads import TrainWorkload

get_config = changed(
    resnet18.get_config, batch=8, accelerator_batch=64, model={"block": "bottleneck", "blocks": "3,4,6,3"}
)


def tiny(config: ConfigDict) -> ConfigDict:
    config.model.update({"size": 32, "classes": 10, "width": 8, "blocks": "1,1"})
    return config


def build(config: ConfigDict) -> TrainWorkload:
    return resnet18.build(config, "resnet50")
