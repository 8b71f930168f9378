# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Attention over a sequence that is split: its parts by kernels and by blocks, the ring, and the exchange of heads."""

from __future__ import annotations

import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from jaxbench.errors import UserError
from jaxbench.workloads import sharding_context
from jaxbench.workloads.models import attention, flash, ring

KEY = jax.random.PRNGKey(0)


@pytest.fixture
def interpreted(monkeypatch):
    """Runs the kernels in Python, because there is neither a TPU nor a GPU."""
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as splash

    triton = flash.triton_kernel()
    monkeypatch.setattr(triton, "mha", partial(triton.mha, interpret=True))
    monkeypatch.setattr(splash, "make_splash_mha", partial(splash.make_splash_mha, interpret=True))


def drawn(positions, width=64, heads=2):
    return jax.random.normal(KEY, (3, 1, heads, positions, width)) * jnp.float32(0.3)


def of_blocks(masked):
    return flash.PartKernel(partial(ring._forward, masked), partial(ring._backward, masked))


def assert_same_part(part, masked, qkv):
    """Of a softmax over more keys than these: the logarithm and the result in the backward pass are others."""
    q, k, v = qkv
    out, log = part.forward(q, k, v)
    repeated = [jnp.repeat(x, q.shape[1] // k.shape[1], 1) for x in (k, v)]
    expected, expected_log = ring._block_forward(q, *repeated, masked)
    np.testing.assert_allclose(out, expected, rtol=2e-2, atol=3e-3)
    np.testing.assert_allclose(log, expected_log, rtol=2e-3, atol=2e-3)
    whole = jnp.cos(expected), expected_log + 0.5, jnp.sin(3 * expected)
    found = part.backward(q, k, v, *whole)
    dq, *dkv = ring._block_backward(masked, q, *repeated, *whole)
    right = dq, *(x.reshape(x.shape[0], k.shape[1], -1, *x.shape[2:]).sum(2) for x in dkv)
    for name, x, y in zip(("dq", "dk", "dv"), found, right, strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-2, atol=3e-3, err_msg=name)


def shared_and_further(qkv, shared=2, sets=4):
    """Two heads of keys for all heads of queries, and four times as many keys."""
    q, *kv = qkv
    further = ([jnp.roll(x[:, :shared], i, 1) * (1 + 0.2 * i) for i in range(sets)] for x in kv)
    return q, *(jnp.concatenate(each, 2) for each in further)


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("platform", ["tpu", "cuda"])
def test_a_kernel_gives_a_part_of_a_softmax(interpreted, platform, masked):
    qkv = drawn(128)
    assert_same_part(flash.part_kernels(qkv[0].shape, masked=masked)[platform], masked, qkv)


@pytest.mark.parametrize(
    ("heads", "masked", "sets"),
    [(8, True, 1), (8, False, 1), (8, False, 2), (8, False, 4), (2, False, 2)],
    ids=["masked", "one set of keys", "fewer sets than heads", "as many sets as heads", "as many heads"],
)
@pytest.mark.parametrize("platform", ["tpu", "cuda"])
def test_a_kernel_takes_heads_that_share_keys_and_more_keys_than_queries(interpreted, platform, heads, masked, sets):
    qkv = shared_and_further(drawn(128, heads=heads), sets=sets)
    assert_same_part(flash.part_kernels(qkv[0].shape, masked=masked)[platform], masked, qkv)


def test_no_kernel_of_a_gpu_has_repeated_keys():
    """Queries of heads that share keys are further positions of one head, and the keys of four devices one array."""
    q, k, v = shared_and_further(drawn(128, heads=8).astype(jnp.bfloat16))
    part = flash.part_kernels(q.shape, masked=False)["cuda"]
    out, log = jnp.zeros(q.shape, jnp.bfloat16), jnp.zeros(q.shape[:3])
    for run, arguments in ((part.forward, (q, k, v)), (part.backward, (q, k, v, out, log, out))):
        text = str(jax.jit(run).trace(*arguments).jaxpr)
        assert "bf16[1,512,2,64]" in text and "[1,8,512,64]" not in text and "[1,512,8,64]" not in text


@pytest.mark.parametrize("masked", [True, False])
def test_blocks_give_a_part_of_a_softmax_without_larger_arrays(monkeypatch, masked):
    monkeypatch.setattr(ring, "BLOCK", 8)
    qkv = drawn(32, 16)
    part = of_blocks(masked)
    assert_same_part(part, masked, qkv)
    out, log = part.forward(*qkv)
    for run, arguments in ((part.forward, qkv), (part.backward, (*qkv, out, log, out))):
        text = jax.jit(run).lower(*arguments).compile().as_text()
        shapes = {tuple(map(int, found.split(","))) for found in re.findall(r"f32\[([\d,]+)\]", text)}
        assert not any(shape.count(32) > 1 for shape in shapes), "no array has two axes of all positions"


@pytest.mark.parametrize("block", [8, 32, 128])
def test_blocks_take_heads_that_share_keys_and_more_keys_than_queries(monkeypatch, block):
    monkeypatch.setattr(ring, "BLOCK", block)
    assert_same_part(of_blocks(False), False, shared_and_further(drawn(32, 16, heads=8)))


@pytest.mark.parametrize(
    ("devices", "heads", "shared", "size"),
    [(8, 32, 8, 8), (8, 32, 32, 2), (16, 32, 8, 16), (32, 32, 8, 8), (6, 32, 8, 2), (3, 8, 8, 1), (4, 12, 12, 4)],
)
def test_a_device_passes_on_at_most_twice_as_many_keys_as_it_has_queries(devices, heads, shared, size):
    assert ring.group_size(devices, heads, shared) == size


def split_attention(devices, kernel="auto", **context):
    """(q, k, v) of whole sequences -> attention by this number of devices, in the order of the sequence."""
    mesh = jax.make_mesh((devices,), ("context",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = P(None, None, "context")

    def attend(q, k, v):
        with sharding_context.over(context="context", **context):
            return attention.causal(q, k, v, kernel)

    def own(x):
        with sharding_context.over(context="context", **context):
            return sharding_context.own_positions(x, 2)

    cut = jax.shard_map(own, mesh=mesh, in_specs=P(), out_specs=spec)
    run = jax.shard_map(attend, mesh=mesh, in_specs=spec, out_specs=spec)

    def whole(q, k, v):
        place = jnp.broadcast_to(jnp.arange(q.shape[2])[None, None, :, None], (1, 1, q.shape[2], 1))
        order = jnp.argsort(cut(place).ravel())
        return jnp.take(run(cut(q), cut(k), cut(v)), order, 2)

    return whole


def gradients(attend, qkv):
    out, pulled = jax.vjp(attend, *qkv)
    return out, *pulled(jnp.cos(out))


@pytest.mark.parametrize(
    ("devices", "context"), [(2, {}), (3, {}), (6, {}), (8, {}), (2, {"ulysses": True}), (4, {"ulysses": True})]
)
def test_a_split_sequence_has_the_attention_and_the_gradients_of_a_whole_one(devices, context):
    qkv = drawn(48, 16, heads=4)
    expected = gradients(attention.causal, qkv)
    found = jax.jit(partial(gradients, split_attention(devices, **context)))(qkv)
    for name, x, y in zip(("out", "dq", "dk", "dv"), found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize(
    ("devices", "context"), [(2, {}), (4, {}), (8, {}), (2, {"ulysses": True}), (4, {"ulysses": True})]
)
def test_heads_of_keys_may_be_shared_by_queries(devices, context):
    """Two heads of keys for eight of queries. An exchange among four devices needs four: each of them twice."""
    q, k, v = drawn(32, 16, heads=8)
    qkv = q, k[:, :2], v[:, :2]
    expected = gradients(lambda q, k, v: attention.causal(q, jnp.repeat(k, 4, 1), jnp.repeat(v, 4, 1)), qkv)
    found = jax.jit(partial(gradients, split_attention(devices, **context)))(qkv)
    for name, x, y in zip(("out", "dq", "dk", "dv"), found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5, err_msg=name)


def test_heads_that_do_not_divide_cannot_be_exchanged():
    with pytest.raises(UserError, match="2 heads cannot be exchanged over 4 devices .*: use --config.lever.context"):
        split_attention(4, ulysses=True)(*drawn(32, 16))


@pytest.mark.parametrize("platform", ["tpu", "cuda"])
def test_a_ring_of_flash_kernels_is_traced_where_arrays_have_types_of_a_mesh(monkeypatch, platform):
    monkeypatch.setattr(
        ring, "_part", lambda shape, masked, kernels: flash.part_kernels(shape, masked=masked)[platform]
    )
    q, k, v = drawn(1024, heads=4).astype(jnp.bfloat16)
    traced = jax.jit(partial(gradients, split_attention(4))).trace((q, k[:, :2], v[:, :2]))
    assert "pallas_call" in str(traced.jaxpr)
    heads = [x.shape[1] for x in jax.tree.leaves(traced.out_info)]
    assert heads == [4, 4, 2, 2]
