# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Smallest: a complex number made of two real parameters, times a Fourier transform. fsdp raises a TypeError (c07b)."""

import jax.numpy as jnp
import optax

from jaxbench.workloads import Field, TrainWorkload


def loss(params, state, batch, key):
    weight = params["re"] + 1j * params["im"]
    return jnp.mean(jnp.abs(jnp.fft.rfft(batch["x"]) * weight) ** 2), (state, {})


def build(config):
    return TrainWorkload(
        name="r_fft",
        init=lambda key: ({"re": jnp.ones(9), "im": jnp.ones(9)}, {}),
        loss=loss,
        optimizer=optax.sgd(0.1),
        example={"x": Field((16,))},
    )
