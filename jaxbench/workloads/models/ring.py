# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Causal attention over a sequence that is split over the axis `context`: by a ring, or by an exchange of heads.

`ring`: keys and values travel around the ring of devices, and each device attends to those that it currently has (Liu
et al., "Ring Attention", arXiv:2310.01889). In the order of `sharding_context` each device computes 3 products of
chunks with its own keys and 2 with those of any other device: all have equal work, and little of it is masked. Each is
an attention kernel that also returns the logarithm of its sum of weights (`flash.part_kernels`). With these logarithms
the results are added up in float32. Where there is no such kernel, a product is computed by blocks. So no array with
two axes of positions is larger than a block.

`ulysses`: each device gives up its positions of most heads for all positions of its own heads, attends as usual, and
the results go back (Jacobs et al., "DeepSpeed Ulysses", arXiv:2309.14509). With as many heads of keys as of queries it
sends fewer bytes than a ring of three devices or more, but nothing is computed meanwhile, and there cannot be more
devices than heads.

If K heads of keys and values serve N heads of queries, only the K heads are sent. Kernels take as many heads of keys as
of queries, so each device repeats them before a kernel, and sums the gradients of a group after it.

Axes: B examples, N heads of queries, K heads of keys and values, T query positions, S key positions, H head width;
c: positions of a chunk.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

from jaxbench.errors import Unsupported
from jaxbench.hlo.operations import ATTENTIONS
from jaxbench.levers import ATTENTION
from jaxbench.workloads.models.flash import Attend, PartKernel, part_kernels, parts_take, untyped

Arrays = tuple[jax.Array, ...]
Merge = Callable[[Arrays, Arrays], Arrays]
Half = int | jax.Array  # 0: the early chunk of positions, 1: the late one; an array if it depends on the device
BLOCK = 512  # the most positions of a block of scores, where a product is computed without a kernel


class Pair(NamedTuple):
    """A product of a chunk of queries and a chunk of keys. masked: no query sees a later key."""

    query: Half
    key: Half
    masked: bool = False


