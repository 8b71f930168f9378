# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A trainer in Flax Linen as people wrote one for years: an optax TrainState under pmap. It does not know jaxbench.

Run it: python examples/linen_pmap/trainer.py
"""

import functools

import jax
import numpy as np
import optax
from flax import jax_utils
from flax import linen as nn
from flax.training import common_utils
from flax.training.train_state import TrainState


class MLP(nn.Module):
    width: int = 128

    @nn.compact
    def __call__(self, x):
        for _ in range(2):
            x = nn.relu(nn.Dense(self.width)(x))
        return nn.Dense(10)(x)


def create_state() -> TrainState:
    model = MLP()
    params = model.init(jax.random.key(0), np.zeros((1, 64), np.float32))["params"]
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))
    return TrainState.create(apply_fn=model.apply, params=params, tx=tx)


def train_step(state: TrainState, batch):
    def loss_of(params):
        logits = state.apply_fn({"params": params}, batch["x"])
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["y"]).mean()

    loss, grads = jax.value_and_grad(loss_of)(state.params)
    grads = jax.lax.pmean(grads, "batch")
    return state.apply_gradients(grads=grads), {"loss": jax.lax.pmean(loss, "batch")}


@functools.cache
def p_train_step(devices):
    return jax.pmap(train_step, axis_name="batch", devices=list(devices), donate_argnums=0)


def examples(count: int):
    random = np.random.default_rng(0)
    y = random.integers(0, 10, count).astype(np.int32)
    return {"x": random.normal(size=(count, 64)).astype(np.float32) + y[:, None] / 10, "y": y}


def main():
    devices = tuple(jax.local_devices())
    state, batch = jax_utils.replicate(create_state(), devices), common_utils.shard(examples(32 * len(devices)))
    for number in range(20):
        state, metrics = p_train_step(devices)(state, batch)
        print(number, float(metrics["loss"][0]))


if __name__ == "__main__":
    main()
