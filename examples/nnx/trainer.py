# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A trainer in Flax NNX as people write one: a small ResNet-like classifier. It does not know jaxbench.

Run it: python examples/nnx/trainer.py
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx


class Block(nnx.Module):
    def __init__(self, features: int, rngs: nnx.Rngs):
        self.conv = nnx.Conv(features, features, (3, 3), rngs=rngs)
        self.norm = nnx.LayerNorm(features, rngs=rngs)

    def __call__(self, x):
        return x + nnx.relu(self.norm(self.conv(x)))


class Classifier(nnx.Module):
    def __init__(self, rngs: nnx.Rngs, features: int = 16, blocks: int = 2):
        self.stem = nnx.Conv(1, features, (3, 3), rngs=rngs)
        self.blocks = nnx.List([Block(features, rngs) for _ in range(blocks)])
        self.head = nnx.Linear(features, 10, rngs=rngs)

    def __call__(self, image):
        x = self.stem(image)
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean((1, 2)))


def create():
    model = Classifier(nnx.Rngs(0))
    return model, nnx.Optimizer(model, optax.adamw(1e-3), wrt=nnx.Param)


@nnx.jit
def train_step(model: Classifier, optimizer: nnx.Optimizer, batch):
    def loss_of(model):
        return optax.softmax_cross_entropy_with_integer_labels(model(batch["image"]), batch["label"]).mean()

    loss, grads = nnx.value_and_grad(loss_of)(model)
    optimizer.update(model, grads)
    return loss


def examples(count: int):
    random = np.random.default_rng(0)
    label = random.integers(0, 10, count).astype(np.int32)
    image = random.normal(size=(count, 16, 16, 1)).astype(np.float32) + label[:, None, None, None] / 10
    return {"image": image, "label": label}


def main():
    model, optimizer = create()
    batch = jax.tree.map(jnp.asarray, examples(64))
    for number in range(20):
        loss = train_step(model, optimizer, batch)
        print(number, float(loss))


if __name__ == "__main__":
    main()
