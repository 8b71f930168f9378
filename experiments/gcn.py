# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A graph convolutional network that classifies the nodes of random graphs, in batches of graphs (2 min).

    make run EXP=gcn

Expect it to scale like `cnn`: its gradient is small, and products with the dense adjacency are most of its work.

The model is that of Kipf and Welling, arXiv:1609.02907, without dropout. An example is one random geometric graph. Its
nodes have integer positions on a ring, and two nodes are neighbours if they are at most `reach` apart. Integers make
the edges the same on every device; with a threshold on a computed similarity, a difference in the last bit could flip
an edge. Axes: B graphs, N nodes (M their neighbours), F features, H width, C classes.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from flax import nnx
from ml_collections import ConfigDict

from jaxbench.workloads import Field, TrainWorkload, classification, from_nnx, make_optimizer
from jaxbench.workloads.flops import dense
from jaxbench.workloads.losses import prediction
from jaxbench.workloads.optimizers import tolerance


class GCN(nnx.Module):
    """{"features": (B, N, F), "places": (B, N) in [0, config.ring)} to logits (B, N, C)."""

    def __init__(self, config: ConfigDict, rngs: nnx.Rngs):
        """config: has `features`, `width`, `classes`, `ring` and `reach`."""
        self.ring, self.reach = config.ring, config.reach
        self.hidden = nnx.Linear(config.features, config.width, rngs=rngs)
        self.logits = nnx.Linear(config.width, config.classes, rngs=rngs)

    def __call__(self, inputs: dict[str, jax.Array]) -> jax.Array:
        adjacency_BNM = normalised_adjacency(inputs["places"], ring=self.ring, reach=self.reach)
        adjacency_BNM = adjacency_BNM.astype(inputs["features"].dtype)
        x_BNH = nnx.relu(adjacency_BNM @ self.hidden(inputs["features"]))
        return adjacency_BNM @ self.logits(x_BNH)


def normalised_adjacency(places_BN: jax.Array, *, ring: int, reach: int) -> jax.Array:
    """D^-1/2 A D^-1/2 in float32, (B, N, N), where A joins nodes at most `reach` apart on a ring of `ring` places.

    Every node is its own neighbour, so no degree is 0.
    """
    apart_BNM = jnp.abs(places_BN[:, :, None] - places_BN[:, None, :])
    joined_BNM = (jnp.minimum(apart_BNM, ring - apart_BNM) <= reach).astype(jnp.float32)
    scale_BN = jax.lax.rsqrt(jnp.sum(joined_BNM, axis=-1))
    return scale_BN[:, :, None] * joined_BNM * scale_BN[:, None, :]


def training_flops(config: ConfigDict) -> float:
    """FLOPs of forward and backward, one graph.

    Each layer is two products, with the weights and with the adjacency. The adjacency and the first layer's input need
    no gradient, so the backward pass has two products for the second layer's weights and one for each other product.
    """
    n = config.nodes
    layers = [(config.features, config.width), (config.width, config.classes)]
    weights = [n * dense(i, o) for i, o in layers]
    neighbours = [n * dense(n, o) for _, o in layers]
    return 2 * weights[0] + 3 * weights[1] + 2 * sum(neighbours)


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
    model = from_nnx(partial(GCN, config.model))
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
        flops_per_example=training_flops(config.model),
        unit="graphs",
        **tolerance(config.optimizer.name),
    )
