# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""custom_vjp around a product with a parameter, and a clipped gradient (jax 21855, 19174)."""

import functools

import jax
import jax.numpy as jnp
import optax

from jaxbench.workloads import Field, TrainWorkload, classification, from_functions


@jax.custom_vjp
def dense(x, w):
    return x @ w


dense.defvjp(lambda x, w: (x @ w, (x, w)), lambda saved, g: (g @ saved[1].T, saved[0].T @ g))


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def clip_gradient(x, limit):
    return x


clip_gradient.defvjp(lambda x, limit: (x, None), lambda limit, _, g: (jnp.clip(g, -limit, limit),))


@jax.custom_jvp
def softplus(x):
    return jnp.logaddexp(x, 0.0)


softplus.defjvp(lambda p, t: (softplus(*p), jax.nn.sigmoid(p[0]) * t[0]))


def init(key):
    a, b = jax.random.split(key)
    return {"w": jax.random.normal(a, (16, 32)) / 4, "v": jax.random.normal(b, (32, 5)) / 6}


def apply(params, x):
    return dense(softplus(clip_gradient(dense(x, params["w"]), 1e-3)), params["v"])


def build(config):
    model = from_functions(init, apply)
    return TrainWorkload(
        name="c17",
        init=model.init,
        loss=classification(model, inputs="x", labels="y"),
        optimizer=optax.sgd(0.1),
        example={"x": Field((16,)), "y": Field((), jnp.int32, classes=5)},
    )
