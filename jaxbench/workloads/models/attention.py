# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Causal attention over a whole sequence, or over a sequence split over the axis `context` (ring attention).

If it is split, keys and values travel around the ring of devices, and each device attends to those that it currently
has (Liu et al., "Ring Attention", arXiv:2310.01889), with the online softmax of Milakov and Gimelshein,
arXiv:1805.02867. In the order of `sharding_context` each device computes 3 products of chunks with its own keys and
2 with those of any other device: all have equal work, and little of it is masked. The backward pass sends keys and
values around again together with their gradients, so no device stores those of another.

`flash_attention` has the kernels that never write the scores to memory.

Axes: B examples, N heads, T query positions, S key positions, H head width; c: positions of a chunk.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

from jaxbench.core.schema import ATTENTIONS
from jaxbench.levers.remat import ATTENTION
from jaxbench.workloads import sharding_context
from jaxbench.workloads.models import flash_attention

KERNELS = ("auto", "plain", "flash")
Arrays = tuple[jax.Array, ...]


def causal(q_BNTH: jax.Array, k_BNTH: jax.Array, v_BNTH: jax.Array, kernel: str = "auto") -> jax.Array:
    """softmax(q k^T / sqrt(H)) v over this and earlier positions, (B, N, T, H). The softmax is float32.

    kernel: "plain" writes the scores to memory. "flash" does not, on a TPU or an NVIDIA GPU; on a CPU it is the same as
    plain. "auto" is flash for numbers of 16 bits if its kernels take the heads. A sequence that is split over devices
    always takes the ring. Raises Unsupported for sizes that the kernels do not take.
    """
    q_BNTH = q_BNTH * q_BNTH.shape[-1] ** -0.5
    axis = sharding_context.current().context
    if axis is None and (kernel == "flash" or (kernel == "auto" and flash_attention.takes(q_BNTH))):
        kernels = flash_attention.kernels(q_BNTH.shape, ATTENTION)
        return jax.lax.platform_dependent(q_BNTH, k_BNTH, v_BNTH, **kernels, cpu=_plain)
    if axis is None:
        return _plain(q_BNTH, k_BNTH, v_BNTH)
    with jax.named_scope(ATTENTIONS["ring"]):
        return _ring(axis)(q_BNTH, k_BNTH, v_BNTH)


@jax.named_scope(ATTENTIONS["plain"])
def _plain(q_BNTH: jax.Array, k_BNTH: jax.Array, v_BNTH: jax.Array) -> jax.Array:
    t = q_BNTH.shape[2]
    scores_BNTS = jnp.einsum("bnth,bnsh->bnts", q_BNTH, k_BNTH)
    causal_TS = jnp.tril(jnp.ones((t, t), bool))
    # -inf gives later positions a weight of exactly 0, and float32 keeps small weights in the sum of many.
    scores_BNTS = jnp.where(causal_TS, scores_BNTS.astype(jnp.float32), -jnp.inf)
    weights_BNTS = jax.nn.softmax(scores_BNTS).astype(q_BNTH.dtype)
    return checkpoint_name(jnp.einsum("bnts,bnsh->bnth", weights_BNTS, v_BNTH), ATTENTION)


