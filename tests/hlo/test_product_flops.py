# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Products counted in a compiled program, as often as they run, and nothing else."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from jaxbench.hlo import product_flops
from jaxbench.hlo.module import parse

N = 24
X, W = jnp.ones((8, N)), jnp.ones((N, N))
EACH = 2.0 * 8 * N * N


def compiled(function, *arguments):
    return parse(jax.jit(function).lower(*arguments).compile().as_text())


def test_a_product_inside_a_fusion_is_two_flops_per_multiply_add():
    assert product_flops.count(compiled(lambda x, w: jnp.tanh(x @ w + 1), X, W)) == EACH


def test_removed_products_are_not_counted():
    assert product_flops.count(compiled(lambda x, w: (x @ w, x)[1] + 1, X, W)) == 0
    gradient = jax.grad(lambda w, x: jnp.sum(jnp.tanh(jax.lax.stop_gradient(x @ w) @ w)))
    assert (
        product_flops.count(compiled(gradient, W, X)) == 3 * EACH
    )  # two products forward, one back: the first is frozen


def test_a_loop_counts_as_often_as_it_runs():
    assert (
        product_flops.count(compiled(lambda x, w: jax.lax.fori_loop(0, 7, lambda i, x: jnp.sin(x @ w), x), X, W))
        == 7 * EACH
    )


def test_a_loop_of_unknown_length_is_not_guessed():
    def function(x, w):
        return jax.lax.while_loop(lambda x: x[0, 0] < 9, lambda x: jnp.sin(x @ w) + x, x)

    assert product_flops.count(compiled(function, X, W)) is None


def test_the_dearer_branch_counts():
    def function(go, x, w):
        return jax.lax.cond(go, lambda: x @ w @ w, lambda: x @ w)

    assert product_flops.count(compiled(function, True, X, W)) == pytest.approx(2 * EACH)


@pytest.mark.parametrize(("stride", "groups"), [(1, 1), (2, 1), (1, 2)])
def test_a_convolution(stride, groups):
    image, kernel = jnp.ones((2, 8, 8, 4)), jnp.ones((3, 3, 4 // groups, 6))

    def convolve(image, kernel):
        return jax.lax.conv_general_dilated(
            image,
            kernel,
            (stride, stride),
            "SAME",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=groups,
        )

    side = 8 // stride
    assert product_flops.count(compiled(convolve, image, kernel)) == 2.0 * 2 * side * side * 6 * 9 * 4 / groups


@pytest.mark.parametrize(
    "text",
    ['ENTRY %m () -> f32[] {\n  ROOT %g = f32[8]{0} custom-call(%a), custom_call_target="__cublas$gemm"\n}\n', ""],
)
def test_information_missing_in_the_text_is_unknown(text):
    assert product_flops.count(parse(text)) is None
