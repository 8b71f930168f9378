# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Llama's shapes for gpt: a gated perceptron, shared keys and values, a separate head width."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ml_collections import ConfigDict
from thin import thin
from workload_cases import KEY, experiment_workload

from jaxbench import parallel
from jaxbench.errors import Unsupported, UserError
from jaxbench.measure import expected_communication
from jaxbench.measure.compile_report import compile_step
from jaxbench.workloads.models import attention, attention_kernel, gpt

LLAMA = {
    "model.layers": 1, "model.width": 16, "model.heads": 4, "model.kv_heads": 2, "model.head_width": 8,
    "model.hidden": 24, "model.gated": 1, "model.rms": 1, "model.vocab": 32, "model.context": 8,
}  # fmt: skip


def config(**changes: object) -> ConfigDict:
    return ConfigDict({"preset": "tiny", **{name.removeprefix("model."): value for name, value in changes.items()}})


def test_the_flops_and_parameters_of_each_product():
    t, d, heads, kv, hidden, vocab = 8, 16, 4 * 8, 2 * 8, 24, 32
    products = [t * d * (heads + 2 * kv), t * t * heads, t * heads * d, 3 * t * d * hidden, t * d * vocab]
    assert gpt.layer_flops(config(**LLAMA)) == [2 * product for product in products]
    params, _ = experiment_workload("gpt", **LLAMA).init(KEY)
    kernels = [leaf.size for path, leaf in jax.tree.leaves_with_path(params) if "kernel" in jax.tree_util.keystr(path)]
    assert not any("bias" in jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path(params))
    assert sum(kernels) == d * (heads + 2 * kv) + heads * d + 3 * d * hidden


def test_heads_that_share_keys_are_as_if_each_had_a_copy():
    shape = gpt.shape(config(**LLAMA))
    from flax import nnx

    shared = gpt.Attention(shape, "plain", nnx.Rngs(0))
    own = gpt.Attention(gpt.shape(config(**{**LLAMA, "model.kv_heads": 4})), "plain", nnx.Rngs(1))
    kernel = shared.grouped.kernel[...]  # (width, heads of keys, their two queries, keys and values, head width)
    q, k, v = kernel[:, :, :2].reshape(16, 4, 8), *(jnp.repeat(kernel[:, :, at], 2, axis=1) for at in (2, 3))
    own.qkv.kernel.set_value(jnp.stack([q, k, v], axis=1))
    own.out.kernel.set_value(shared.out.kernel[...])
    x = jax.random.normal(KEY, (2, 8, 16))
    np.testing.assert_allclose(shared(x), own(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("sequence", thin([True, False], 1))
def test_its_products_split_over_tensor(sequence):
    workload = experiment_workload("gpt", **LLAMA)
    program = parallel.load("hybrid").build(workload, jax.devices()[:2], sizes={"tensor": 2}, sequence=sequence)
    check = expected_communication.judge(workload, program, compile_step(workload, program, 4).report, 4)
    assert check.ok, check


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kv_heads": 3, "heads": 4}, "kv_heads=3 does not divide the 4 heads: use 2"),
        ({"gated": 2}, "gated=2 is not 0 or 1"),
        ({"rms": 2}, "rms=2 is not 0 or 1"),
        ({"gated": 1, "experts": 4}, "the model has experts"),
    ],
)
def test_shapes_that_do_not_fit(changes, message):
    with pytest.raises(UserError, match=message):
        gpt.shape(config(**changes))


def test_the_kernel_is_plain_attention_on_a_cpu_and_names_what_it_does_not_take():
    with pytest.raises(UserError, match=r"attention=flsh is unknown: did you mean 'flash'"):
        gpt.kernel(config(attention="flsh"))
    with pytest.raises(Unsupported, match=r"multiples of 128, and this model has 8 and 8: use plain"):
        attention_kernel.causal((1, 4, 8, 8))
    q, k, v = jax.random.normal(KEY, (3, 1, 1, 128, 128))
    plain, flash = (attention.causal(q, k, v, kernel) for kernel in attention.KERNELS)
    np.testing.assert_array_equal(plain, flash)


def test_the_tpus_kernel_computes_the_same():
    """Interpreted, because there is no TPU."""
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as splash

    q, k, v = jax.random.normal(KEY, (3, 1, 2, 256, 128))
    made = splash.make_splash_mha

    def interpreted(*args, **settings):
        return made(*args, **settings, interpret=True)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(splash, "make_splash_mha", interpreted)
        actual = attention_kernel.causal(q.shape)["tpu"](q * 128**-0.5, k, v)
    np.testing.assert_allclose(actual, attention.causal(q, k, v), rtol=2e-2, atol=2e-3)
