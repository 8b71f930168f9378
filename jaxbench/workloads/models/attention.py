# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Causal attention, of a whole sequence on one device or of one that is split over the axis `context`.

Split, keys and values travel round the ring of devices while each device attends to what it has at the moment (Liu et
al., "Ring Attention", arXiv:2310.01889), with the running softmax of Milakov and Gimelshein, arXiv:1805.02867. In the
order of `workloads.positions` each device makes 3 products of chunks when it has its own, and 2 with any other's: all
have the same work, and hardly any of it is masked away. The backward pass sends keys and values round once more, and
their gradients with them, so that no device ever holds another's.

Axes: B examples, N heads, T query positions, S key positions, H head width; c: positions of a chunk.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jaxbench.workloads import sharding_context

Arrays = tuple[jax.Array, ...]


def causal(q_BNTH: jax.Array, k_BNTH: jax.Array, v_BNTH: jax.Array) -> jax.Array:
    """softmax(q k^T / sqrt(H)) v over this and earlier positions, (B, N, T, H). The softmax is float32."""
    q_BNTH = q_BNTH * q_BNTH.shape[-1] ** -0.5
    axis = sharding_context.current().context
    if axis is not None:
        return _ring(axis)(q_BNTH, k_BNTH, v_BNTH)
    t = q_BNTH.shape[2]
    scores_BNTS = jnp.einsum("bnth,bnsh->bnts", q_BNTH, k_BNTH)
    causal_TS = jnp.tril(jnp.ones((t, t), bool))
    scores_BNTS = jnp.where(causal_TS, scores_BNTS.astype(jnp.float32), -jnp.inf)
    weights_BNTS = jax.nn.softmax(scores_BNTS).astype(q_BNTH.dtype)
    return jnp.einsum("bnts,bnsh->bnth", weights_BNTS, v_BNTH)


