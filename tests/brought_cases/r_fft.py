# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Smallest: a complex number made of two real parameters, times a Fourier transform. fsdp raises a TypeError (c07b)."""

import jax.numpy as jnp
import numpy as np
import optax

from jaxbench.workloads import Field, TrainWorkload


def loss(params, state, batch, key):
    weight = params["re"] + 1j * params["im"]
    y = jnp.mean(jnp.abs(jnp.fft.rfft(batch["x"]) * weight) ** 2)
    return y, (state, {"accuracy": jnp.zeros(())})


def build(config):
    x = np.random.default_rng(0).normal(size=(160, 16)).astype(np.float32)
    return TrainWorkload(
        name="r_fft",
        init=lambda key: ({"re": jnp.ones(9), "im": jnp.ones(9)}, {}),
        loss=loss,
        optimizer=optax.sgd(0.1),
        example={"x": Field((16,))},
        data={"x": x},
    )