def _ring(axis: str) -> Any:
    """The function (q, k, v) -> attention; each array has a device's two chunks of positions."""
    devices = jax.lax.axis_size(axis)

    @jax.custom_vjp
    def attend(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        return forward(q, k, v)[0]

    def forward(q: jax.Array, k: jax.Array, v: jax.Array) -> tuple[jax.Array, Arrays]:
        early, late = _Sum(_halves(q)[0]), _Sum(_halves(q)[1])
        travelling: Arrays = k, v
        for step in range(devices):
            for query, pair, masked in _products(step, q, travelling, axis):
                part = _Sum.of(pair, masked)
                early, late = early.plus(part, query == 0), late.plus(part, query == 1)
            if step < devices - 1:
                travelling = _send_on(travelling, axis)
        out = jnp.concatenate([early.mean(q.dtype), late.mean(q.dtype)], 2)
        weight = jnp.concatenate([early.log(), late.log()], 2)
        out, weight = checkpoint_name((out, weight), ATTENTION)
        return out, (q, k, v, out, weight)

    def backward(residuals: Arrays, gradient: jax.Array) -> Arrays:
        q, k, v, out, weight = residuals
        # Without this barrier the compiler would store all keys and values of the forward pass instead of resending.
        k, v, gradient = jax.lax.optimization_barrier((k, v, gradient))
        inner = jnp.sum(gradient.astype(jnp.float32) * out, -1, keepdims=True)
        saved = jnp.concatenate([weight, inner, gradient.astype(jnp.float32)], -1)
        dq = jnp.zeros_like(q, jnp.float32)
        travelling: Arrays = k, v
        d_travelling: Arrays = jnp.zeros_like(k, jnp.float32), jnp.zeros_like(v, jnp.float32)
        for step in range(devices):
            dq, d_travelling = _gradients(step, q, saved, travelling, axis, dq, d_travelling)
            # The gradients make one step more than the keys: it brings them back to the device that owns the keys.
            d_travelling = _send_on(d_travelling, axis)
            if step < devices - 1:
                travelling = _send_on(travelling, axis)
        return dq.astype(q.dtype), d_travelling[0].astype(k.dtype), d_travelling[1].astype(v.dtype)

    attend.defvjp(forward, backward)
    return attend


def _halves(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    early, late = jnp.split(x, 2, axis=2)
    return early, late


def _send_on(travelling: Arrays, axis: str) -> Arrays:
    devices = jax.lax.axis_size(axis)
    return jax.lax.ppermute(travelling, axis, [(i, (i + 1) % devices) for i in range(devices)])


def _pairs(step: int, axis: str) -> list[tuple[Any, Any, bool]]:
    """The products of chunks when a device has the keys and values of the device `step` before it.

    Each is (chunk of queries, chunk of keys, masked), with 0 for the early chunk and 1 for the late chunk. The late
    queries of device i always see the early keys of device j. If j < i, the early queries see these too, and no query
    sees the late keys. If j > i, the late queries see both chunks and the early queries see neither.
    """
    if step == 0:  # its own keys: a chunk needs the causal mask only against itself
        return [(0, 0, True), (1, 0, False), (1, 1, True)]
    from_later = (jax.lax.axis_index(axis) < step).astype(jnp.int32)  # j = i - step, modulo the devices
    return [(1, 0, False), (from_later, from_later, False)]


def _take_half(x: jax.Array, half: Any) -> jax.Array:
    early, late = _halves(x)
    if isinstance(half, int):
        return late if half else early
    # All devices run the same program, so a half that depends on the device is chosen at run time.
    return jnp.where(half == 1, late, early)


def _add_to_half(x: jax.Array, half: Any, addend: jax.Array) -> jax.Array:
    """`x` with `addend` added to one of its halves."""
    zeros = jnp.zeros_like(addend)
    if isinstance(half, int):
        return x + jnp.concatenate([zeros, addend] if half else [addend, zeros], 2)
    return x + jnp.concatenate([jnp.where(half == 0, addend, 0), jnp.where(half == 1, addend, 0)], 2)


def _scores(q: jax.Array, k: jax.Array, masked: bool) -> jax.Array:
    scores = jnp.einsum("bnth,bnsh->bnts", q, k).astype(jnp.float32)
    return jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -jnp.inf) if masked else scores


def _products(step: int, q: jax.Array, travelling: Arrays, axis: str) -> list[tuple[Any, Arrays, bool]]:
    k, v = travelling
    return [
        (query, (_take_half(q, query), _take_half(k, key), _take_half(v, key)), masked)
        for query, key, masked in _pairs(step, axis)
    ]


class _Sum:
    """An online softmax: weighted values and the sum of weights, both relative to the largest score so far."""

    def __init__(self, q: jax.Array):
        """An empty sum for queries `q`."""
        self.values = jnp.zeros_like(q, jnp.float32)
        self.weights = self.values[..., :1]
        self.largest = jnp.full_like(self.weights, -jnp.inf)

    @classmethod
    def of(cls, pair: Arrays, masked: bool) -> _Sum:
        q, k, v = pair
        part, scores = cls(q), _scores(q, k, masked)
        part.largest = jnp.max(scores, -1, keepdims=True)
        weights = jnp.exp(scores - part.largest)
        part.weights = jnp.sum(weights, -1, keepdims=True)
        part.values = jnp.einsum("bnts,bnsh->bnth", weights.astype(v.dtype), v).astype(jnp.float32)
        return part

    def plus(self, other: _Sum, when: Any) -> _Sum:
        """The combination of both sums, or `self` if `when` is False."""
        if when is False:
            return self
        total = _Sum(self.values)
        total.largest = jnp.maximum(self.largest, other.largest)
        # Both parts are rescaled to the same largest score. The scale of an empty sum is exp(-inf) = 0.
        self_scale, other_scale = jnp.exp(self.largest - total.largest), jnp.exp(other.largest - total.largest)
        total.weights = self.weights * self_scale + other.weights * other_scale
        total.values = self.values * self_scale + other.values * other_scale
        if when is not True:
            for name in ("largest", "weights", "values"):
                setattr(total, name, jnp.where(when, getattr(total, name), getattr(self, name)))
        return total

    def mean(self, dtype: Any) -> jax.Array:
        return (self.values / self.weights).astype(dtype)

    def log(self) -> jax.Array:
        """The log-sum-exp of all scores."""
        return self.largest + jnp.log(self.weights)


def _gradients(
    step: int, q: jax.Array, saved: jax.Array, travelling: Arrays, axis: str, dq: jax.Array, d_travelling: Arrays
) -> tuple[jax.Array, Arrays]:
    """Adds the gradients of one step's products. saved: for each query its log-sum-exp, <gradient, output>, gradient.

    With weights w and output o = sum of w v: dv = w do, ds = w (do v - <do, o>), dq = ds k, dk = ds q.
    """
    k, v = travelling
    dk, dv = d_travelling
    for query, key, masked in _pairs(step, axis):
        queries, query_saved = _take_half(q, query), _take_half(saved, query)
        keys, values = _take_half(k, key), _take_half(v, key)
        weights = jnp.exp(_scores(queries, keys, masked) - query_saved[..., :1])
        gradient = query_saved[..., 2:].astype(q.dtype)
        d_weights = jnp.einsum("bnth,bnsh->bnts", gradient, values).astype(jnp.float32) - query_saved[..., 1:2]
        d_scores = (weights * d_weights).astype(q.dtype)
        dv = _add_to_half(dv, key, jnp.einsum("bnts,bnth->bnsh", weights.astype(q.dtype), gradient).astype(jnp.float32))
        dk = _add_to_half(dk, key, jnp.einsum("bnts,bnth->bnsh", d_scores, queries).astype(jnp.float32))
        dq = _add_to_half(dq, query, jnp.einsum("bnts,bnsh->bnth", d_scores, keys).astype(jnp.float32))
    return dq, (dk, dv)
