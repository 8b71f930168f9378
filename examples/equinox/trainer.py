# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A trainer in the style of Equinox' guide: a model as a pytree, filter_jit, optax. It does not know jaxbench.

Run it: python examples/equinox/trainer.py
"""

import equinox as eqx
import jax
import numpy as np
import optax

optimizer = optax.adam(1e-3)


def create():
    model = eqx.nn.MLP(64, 10, 128, 2, key=jax.random.key(0))
    return model, optimizer.init(eqx.filter(model, eqx.is_array))


@eqx.filter_jit
def make_step(model, opt_state, x, y):
    def loss_of(model):
        return optax.softmax_cross_entropy_with_integer_labels(jax.vmap(model)(x), y).mean()

    loss, grads = eqx.filter_value_and_grad(loss_of)(model)
    updates, opt_state = optimizer.update(grads, opt_state, model)
    return loss, eqx.apply_updates(model, updates), opt_state


def examples(count: int):
    random = np.random.default_rng(0)
    y = random.integers(0, 10, count).astype(np.int32)
    return random.normal(size=(count, 64)).astype(np.float32) + y[:, None] / 10, y


def main():
    model, opt_state = create()
    x, y = examples(64)
    for number in range(20):
        loss, model, opt_state = make_step(model, opt_state, x, y)
        print(number, float(loss))


if __name__ == "__main__":
    main()
