# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The rewritten convolutions are the plain one: their values, both gradients, and when they are taken."""

import jax
import jax.numpy as jnp
import pytest
from thin import thin

from jaxbench.workloads.models import image_layers


def arrays(side, inputs, outputs, kernel):
    x, w, y = (
        jax.random.normal(jax.random.PRNGKey(i), shape)
        for i, shape in enumerate(
            [(3, side, side, inputs), (kernel, kernel, inputs, outputs), (3, side, side, outputs)]
        )
    )
    return x, w, y


@pytest.mark.parametrize(
    ("side", "inputs", "outputs", "kernel", "case"),
    thin(
        [(8, 1, 6, 5, "columns"), (4, 5, 6, 3, "places"), (12, 1, 3, 3, "columns"), (4, 1, 2, 7, "columns")]
        + [(7, 3, 4, 5, "places")],
        2,
    ),
)
def test_values_and_gradients_are_those_of_the_plainconvolution(side, inputs, outputs, kernel, case):
    x, w, y = arrays(side, inputs, outputs, kernel)
    plain, plain_gradients = jax.vjp(image_layers._plain, x, w)
    mine, gradients = jax.vjp(lambda x, w: image_layers._rewritten(x, w, case), x, w)
    for found, expected in zip((mine, *gradients(y)), (plain, *plain_gradients(y)), strict=True):
        assert jnp.linalg.norm(found - expected) <= 1e-5 * jnp.linalg.norm(expected)


@pytest.mark.parametrize(
    ("side", "inputs", "outputs", "kernel", "strides", "dtype", "taken"),
    [
        (28, 1, 16, 5, 1, jnp.float32, "columns"),
        (28, 1, 16, 5, 2, jnp.float32, None),
        (28, 1, 16, 5, 1, jnp.bfloat16, None),
        (30, 1, 16, 5, 1, jnp.float32, None),  # no whole groups of columns
        (28, 3, 16, 5, 1, jnp.float32, None),
        (7, 256, 256, 3, 1, jnp.float32, "places"),
        (8, 256, 256, 3, 1, jnp.float32, None),
        (7, 256, 128, 3, 1, jnp.float32, None),
    ],
)
def test_what_is_rewritten(side, inputs, outputs, kernel, strides, dtype, taken, monkeypatch):
    seen = []
    monkeypatch.setattr(image_layers, "_rewritten", lambda x, w, case: seen.append(case) or image_layers._plain(x, w))
    x, w = (jnp.zeros(shape, dtype) for shape in [(1, side, side, inputs), (kernel, kernel, inputs, outputs)])
    edge = (kernel // 2, kernel // 2)
    numbers = {"dimension_numbers": ("NHWC", "HWIO", "NHWC")}
    jax.eval_shape(lambda: image_layers.convolution(x, w, (strides, strides), (edge, edge), **numbers))
    assert seen == ([taken] if taken else [])


@pytest.mark.parametrize(("inputs", "outputs", "stride"), [(3, 5, 1), (5, 3, 1), (5, 3, 2)])
def test_a_1x1_is_a_product_whose_narrower_factor_is_laid_out_anew(inputs, outputs, stride):
    x, w, _ = arrays(8, inputs, outputs, 1)
    strides, none = (stride, stride), ((0, 0), (0, 0))

    def mine(x, w):
        return image_layers._product(x, w, strides, none, precision=None)

    def plain(x, w):
        return jax.lax.conv_general_dilated(x, w, strides, none, dimension_numbers=("NHWC", "HWIO", "NHWC"))

    expected, plain_gradients = jax.vjp(plain, x, w)
    found, gradients = jax.vjp(mine, x, w)
    d_y = jax.random.normal(jax.random.PRNGKey(3), expected.shape)
    for one, other in zip((found, *gradients(d_y)), (expected, *plain_gradients(d_y)), strict=True):
        assert jnp.linalg.norm(one - other) <= 1e-5 * jnp.linalg.norm(other)
    products = [eqn.outvars[0].aval.shape for eqn in jax.make_jaxpr(gradients)(d_y).eqns if "dot" in eqn.primitive.name]
    assert (3, 5) in products and (5, 3) not in products