def for_each_query_head(x: jax.Array, heads: int) -> jax.Array:
    """(B, N, ...): the keys or values (B, K, ...) that each of N `heads` of queries uses."""
    return x if x.shape[1] == heads else jnp.repeat(x, heads // x.shape[1], axis=1)


def exchanged(heads: int, shared: int, devices: int) -> int:
    """The heads of keys that `ulysses` sends: `shared`, or the least multiple of it that divides over the devices."""
    multiples = range(shared, heads + 1, shared)
    return next((sent for sent in multiples if sent % devices == 0 and heads % sent == 0), heads)


def ulysses(axis: str, attend: Attend, q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """`attend` on all positions of this device's share of the heads. q: (B, N, T of this device, H); k, v: (B, K, ...).

    Raises Unsupported if the heads do not divide over the devices."""
    devices, heads = jax.lax.axis_size(axis), q.shape[1]
    if heads % devices:
        raise Unsupported(
            f"{heads} heads cannot be exchanged over {devices} devices of the axis context: use "
            "--config.lever.context_attention=ring, or fewer devices."
        )
    with jax.named_scope(ATTENTIONS["ulysses"]):
        sent = exchanged(heads, k.shape[1], devices)
        parts = q, for_each_query_head(k, sent), for_each_query_head(v, sent)
        outward = [jax.lax.all_to_all(x, axis, split_axis=1, concat_axis=2, tiled=True) for x in parts]
        return jax.lax.all_to_all(attend(*outward), axis, split_axis=2, concat_axis=1, tiled=True)


def ring(axis: str, *, kernels: bool) -> Attend:
    """The function (q, k, v) -> attention (B, N, T, H). Each array has a device's two chunks of positions, q is scaled,
    and k and v are (B, K, T, H).

    kernels: use the device's attention kernels, if they take the chunks."""
    devices = jax.lax.axis_size(axis)

    # JAX's own backward pass would store the keys and values of every device, which is the whole sequence.
    @jax.custom_vjp
    def attend(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        return forward(q, k, v)[0]

    def forward(q: jax.Array, k: jax.Array, v: jax.Array) -> tuple[jax.Array, Arrays]:
        part = _parts(q, kernels)

        def attended(pair: Pair, keys: Arrays) -> Arrays:
            of_key = [for_each_query_head(_take_half(x, pair.key), q.shape[1]) for x in keys]
            return part[pair.masked].forward(_take_half(q, pair.query), *of_key)

        travelling: Arrays = k, v
        own = [(pair.query, attended(pair, travelling)) for pair in _pairs(0, axis)]
        sums = _stacked(_either, own)
        for step in range(1, devices):
            travelling = _send_on(travelling, axis)
            for pair in _pairs(step, axis):
                sums = _updated(_either, sums, pair.query, attended(pair, travelling))
        out, log = checkpoint_name((_joined_halves(sums[0]).astype(q.dtype), _joined_halves(sums[1])), ATTENTION)
        return out, (q, k, v, out, log)

    def backward(residuals: Arrays, gradient: jax.Array) -> Arrays:
        q, k, v, out, log = residuals
        # Without this barrier the compiler would store all keys and values of the forward pass instead of resending.
        k, v, gradient = jax.lax.optimization_barrier((k, v, gradient))
        part = _parts(q, kernels)

        def pulled(pair: Pair, keys: Arrays) -> tuple[jax.Array, Arrays]:
            """The gradients of the queries, and of the keys and values."""
            of_query = [_take_half(x, pair.query) for x in (q, out, log, gradient)]
            of_key = [for_each_query_head(_take_half(x, pair.key), q.shape[1]) for x in keys]
            dq, dk, dv = part[pair.masked].backward(of_query[0], *of_key, *of_query[1:])
            return dq, (_summed(dk, k.shape[1]), _summed(dv, k.shape[1]))

        # Keys and values travel again, now with their gradients, so no device stores those of another.
        travelling: Arrays = k, v
        own = [(pair, pulled(pair, travelling)) for pair in _pairs(0, axis)]
        # Sums of 2 devices + 1 products in float32, which 16 bits would round.
        dq = _stacked(_sum, [(pair.query, (of_queries,)) for pair, (of_queries, _) in own])
        dkv = _stacked(_sum, [(pair.key, of_keys) for pair, (_, of_keys) in own])
        for step in range(1, devices):
            travelling, dkv = _send_on(travelling, axis), _send_on(dkv, axis)
            for pair in _pairs(step, axis):
                of_queries, of_keys = pulled(pair, travelling)
                dq, dkv = _updated(_sum, dq, pair.query, (of_queries,)), _updated(_sum, dkv, pair.key, of_keys)
        dkv = _send_on(dkv, axis)  # one step more than the keys: it brings them back to the device that owns the keys
        return tuple(_joined_halves(halves).astype(x.dtype) for halves, x in zip((*dq, *dkv), (q, k, v), strict=True))

    attend.defvjp(forward, backward)
    return attend


def _parts(q: jax.Array, kernels: bool) -> dict[bool, PartKernel]:
    """The products of chunks, by whether they are masked. q: a device's two chunks of queries."""
    shape = (*q.shape[:2], q.shape[2] // 2, q.shape[3])
    return {masked: _part(shape, masked, kernels and parts_take(shape)) for masked in (False, True)}


def _part(shape: tuple[int, ...], masked: bool, kernels: bool) -> PartKernel:
    """The kernels of one part of the ring: fused where a platform has them."""
    plain = PartKernel(untyped(partial(_forward, masked)), untyped(partial(_backward, masked)))
    if not kernels:
        return plain
    by_platform = part_kernels(shape, masked=masked)

    # Chosen when it is compiled and not by the devices here: forecasts compile for absent hardware.
    def forward(*arrays: jax.Array) -> tuple[jax.Array, jax.Array]:
        on = {name: kernel.forward for name, kernel in by_platform.items()}
        return jax.lax.platform_dependent(*arrays, cpu=plain.forward, **on)

    def backward(*arrays: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        on = {name: kernel.backward for name, kernel in by_platform.items()}
        return jax.lax.platform_dependent(*arrays, cpu=plain.backward, **on)

    return PartKernel(forward, backward)


def _summed(x: jax.Array, shared: int) -> jax.Array:
    """(B, K, ...): the sum over the heads of queries that share a head of keys. x: (B, N, ...)."""
    return x if x.shape[1] == shared else x.reshape(x.shape[0], shared, -1, *x.shape[2:]).sum(2)


def _send_on(travelling: Arrays, axis: str) -> Arrays:
    devices = jax.lax.axis_size(axis)
    return jax.lax.ppermute(travelling, axis, [(i, (i + 1) % devices) for i in range(devices)])


def _pairs(step: int, axis: str) -> list[Pair]:
    """The products of chunks when a device has the keys and values of the device `step` before it.

    The late queries of device i always see the early keys of device j. If j < i, the early queries see these too, and
    no query sees the late keys. If j > i, the late queries see both chunks and the early queries see neither.
    """
    if step == 0:  # its own keys: a chunk needs the causal mask only against itself
        return [Pair(0, 0, masked=True), Pair(1, 0), Pair(1, 1, masked=True)]
    from_later = (jax.lax.axis_index(axis) < step).astype(jnp.int32)  # j = i - step, modulo the devices
    return [Pair(1, 0), Pair(from_later, from_later)]


def _take_half(x: jax.Array, half: Half) -> jax.Array:
    # All devices run the same program, so a half that depends on the device is chosen at run time.
    size = x.shape[2] // 2
    return jax.lax.dynamic_slice_in_dim(x, half * size, size, 2)


def _stacked(merge: Merge, found: Sequence[tuple[Half, Arrays]]) -> Arrays:
    """(2, ...) each: what was found for the early and for the late chunk, merged."""
    halves = [functools.reduce(merge, [arrays for at, arrays in found if at == half]) for half in (0, 1)]
    return tuple(map(jnp.stack, zip(*halves, strict=True)))


def _updated(merge: Merge, stacked: Arrays, half: Half, more: Arrays) -> Arrays:
    """`stacked` with `more` merged into one of its halves, in place: the other is neither read nor written."""
    total = tuple(jax.lax.dynamic_index_in_dim(x, half, keepdims=False) for x in stacked)
    merged = merge(total, more)
    return tuple(jax.lax.dynamic_update_index_in_dim(x, new, half, 0) for x, new in zip(stacked, merged, strict=True))


def _joined_halves(stacked: jax.Array) -> jax.Array:
    """(B, N, 2 c, ...) from (2, B, N, c, ...)."""
    return jnp.concatenate([*stacked], 2)


def _sum(total: Arrays, more: Arrays) -> Arrays:
    return tuple(x + y for x, y in zip(total, more, strict=True))


def _either(total: Arrays, more: Arrays) -> Arrays:
    """From the attention to two sets of keys, (values, log) each, that to either."""
    (values, log), (more_values, more_log) = total, more
    both = jnp.logaddexp(log, more_log)
    return values * jnp.exp(log - both)[..., None] + more_values * jnp.exp(more_log - both)[..., None], both


def _forward(masked: bool, q: jax.Array, k: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
    """`PartKernel.forward` by blocks of positions, float32."""
    q_blocks, k_blocks, v_blocks = map(_blocks, (q, k, v))
    count = len(q_blocks)
    if count == 1:
        return _block_forward(q, k, v, masked)

    def of_queries(i: jax.Array) -> Arrays:
        def more(j: jax.Array, total: Arrays) -> Arrays:
            return _either(total, _block_forward(q_blocks[i], k_blocks[j], v_blocks[j], False))

        # The block on the diagonal is masked, and those after it are not needed.
        own = i if masked else 0
        first = _block_forward(q_blocks[i], k_blocks[own], v_blocks[own], masked)
        return jax.lax.fori_loop(0 if masked else 1, i if masked else count, more, first)

    values, log = jax.lax.map(of_queries, jnp.arange(count))
    return _joined(values), _joined(log)


def _backward(
    masked: bool, q: jax.Array, k: jax.Array, v: jax.Array, out: jax.Array, log: jax.Array, gradient: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """`PartKernel.backward` by blocks of positions, float32."""
    q_blocks, k_blocks, v_blocks, out_blocks, log_blocks, gradients = map(_blocks, (q, k, v, out, log, gradient))
    count = len(q_blocks)
    if count == 1:
        return _block_backward(masked, q, k, v, out, log, gradient)

    def of_queries(total: Arrays, i: jax.Array) -> tuple[Arrays, jax.Array]:
        def more(j: jax.Array, carry: Arrays, *, on_diagonal: bool = False) -> Arrays:
            dq, dk, dv = carry
            queries = out_blocks[i], log_blocks[i], gradients[i]
            found = _block_backward(on_diagonal, q_blocks[i], k_blocks[j], v_blocks[j], *queries)
            return dq + found[0], dk.at[j].add(found[1]), dv.at[j].add(found[2])

        carry = jnp.zeros_like(q_blocks[i], jnp.float32), *total
        carry = jax.lax.fori_loop(0, i if masked else count, more, carry)
        dq, dk, dv = more(i, carry, on_diagonal=True) if masked else carry
        return (dk, dv), dq

    zeros: Arrays = (jnp.zeros_like(k_blocks, jnp.float32), jnp.zeros_like(v_blocks, jnp.float32))
    (dk, dv), dq = jax.lax.scan(of_queries, zeros, jnp.arange(count))
    return _joined(dq), _joined(dk), _joined(dv)


def _blocks(x: jax.Array) -> jax.Array:
    """(B, N, c, ...) to (blocks, B, N, positions of a block, ...)."""
    size = max(size for size in range(1, BLOCK + 1) if x.shape[2] % size == 0)
    return jnp.moveaxis(x.reshape(*x.shape[:2], -1, size, *x.shape[3:]), 2, 0)


def _joined(blocks: jax.Array) -> jax.Array:
    """Inverse of `_blocks`."""
    x = jnp.moveaxis(blocks, 0, 2)
    return x.reshape(*x.shape[:2], -1, *x.shape[4:])


def _scores(q: jax.Array, k: jax.Array, masked: bool) -> jax.Array:
    """Products of queries and keys in float32, with later positions at -inf if masked."""
    scores = jnp.einsum("bnth,bnsh->bnts", q, k).astype(jnp.float32)
    return jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -jnp.inf) if masked else scores


def _block_forward(q: jax.Array, k: jax.Array, v: jax.Array, masked: bool) -> tuple[jax.Array, jax.Array]:
    scores = _scores(q, k, masked)
    largest = jnp.max(scores, -1)
    weights = jnp.exp(scores - largest[..., None])
    total = jnp.sum(weights, -1)
    values = jnp.einsum("bnts,bnsh->bnth", weights.astype(v.dtype), v).astype(jnp.float32)
    return values / total[..., None], largest + jnp.log(total)


def _block_backward(
    masked: bool, q: jax.Array, k: jax.Array, v: jax.Array, out: jax.Array, log: jax.Array, gradient: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """With weights w and output o = sum of w v: dv = w do, ds = w (do v - <do, o>), dq = ds k, dk = ds q."""
    inner = jnp.sum(gradient.astype(jnp.float32) * out, -1, keepdims=True)
    weights = jnp.exp(_scores(q, k, masked) - log[..., None])  # again: only their sum was stored
    d_weights = jnp.einsum("bnth,bnsh->bnts", gradient, v).astype(jnp.float32) - inner
    d_scores = (weights * d_weights).astype(q.dtype)
    dv = jnp.einsum("bnts,bnth->bnsh", weights.astype(q.dtype), gradient).astype(jnp.float32)
    dk = jnp.einsum("bnts,bnth->bnsh", d_scores, q).astype(jnp.float32)
    return jnp.einsum("bnts,bnsh->bnth", d_scores, k).astype(jnp.float32), dk, dv
