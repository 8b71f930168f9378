# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A graph convolutional network that classifies the nodes of random graphs, in batches of graphs (2 min).

    make run EXP=gcn

Expect it to scale like `cnn`: its gradient is small, and products with the dense adjacency are most of its work.
"""

from __future__ import annotations

from functools import partial

import jax.numpy as jnp
from ml_collections import ConfigDict

from jaxbench.workloads import Field, TrainWorkload, classification, from_nnx, make_optimizer
from jaxbench.workloads.losses import prediction
from jaxbench.workloads.models import gcn
from jaxbench.workloads.optimizers import tolerance


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.batch, config.accelerator_batch = 64, 4096
    config.model = ConfigDict({"nodes": 256, "features": 64, "width": 64, "classes": 7, "ring": 1024, "reach": 8})
    config.optimizer = ConfigDict({"name": "sgd", "learning_rate": 0.5})
    return config


def tiny(config: ConfigDict) -> ConfigDict:
    config.model.update({"nodes": 16, "features": 8, "width": 8, "ring": 64})
    return config


def build(config: ConfigDict) -> TrainWorkload:
    model = from_nnx(partial(gcn.GCN, config.model))
    nodes = config.model.nodes
    example = {
        "features": Field((nodes, config.model.features)),
        "places": Field((nodes,), jnp.int32, classes=config.model.ring),
        "label": Field((nodes,), jnp.int32, classes=config.model.classes),
    }
    return TrainWorkload(
        name="gcn",
        init=model.init,
        loss=classification(model, inputs=("features", "places")),
        predict=prediction(model, inputs=("features", "places")),
        optimizer=make_optimizer(config.optimizer),
        example=example,
        flops_per_example=gcn.training_flops(config.model),
        unit="graphs",
        **tolerance(config.optimizer.name),
    )
