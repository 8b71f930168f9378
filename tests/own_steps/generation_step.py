# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A generation step that somebody else wrote: one attention with a cache, which is a part of the state."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from ml_collections import ConfigDict

from jaxbench import OwnStep, StepWorkload

WORDS, WIDTH, PLACES, PROMPT = 64, 32, 64, 8


def generate(state, requests):
    weights, cache, position = state["weights"], state["cache"], state["position"]
    x = weights["words"][state["token"]] + weights["positions"][position]
    q, k, v = jnp.split(x @ weights["qkv"], 3, -1)
    cache = cache.at[:, :, position].set(jnp.stack([k, v], 1))
    scores = jnp.einsum("bd,bsd->bs", q, cache[:, 0]) / WIDTH**0.5
    scores = jnp.where(jnp.arange(PLACES) <= position, scores, -jnp.inf)
    x = x + jnp.einsum("bs,bsd->bd", jax.nn.softmax(scores), cache[:, 1]) @ weights["out"]
    logits = x @ weights["words"].T / requests["temperature"][:, None]
    after = jnp.where(position + 1 < PLACES, position + 1, PROMPT)
    new = {"cache": cache, "token": jnp.argmax(logits, -1).astype(jnp.int32), "position": after}
    return {**state, **new}, {"best": jnp.mean(jnp.max(logits, -1))}


def make(devices, batch):
    mesh = Mesh(np.array(devices), ("requests",))
    rows, whole = NamedSharding(mesh, PartitionSpec("requests")), NamedSharding(mesh, PartitionSpec())
    random = np.random.default_rng(0)
    sizes = {"words": (WORDS, WIDTH), "positions": (PLACES, WIDTH), "qkv": (WIDTH, 3 * WIDTH), "out": (WIDTH, WIDTH)}
    drawn = {name: random.normal(size=size).astype("float32") / WIDTH**0.5 for name, size in sizes.items()}
    temperature = jax.device_put(np.ones(batch, np.float32), rows)

    @jax.jit
    def copied(tree):
        return jax.tree.map(jnp.copy, tree)

    def init():
        weights = jax.device_put(drawn, whole)
        cache = jax.device_put(np.zeros((batch, 2, PLACES, WIDTH), np.float32), rows)
        token = jax.device_put((np.arange(batch) % WORDS).astype(np.int32), rows)
        return copied({"weights": weights, "cache": cache, "token": token, "position": jax.device_put(PROMPT, whole)})

    return OwnStep(
        step=generate, init=init, batch={"temperature": temperature}, parameters=lambda state: state["cache"]
    )


def get_config():
    return ConfigDict({"batch": 8})


def build(config):
    return StepWorkload(name="generation", make=make, batch=config.batch, unit="tokens")
