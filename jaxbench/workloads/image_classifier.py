# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""An image classifier of synthetic or real images: the workload of all vision models of the papers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from jaxbench.workloads.adapters import from_nnx
from jaxbench.workloads.base import Field, TrainWorkload
from jaxbench.workloads.flops import training
from jaxbench.workloads.losses import classification, evaluation, prediction
from jaxbench.workloads.optimizers import make_optimizer, tolerance


def image_classifier(
    name: str, constructor: Callable[[Any], Any], config: Any, layer_flops: list[float], **facts: Any
) -> TrainWorkload:
    """The workload of an NNX model of RGB images with `config.model.size` pixels and `config.model.classes` classes.

    constructor: rngs -> module. layer_flops: forward FLOPs of each layer for one image. facts: further fields of the
    TrainWorkload.
    """
    model = from_nnx(constructor)
    size, classes = config.model.size, config.model.classes
    return TrainWorkload(
        name=name,
        init=model.init,
        loss=classification(model),
        evaluate=evaluation(model),
        predict=prediction(model),
        optimizer=make_optimizer(config.optimizer),
        example={"image": Field((size, size, 3)), "label": Field((), jnp.int32, classes=classes)},
        flops_per_example=training(layer_flops),
        unit="images",
        **tolerance(config.optimizer.name),
        **facts,
    )
