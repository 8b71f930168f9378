# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Attention by JAX's own kernels, interpreted here, for heads and positions that are no multiple of a block."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend import core
from jax.sharding import PartitionSpec as P
from ml_collections import ConfigDict
from thin import thin

from jaxbench.errors import Unsupported, UserError
from jaxbench.workloads.models import attention, gpt

KEY = jax.random.PRNGKey(0)


@pytest.fixture
def interpreted(monkeypatch):
    """Runs the kernels in Python, because there is neither a TPU nor a GPU."""
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as splash

    triton = attention.triton_kernel()
    monkeypatch.setattr(triton, "mha", partial(triton.mha, interpret=True))
    monkeypatch.setattr(splash, "make_splash_mha", partial(splash.make_splash_mha, interpret=True))


def drawn(positions: int, width: int) -> jax.Array:
    return jax.random.normal(KEY, (3, 1, 2, positions, width))


def gradients(attend, q, k, v):
    """The result of attention and its gradients."""
    out, pulled = jax.vjp(lambda q, k, v: attend(q * q.shape[-1] ** -0.5, k, v), q, k, v)
    return out, *pulled(jnp.cos(out))


@pytest.mark.parametrize("positions", thin([200, 128], 1))
@pytest.mark.parametrize("width", thin([96, 64, 8, 128, 136], 2))
@pytest.mark.parametrize("platform", ["tpu", "cuda"])
def test_the_kernels_compute_plain_attention(interpreted, platform, width, positions):
    qkv = drawn(positions, width)
    expected = gradients(attention._plain, *qkv)
    found = gradients(attention.flash_kernels(qkv[0].shape)[platform], *qkv)
    for name, x, y in zip(("out", "dq", "dk", "dv"), found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-2, atol=3e-3, err_msg=name)


@pytest.mark.parametrize("platform", ["tpu", "cuda"])
def test_they_are_traced_where_arrays_have_types_of_a_mesh(platform):
    """As in tensor parallelism and in a pipeline, which check which arrays differ between devices."""
    mesh = jax.make_mesh((2,), ("tensor",), axis_types=(jax.sharding.AxisType.Auto,))
    heads = P(None, "tensor")

    def attend(q, k, v):
        return attention.flash_kernels(q.shape)[platform](q, k, v)

    split = jax.shard_map(attend, mesh=mesh, in_specs=heads, out_specs=heads)
    traced = jax.jit(partial(gradients, split)).trace(*drawn(128, 64))
    assert "pallas_call" in str(traced.jaxpr)
    assert [x.shape for x in jax.tree.leaves(traced.out_info)] == [(1, 2, 128, 64)] * 4


@pytest.mark.parametrize("platform", ["tpu", "cuda"])
def test_where_the_compiler_places_arrays_a_device_has_its_own_examples(platform):
    """The partitioner does not look into a kernel: it would gather the batch on every device."""
    mesh = jax.make_mesh((2,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))

    def shapes(jaxpr):
        """Of the first argument of each kernel, also of those inside other equations."""
        for eqn in jaxpr.eqns:
            if eqn.primitive.name == "pallas_call":
                yield max((x.aval.shape for x in eqn.invars), key=len)
            for inner in core.jaxprs_in_params(eqn.params) if eqn.primitive.name != "pallas_call" else ():
                yield from shapes(inner)

    def examples(count):
        qkv = [jnp.zeros((count, 2, 128, 64), jnp.bfloat16)] * 3
        with jax.set_mesh(mesh):
            traced = jax.jit(attention.flash_kernels(qkv[0].shape)[platform]).trace(*qkv)
        return {shape[0] for shape in shapes(traced.jaxpr.jaxpr)}

    assert examples(4) == {2} and examples(3) == {3}, "three examples do not divide over two devices"


@pytest.mark.parametrize("platform", ["tpu", "cuda"])
@pytest.mark.parametrize(("kept", "kernels"), [("attention_output", 2), ("query_proj", 3)])
def test_a_kept_result_is_not_computed_again(platform, kept, kernels):
    """A forward and a backward kernel, and with recomputation another forward one."""
    qkv = drawn(128, 64)
    attend = attention.flash_kernels(qkv[0].shape, "attention_output")[platform]
    policy = jax.checkpoint_policies.save_only_these_names(kept)

    def loss(q, k, v):
        return jnp.sum(jnp.sin(jax.checkpoint(attend, policy=policy)(q, k, v)))

    jaxpr = str(jax.make_jaxpr(jax.grad(loss, argnums=(0, 1, 2)))(*qkv))
    assert jaxpr.count("pallas_call[") - (platform == "cuda") == kernels  # a GPU's backward pass has two


def test_auto_is_flash_for_sixteen_bits():
    q = jnp.zeros((1, 1, 8, 64), jnp.bfloat16)
    assert attention.flash_takes(q)
    assert not attention.flash_takes(q.astype(jnp.float32))
    assert not attention.flash_takes(jnp.zeros((1, 1, 8, 512), jnp.bfloat16))


def test_unknown_kernels_and_wide_heads_are_refused():
    with pytest.raises(UserError, match=r"attention=flsh is unknown: did you mean 'flash'"):
        gpt.kernel(ConfigDict({"attention": "flsh"}))
    with pytest.raises(Unsupported, match=r"heads of at most 256 numbers, and this model's have 264: use plain"):
        attention.flash_kernels((1, 4, 8, 264))


def test_every_kernel_is_plain_attention_on_a_cpu():
    q, k, v = drawn(128, 128).astype(jnp.bfloat16)
    auto, plain, flash = (attention.causal(q, k, v, kernel) for kernel in attention.KERNELS)
    np.testing.assert_array_equal(np.float32(plain), np.float32(flash))
    np.testing.assert_array_equal(np.float32(plain), np.float32(auto))
