# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The same small models for each adapter: 6 numbers to one of 4 classes."""

from __future__ import annotations

import equinox as eqx
import haiku as hk
import jax
import jax.numpy as jnp
import optax
from flax import linen as nn
from flax import nnx

from jaxbench.workloads import (
    Field,
    TrainWorkload,
    classification,
    evaluation,
    from_equinox,
    from_functions,
    from_haiku,
    from_linen,
    from_nnx,
)
from jaxbench.workloads.adapters import PureModel

EXAMPLE = jax.ShapeDtypeStruct((1, 6), jnp.float32)
RATE = 0.5


def workload(model: PureModel, **changes: object) -> TrainWorkload:
    """Ordinary training of one of these models."""
    settings = {"optimizer": optax.sgd(0.5), "example": {"x": Field((6,)), "y": Field((), jnp.int32, classes=4)}}
    loss = classification(model, inputs="x", labels="y")
    evaluate = evaluation(model, inputs="x", labels="y")
    return TrainWorkload(name="mine", init=model.init, loss=loss, evaluate=evaluate, **{**settings, **changes})


class NnxDropout(nnx.Module):
    def __init__(self, rngs):
        self.hidden, self.logits = nnx.Linear(6, 16, rngs=rngs), nnx.Linear(16, 4, rngs=rngs)
        self.dropout, self.second = nnx.Dropout(RATE, rngs=rngs), nnx.Dropout(RATE, rngs=rngs)

    def __call__(self, x):
        return self.logits(self.second(self.dropout(nnx.relu(self.hidden(x)))))


class LinenDropout(nn.Module):
    @nn.compact
    def __call__(self, x, train: bool):
        x = nn.Dropout(RATE, deterministic=not train)(nn.relu(nn.Dense(16)(x)))
        return nn.Dense(4)(x)


class EquinoxDropout(eqx.Module):
    hidden: eqx.nn.Linear
    logits: eqx.nn.Linear
    dropout: eqx.nn.Dropout

    def __init__(self, key):
        first, second = jax.random.split(key)
        self.hidden, self.logits = eqx.nn.Linear(6, 16, key=first), eqx.nn.Linear(16, 4, key=second)
        self.dropout = eqx.nn.Dropout(RATE)

    def __call__(self, x, *, key):
        return self.logits(self.dropout(jax.nn.relu(self.hidden(x)), key=key))


def haiku_dropout(x, is_training):
    x = jax.nn.relu(hk.Linear(16)(x))
    return hk.Linear(4)(hk.dropout(hk.next_rng_key(), RATE, x) if is_training else x)


def weights(key):
    first, second = jax.random.split(key)
    return {"up": 0.3 * jax.random.normal(first, (6, 16)), "down": 0.3 * jax.random.normal(second, (16, 4))}


def functions_dropout(params, x, key, train):
    x = jax.nn.relu(x @ params["up"])
    if train:
        x = jnp.where(jax.random.bernoulli(key, RATE, x.shape), x / RATE, 0.0)
    return x @ params["down"]


DROPOUT = {
    "nnx": lambda: from_nnx(NnxDropout),
    "linen": lambda: from_linen(LinenDropout(), EXAMPLE),
    "functions": lambda: from_functions(weights, functions_dropout),
    "equinox": lambda: from_equinox(EquinoxDropout),
    "haiku": lambda: from_haiku(haiku_dropout, EXAMPLE),
}


class NnxNet(nnx.Module):
    def __init__(self, rngs):
        self.layer = nnx.Linear(6, 4, rngs=rngs)
        self.calls = nnx.BatchStat(jnp.zeros(()))

    def __call__(self, x):
        self.calls[...] += 1.0
        return self.layer(x)


class LinenNet(nn.Module):
    @nn.compact
    def __call__(self, x):
        calls = self.variable("batch_stats", "calls", lambda: jnp.zeros(()))
        if not self.is_initializing():
            calls.value += 1.0
        return nn.Dense(4)(x)


def haiku_net(x):
    calls = hk.get_state("calls", (), init=jnp.zeros)
    hk.set_state("calls", calls + 1.0)
    return hk.Linear(4)(x)


def counting(params, model_state, x, key):
    del key
    return x @ params["kernel"], {"calls": model_state["calls"] + 1.0}


PLAIN = {
    "nnx": lambda: from_nnx(NnxNet),
    "linen": lambda: from_linen(LinenNet(), EXAMPLE),
    "functions": lambda: from_functions(
        lambda key: ({"kernel": jax.random.normal(key, (6, 4))}, {"calls": jnp.zeros(())}), counting
    ),
    "equinox": lambda: from_equinox(lambda key: eqx.nn.Linear(6, 4, key=key)),
    "haiku": lambda: from_haiku(haiku_net, EXAMPLE),
}
STATELESS = ("equinox",)


class NnxNormed(nnx.Module):
    def __init__(self, rngs):
        self.hidden, self.logits = nnx.Linear(6, 16, rngs=rngs), nnx.Linear(16, 4, rngs=rngs)
        self.norm = nnx.BatchNorm(16, momentum=0.9, rngs=rngs)

    def __call__(self, x):
        return self.logits(nnx.relu(self.norm(self.hidden(x))))


class LinenNormed(nn.Module):
    @nn.compact
    def __call__(self, x, train: bool):
        x = nn.BatchNorm(use_running_average=not train, momentum=0.9)(nn.Dense(16)(x))
        return nn.Dense(4)(nn.relu(x))


def haiku_normed(x, is_training):
    x = hk.BatchNorm(create_scale=True, create_offset=True, decay_rate=0.9)(hk.Linear(16)(x), is_training)
    return hk.Linear(4)(jax.nn.relu(x))


NORMED = {
    "nnx": lambda: from_nnx(NnxNormed),
    "linen": lambda: from_linen(LinenNormed(), EXAMPLE),
    "haiku": lambda: from_haiku(haiku_normed, EXAMPLE),
}
