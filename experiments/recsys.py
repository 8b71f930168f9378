# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A click-through model with a million embeddings: little arithmetic, 64 MB of gradient in every step (2 min).

    make run EXP=recsys                                          # random data: lookups cost the same
    make run EXP=recsys ARGS="--config.model.rows=10000"         # a small table, for comparison

Expect far lower efficiency than other models: the whole table's gradient is reduced, even for a small batch.
"""

from __future__ import annotations

from functools import partial

import jax.numpy as jnp
from ml_collections import ConfigDict

from jaxbench.workloads import Field, TrainWorkload, classification, from_nnx, make_optimizer
from jaxbench.workloads.flops import training
from jaxbench.workloads.losses import prediction
from jaxbench.workloads.models import recsys
from jaxbench.workloads.optimizers import tolerance


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.batch, config.accelerator_batch = 1024, 65536
    config.model = ConfigDict({"rows": 1_000_000, "embedding": 16, "width": 256, "depth": 2})
    config.optimizer = ConfigDict({"name": "adam", "learning_rate": 1e-3})
    config.mesh = ConfigDict({"oversubscribe": False})
    return config


def tiny(config: ConfigDict) -> ConfigDict:
    config.model.update({"rows": 100, "embedding": 4, "width": 8})
    return config


def build(config: ConfigDict) -> TrainWorkload:
    model = from_nnx(partial(recsys.ClickThrough, config.model))
    example = {
        "dense": Field((recsys.DENSE,)),
        "rows": Field((recsys.FIELDS,), jnp.int32, classes=config.model.rows),
        "label": Field((), jnp.int32, classes=2),
    }
    return TrainWorkload(
        name="recsys",
        init=model.init,
        loss=classification(model, inputs=("dense", "rows")),
        predict=prediction(model, inputs=("dense", "rows")),
        optimizer=make_optimizer(config.optimizer),
        example=example,
        flops_per_example=training([0.0, *recsys.layer_flops(config.model)]),  # the table needs its gradient
        unit="impressions",
        **tolerance(config.optimizer.name),
    )
