# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A perceptron with an optional loss of known size in its step: the experiment of `benchmarks.known_losses`.

`config.model.loss` chooses the loss:

  none:    nothing.
  again:   every gradient is sent four more times, multiplied by itself.
  late:    the second device waits for `config.model.wait_s` at the end of its gradients, with or without communication.
  heard:   each device waits that long if it receives from another device, so in the whole step only.
  fixed:   each device waits that long in each step, for any per-device batch.
  memory:  elementwise passes over copies of all examples, which do not fit into any cache.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from ml_collections import ConfigDict

from jaxbench.workloads import Field, TrainWorkload, sharding_context
from jaxbench.workloads.flops import dense, training

WIDTH, DEPTH = 512, 4
COPIES, PASSES = 128, 8  # of an example: 128 MB for the batch of 512
TIMES = 4  # how many more times gradients are sent


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.batch, config.accelerator_batch = 512, 0
    config.model = ConfigDict({"loss": "none", "wait_s": 0.01})
    return config


def build(config: ConfigDict) -> TrainWorkload:
    before = {"memory": passes}
    after = {"again": sent_again, **{name: partial(waited, name, config.model.wait_s) for name in WAITS}}
    return TrainWorkload(
        name="known_losses_model",
        init=init,
        loss=partial(loss, before.get(config.model.loss), after.get(config.model.loss)),
        optimizer=optax.sgd(1e-3),
        example={"x": Field((WIDTH,))},
        flops_per_example=training([dense(WIDTH, WIDTH)] * DEPTH),
    )


def init(key: jax.Array) -> tuple[Any, Any]:
    drawn = jax.random.normal(key, (DEPTH, WIDTH, WIDTH)) / WIDTH**0.5
    return {f"layer{i}": drawn[i] for i in range(DEPTH)}, {}


def loss(
    before: Callable[[Any], Any] | None, after: Callable[[Any], Any] | None, params: Any, state: Any, batch: Any, _: Any
) -> Any:
    """before: a function of the examples before the first layer. after: a function of the gradients when all are
    computed and none is sent."""
    x_BF = jax.lax.stop_gradient(batch["x"])
    x_BF = before(x_BF) if before else x_BF
    params = of_gradients(after, params) if after else params
    for name in sorted(params):
        x_BF = jnp.tanh(x_BF @ params[name])
    return jnp.mean(jnp.square(x_BF - batch["x"])), (state, {})


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def of_gradients(after: Callable[[Any], Any], params: Any) -> Any:
    return params


of_gradients.defvjp(lambda after, params: (params, None), lambda after, _, grads: (after(grads),))


def sent_again(grads: Any) -> Any:
    axis = sharding_context.current().axis

    def again(grad: jax.Array) -> jax.Array:
        # Other numbers each time: XLA would merge equal sums.
        sums = [jax.lax.pmean(factor * grad * grad, axis)[0, 0] for factor in range(1, 1 + TIMES)]
        return grad + 0 * sum(sums)

    return jax.tree.map(again, grads) if axis else grads


def _second() -> jax.Array:
    axis = sharding_context.current().axis
    return jax.lax.axis_index(axis) == 1 if axis else jnp.asarray(False)


def _heard() -> jax.Array:
    axis, one = sharding_context.current().axis, jax.lax.optimization_barrier(jnp.ones(()))
    return jax.lax.psum(one, axis) > 1 if axis else jnp.asarray(False)


WAITS: dict[str, Callable[[], jax.Array]] = {"late": _second, "heard": _heard, "fixed": lambda: jnp.asarray(True)}


def waited(when: str, wait_s: float, grads: Any) -> Any:
    """The gradients after a wait that begins when the last gradient, the first layer's, is computed."""

    def sleep(asked: np.ndarray, _: np.ndarray) -> np.ndarray:
        if asked:
            time.sleep(wait_s)
        return np.float32(0)

    shape = jax.ShapeDtypeStruct((), jnp.float32)
    zero = jax.pure_callback(sleep, shape, WAITS[when](), grads["layer0"][0, 0], vmap_method="sequential")
    return jax.tree.map(lambda g: g + zero, grads)


def passes(x_BF: jax.Array) -> jax.Array:
    """x_BF after passes over COPIES of it, each from and to memory."""

    def one(_: int, y_BCF: jax.Array) -> jax.Array:
        return jax.lax.optimization_barrier(0.999 * y_BCF + 0.001)

    y_BCF = jnp.broadcast_to(x_BF[:, None, :], (len(x_BF), COPIES, WIDTH))
    return jnp.mean(jax.lax.fori_loop(0, PASSES, one, y_BCF), axis=1)