def _ring(axis: str) -> Any:
    """(q, k, v) -> attention, each with a device's two chunks of positions."""
    devices = jax.lax.axis_size(axis)

    @jax.custom_vjp
    def attend(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        return forward(q, k, v)[0]

    def forward(q: jax.Array, k: jax.Array, v: jax.Array) -> tuple[jax.Array, Arrays]:
        early, late = _Sum(_halves(q)[0]), _Sum(_halves(q)[1])
        travelling: Arrays = k, v
        for step in range(devices):
            for query, pair, masked in _products(step, q, travelling, axis):
                found = _Sum.of(pair, masked)
                early, late = early.plus(found, query == 0), late.plus(found, query == 1)
            if step < devices - 1:
                travelling = _on(travelling, axis)
        out = jnp.concatenate([early.mean(q.dtype), late.mean(q.dtype)], 2)
        weight = jnp.concatenate([early.log(), late.log()], 2)
        return out, (q, k, v, out, weight)

    def backward(kept: Arrays, gradient: jax.Array) -> Arrays:
        q, k, v, out, weight = kept
        # Else the compiler keeps what came in the forward pass, all of it, instead of having it sent again.
        k, v, gradient = jax.lax.optimization_barrier((k, v, gradient))
        inner = jnp.sum(gradient.astype(jnp.float32) * out, -1, keepdims=True)
        aside = jnp.concatenate([weight, inner, gradient.astype(jnp.float32)], -1)
        dq = jnp.zeros_like(q, jnp.float32)
        travelling: Arrays = k, v
        theirs: Arrays = jnp.zeros_like(k, jnp.float32), jnp.zeros_like(v, jnp.float32)
        for step in range(devices):
            dq, theirs = _gradients(step, q, aside, travelling, axis, dq, theirs)
            theirs = _on(theirs, axis)
            if step < devices - 1:
                travelling = _on(travelling, axis)
        return dq.astype(q.dtype), theirs[0].astype(k.dtype), theirs[1].astype(v.dtype)

    attend.defvjp(forward, backward)
    return attend


def _halves(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    early, late = jnp.split(x, 2, axis=2)
    return early, late


def _on(travelling: Arrays, axis: str) -> Arrays:
    devices = jax.lax.axis_size(axis)
    return jax.lax.ppermute(travelling, axis, [(i, (i + 1) % devices) for i in range(devices)])


def _pairs(step: int, axis: str) -> list[tuple[Any, Any, bool]]:
    """The products of chunks when a device has the keys and values of the one `step` before it: (chunk of queries,
    chunk of keys, masked), 0 the early one and 1 the late one.

    Of device j's keys the late queries of device i may see the early chunk, always. If j < i the early queries see
    that too and nothing sees the late chunk; if j > i the late queries see both and the early ones none.
    """
    if step == 0:
        return [(0, 0, True), (1, 0, False), (1, 1, True)]
    from_later = (jax.lax.axis_index(axis) < step).astype(jnp.int32)  # j = i - step, modulo the devices
    return [(1, 0, False), (from_later, from_later, False)]


def _take(x: jax.Array, half: Any) -> jax.Array:
    early, late = _halves(x)
    if isinstance(half, int):
        return late if half else early
    return jnp.where(half == 1, late, early)


def _put(x: jax.Array, half: Any, more: jax.Array) -> jax.Array:
    """`x` with `more` added to one of its halves."""
    nothing = jnp.zeros_like(more)
    if isinstance(half, int):
        return x + jnp.concatenate([nothing, more] if half else [more, nothing], 2)
    return x + jnp.concatenate([jnp.where(half == 0, more, 0), jnp.where(half == 1, more, 0)], 2)


def _scores(q: jax.Array, k: jax.Array, masked: bool) -> jax.Array:
    scores = jnp.einsum("bnth,bnsh->bnts", q, k).astype(jnp.float32)
    return jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -jnp.inf) if masked else scores


def _products(step: int, q: jax.Array, travelling: Arrays, axis: str) -> list[tuple[Any, Arrays, bool]]:
    k, v = travelling
    return [
        (query, (_take(q, query), _take(k, key), _take(v, key)), masked) for query, key, masked in _pairs(step, axis)
    ]


class _Sum:
    """A running softmax: weighted values, the sum of weights, and the largest score, by which both are scaled down."""

    def __init__(self, q: jax.Array):
        """Nothing yet, of queries `q`."""
        self.values = jnp.zeros_like(q, jnp.float32)
        self.weights = self.values[..., :1]
        self.most = jnp.full_like(self.weights, -jnp.inf)

    @classmethod
    def of(cls, pair: Arrays, masked: bool) -> _Sum:
        q, k, v = pair
        found, scores = cls(q), _scores(q, k, masked)
        found.most = jnp.max(scores, -1, keepdims=True)
        weights = jnp.exp(scores - found.most)
        found.weights = jnp.sum(weights, -1, keepdims=True)
        found.values = jnp.einsum("bnts,bnsh->bnth", weights.astype(v.dtype), v).astype(jnp.float32)
        return found

    def plus(self, other: _Sum, when: Any) -> _Sum:
        """Both together; `self` alone where `when` is False."""
        if when is False:
            return self
        total = _Sum(self.values)
        total.most = jnp.maximum(self.most, other.most)
        mine, theirs = jnp.exp(self.most - total.most), jnp.exp(other.most - total.most)
        total.weights = self.weights * mine + other.weights * theirs
        total.values = self.values * mine + other.values * theirs
        if when is not True:
            for name in ("most", "weights", "values"):
                setattr(total, name, jnp.where(when, getattr(total, name), getattr(self, name)))
        return total

    def mean(self, dtype: Any) -> jax.Array:
        return (self.values / self.weights).astype(dtype)

    def log(self) -> jax.Array:
        """The logarithm of the sum of exponentials of all scores."""
        return self.most + jnp.log(self.weights)


def _gradients(
    step: int, q: jax.Array, aside: jax.Array, travelling: Arrays, axis: str, dq: jax.Array, theirs: Arrays
) -> tuple[jax.Array, Arrays]:
    """Adds what the products of one step give. aside: per query the log of its sum, <gradient, output>, the gradient.

    With weights w and output o = sum of w v: dv = w do, ds = w (do v - <do, o>), dq = ds k, dk = ds q.
    """
    k, v = travelling
    dk, dv = theirs
    for query, key, masked in _pairs(step, axis):
        own, keys, values, kept = _take(q, query), _take(k, key), _take(v, key), _take(aside, query)
        weights = jnp.exp(_scores(own, keys, masked) - kept[..., :1])
        gradient = kept[..., 2:].astype(q.dtype)
        towards = jnp.einsum("bnth,bnsh->bnts", gradient, values).astype(jnp.float32) - kept[..., 1:2]
        scores = (weights * towards).astype(q.dtype)
        dv = _put(dv, key, jnp.einsum("bnts,bnth->bnsh", weights.astype(q.dtype), gradient).astype(jnp.float32))
        dk = _put(dk, key, jnp.einsum("bnts,bnth->bnsh", scores, own).astype(jnp.float32))
        dq = _put(dq, query, jnp.einsum("bnts,bnsh->bnth", scores, keys).astype(jnp.float32))
    return dq, (dk, dv)
