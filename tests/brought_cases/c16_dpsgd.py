# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Differentially private training (optax 515): the gradient is the mean of clipped per-example gradients."""

import jax
import jax.numpy as jnp
import optax

from jaxbench.workloads import Field, TrainWorkload


def get_config():
    from ml_collections import ConfigDict

    return ConfigDict({"model": {"how": "custom_vjp"}})


def one(params, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(x @ params["w"] + params["b"], y)


def clipped_mean(params, x, y):
    grads = jax.vmap(jax.grad(one), (None, 0, 0))(params, x, y)
    norms = jnp.sqrt(sum(jnp.sum(g.reshape(len(x), -1) ** 2, 1) for g in jax.tree.leaves(grads)))
    scale = jnp.minimum(1.0, 1.0 / norms)
    return jax.tree.map(lambda g: jnp.mean(g * scale.reshape(-1, *[1] * (g.ndim - 1)), 0), grads)


@jax.custom_vjp
def private(params, x, y):
    return jax.vmap(one, (None, 0, 0))(params, x, y).mean()


private.defvjp(
    lambda params, x, y: (private(params, x, y), (params, x, y)),
    lambda saved, g: (jax.tree.map(lambda d: g * d, clipped_mean(*saved)), None, None),
)


def build(config):
    def loss(params, state, batch, key):
        return private(params, batch["x"], batch["y"]), (state, {})

    optimizer = optax.sgd(0.1)
    if config.model.how == "optax":
        optimizer = optax.chain(optax.contrib.differentially_private_aggregate(1.0, 0.1, jax.random.key(0)), optimizer)
    return TrainWorkload(
        name="c16",
        init=lambda key: ({"w": jax.random.normal(key, (16, 5)), "b": jnp.zeros(5)}, {}),
        loss=loss,
        optimizer=optimizer,
        example={"x": Field((16,)), "y": Field((), jnp.int32, classes=5)},
    )
