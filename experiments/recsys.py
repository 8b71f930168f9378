# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A click-through model with a million embeddings: little arithmetic, 64 MB of gradient in every step (2 min).

    make run EXP=recsys                                          # random data: lookups cost the same
    make run EXP=recsys ARGS="--config.model.rows=10000"         # a small table, for comparison

Expect far lower efficiency than other models: the whole table's gradient is reduced, even for a small batch.

The model reads the fields of the Criteo data as DLRM does (Naumov et al., arXiv:1906.00091), without pairwise
interactions and with one table into which all fields are hashed. The gradient is dense: it is mostly zero, but every
step communicates it and updates the whole table.

Axes: B examples, N dense features, C categorical fields, D embedding width.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from flax import nnx
from ml_collections import ConfigDict

from jaxbench.workloads import Field, TrainWorkload, classification, from_nnx, make_optimizer
from jaxbench.workloads.flops import dense, training
from jaxbench.workloads.losses import prediction
from jaxbench.workloads.models.sharded_layers import rows
from jaxbench.workloads.optimizers import tolerance

DENSE, FIELDS = 13, 26


class ClickThrough(nnx.Module):
    """{"dense": (B, N), "rows": (B, C) in [0, config.rows)} to logits (B, 2) of (no click, click).

    The first logit is 0, so the softmax of the two is the logistic function of the second.
    """

    def __init__(self, config: ConfigDict, rngs: nnx.Rngs):
        """config: has `rows`, `embedding`, `width` and `depth`."""
        self.table = nnx.Param(0.01 * jax.random.normal(rngs.params(), (config.rows, config.embedding)))
        self.layers = nnx.List(nnx.Linear(i, o, rngs=rngs) for i, o in layer_sizes(config))

    def __call__(self, inputs: dict[str, jax.Array]) -> jax.Array:
        embedded_BCD = rows(self.table[...], inputs["rows"])
        x = jnp.concatenate([inputs["dense"], embedded_BCD.reshape(embedded_BCD.shape[0], -1)], axis=-1)
        for layer in self.layers[:-1]:
            x = nnx.relu(layer(x))
        click_B1 = self.layers[-1](x)
        return jnp.concatenate([jnp.zeros_like(click_B1), click_B1], axis=-1)


def layer_sizes(config: ConfigDict) -> list[tuple[int, int]]:
    """(inputs, outputs) of each dense layer."""
    widths = [DENSE + FIELDS * config.embedding, *[config.width] * config.depth, 1]
    return list(zip(widths[:-1], widths[1:], strict=True))


def layer_flops(config: ConfigDict) -> list[float]:
    """Forward FLOPs of each dense layer, one example, without the lookup."""
    return [dense(i, o) for i, o in layer_sizes(config)]


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
    model = from_nnx(partial(ClickThrough, config.model))
    example = {
        "dense": Field((DENSE,)),
        "rows": Field((FIELDS,), jnp.int32, classes=config.model.rows),
        "label": Field((), jnp.int32, classes=2),
    }
    return TrainWorkload(
        name="recsys",
        init=model.init,
        loss=classification(model, inputs=("dense", "rows")),
        predict=prediction(model, inputs=("dense", "rows")),
        optimizer=make_optimizer(config.optimizer),
        example=example,
        flops_per_example=training([0.0, *layer_flops(config.model)]),  # the table needs its gradient
        unit="impressions",
        **tolerance(config.optimizer.name),
    )
