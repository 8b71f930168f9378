# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Causal attention over a sequence that is split over the axis `context`: by a ring, or by an exchange of heads.

`ring`: each device attends to its own keys and values, and to those of the others as they arrive (Liu et al., "Ring
Attention", arXiv:2310.01889). In the order of `sharding_context` each device computes 3 products of chunks with its own
keys and 2 with those of any other device: all have equal work, and little of it is masked. Each is an attention kernel
that also returns the logarithm of its sum of weights (`flash.part_kernels`). With these logarithms the results are
added up in float32. Where there is no such kernel, a product is computed by blocks. So no array with two axes of
positions is larger than a block.

In a plain ring there are as many sums as devices, each over all queries, and kernels get only one device's keys. So
neighbours first collect each other's keys: devices at the distance 1, then 2, then 4 exchange all that they hold, until
each group has its keys (`group_size`). The keys of a group then travel together around the ring of groups. A step
attends to all keys that arrive in it. 8 devices that form one group take 4 steps and not 8, and send the same bytes.

`ulysses`: each device gives up its positions of most heads for all positions of its own heads, attends as usual, and
the results go back (Jacobs et al., "DeepSpeed Ulysses", arXiv:2309.14509). With as many heads of keys as of queries it
sends fewer bytes than a ring of three devices or more, but nothing is computed meanwhile, and there cannot be more
devices than heads.

If K heads of keys and values serve N heads of queries, only the K heads are sent.

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
Halves = list[jax.Array]  # for the early and for the late chunk
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


def group_size(devices: int, heads: int, shared: int) -> int:
    """How many devices collect each other's keys before these travel on.

    It is the largest power of two that divides `devices` and for which a device passes on at most twice as many numbers
    in keys as it has in queries. If all devices are one group, half of its keys are not passed on.
    """
    sizes = [2**i for i in range(devices.bit_length()) if devices % 2**i == 0]
    return max(size for size in sizes if (size // 2 if size == devices else size) * shared <= 2 * heads)


def ring(axis: str, *, kernels: bool) -> Attend:
    """The function (q, k, v) -> attention (B, N, T, H). Each array has a device's two chunks of positions, q is scaled,
    and k and v are (B, K, T, H).

    kernels: use the device's attention kernels, if they take the chunks."""

    # JAX's own backward pass would store the keys and values of every device, which is the whole sequence.
    @jax.custom_vjp
    def attend(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        return _attention(axis, kernels, q, k, v)[0]

    attend.defvjp(partial(_attention, axis, kernels), partial(_gradients, axis, kernels))
    return attend


def _attention(axis: str, kernels: bool, q: jax.Array, k: jax.Array, v: jax.Array) -> tuple[jax.Array, Arrays]:
    """(the attention, what its backward pass needs)."""
    part, queries = _parts(q, kernels), _halves(q)
    held: list[Arrays] = [(_halves(k), _halves(v))]
    devices = jax.lax.axis_size(axis)
    size = group_size(devices, q.shape[1], k.shape[1])

    def attended(pair: Pair, keys: Sequence[Arrays]) -> Arrays:
        return part[pair.masked].forward(queries[pair.query], *_half_of(keys, pair.key))

    def with_more(sums: Sequence[Arrays], keys: Sequence[Arrays], later: jax.Array) -> list[Arrays]:
        always, other = (attended(pair, keys) for pair in _pairs(later))
        (early, late), (values, log) = sums, other
        if_early, if_late = (values, jnp.where(later, -jnp.inf, log)), (values, jnp.where(later, log, -jnp.inf))
        return [_either(early, if_early), _either(_either(late, always), if_late)]

    sums = _by_half(_either, [(pair.query, attended(pair, held)) for pair in _own_pairs()])
    for distance in _doublings(size):
        arrived = _swapped(held, axis, distance)
        sums = with_more(sums, arrived, jax.lax.axis_index(axis) & distance == 0)
        held = [*held, *arrived]
    for step in range(1, devices // size):
        held = _sent_on(held, axis, size)
        sums = with_more(sums, held, jax.lax.axis_index(axis) // size < step)
    out, log = (jnp.concatenate(halves, 2) for halves in zip(*sums, strict=True))
    out, log = checkpoint_name((out.astype(q.dtype), log), ATTENTION)
    return out, (q, k, v, out, log)


def _gradients(axis: str, kernels: bool, residuals: Arrays, gradient: jax.Array) -> Arrays:
    """The gradients of q, k and v. residuals: the second result of `_attention`."""
    q, k, v, out, log = residuals
    # Without this barrier the compiler would store all keys and values of the forward pass instead of resending.
    k, v, gradient = jax.lax.optimization_barrier((k, v, gradient))
    part = _parts(q, kernels)
    held: list[Arrays] = [(_halves(k), _halves(v))]
    queries, of_queries = _halves(q), [_halves(x) for x in (out, log, gradient)]
    devices = jax.lax.axis_size(axis)
    size = group_size(devices, q.shape[1], k.shape[1])

    def pulled(pair: Pair, keys: Sequence[Arrays]) -> tuple[jax.Array, list[Arrays]]:
        """The gradients of the queries, and of each set of keys and values."""
        results = (x[pair.query] for x in of_queries)
        dq, *dkv = part[pair.masked].backward(queries[pair.query], *_half_of(keys, pair.key), *results)
        return dq, list(zip(*(jnp.split(x, len(keys), 2) for x in dkv), strict=True))

    def with_more(dq: Halves, keys: Sequence[Arrays], later: jax.Array) -> tuple[Halves, list[Arrays]]:
        """dq with more added, and the gradients of these keys."""
        (always, dkv), (other, other_dkv) = (pulled(pair, keys) for pair in _pairs(later))
        if_early, if_late = jnp.where(later, 0, other), jnp.where(later, other, 0)
        found = [tuple(map(partial(_chunks, later), *both)) for both in zip(dkv, other_dkv, strict=True)]
        return [dq[0] + if_early, dq[1] + always + if_late], found

    # Sums of many products in float32, which 16 bits would round.
    own = [(pair, *pulled(pair, held)) for pair in _own_pairs()]
    dq = [x for (x,) in _by_half(_sum, [(pair.query, (x,)) for pair, x, _ in own])]
    halves = _by_half(_sum, [(pair.key, x) for pair, _, (x,) in own])
    dkv: list[Arrays] = [tuple(map(jnp.stack, zip(*halves, strict=True)))]
    for distance in _doublings(size):
        arrived = _swapped(held, axis, distance)
        dq, found = with_more(dq, arrived, jax.lax.axis_index(axis) & distance == 0)
        held, dkv = [*held, *arrived], [*dkv, *found]
    # Keys and values travel again, now with their gradients, so no device stores those of another group.
    for step in range(1, devices // size):
        held, dkv = _sent_on(held, axis, size), _sent_on(dkv, axis, size)
        dq, found = with_more(dq, held, jax.lax.axis_index(axis) // size < step)
        dkv = list(map(_sum, dkv, found))
    if devices > size:
        dkv = _sent_on(dkv, axis, size)  # one step more than the keys: it brings them back to their group
    for distance in reversed(_doublings(size)):  # and there each device gets the sum for its own keys
        dkv = list(map(_sum, dkv[:distance], _swapped(dkv[distance:], axis, distance)))
    gradients = jnp.concatenate(dq, 2), *(jnp.concatenate([*x], 2) for x in dkv[0])
    return tuple(x.astype(like.dtype) for x, like in zip(gradients, (q, k, v), strict=True))


def _chunks(later: jax.Array, always: jax.Array, other: jax.Array) -> jax.Array:
    """(2, B, K, c, H): the gradients of the early and the late chunk, from the two `_pairs`."""
    return jnp.stack([always + jnp.where(later, 0, other), jnp.where(later, other, 0)])


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


def _halves(x: jax.Array) -> jax.Array:
    """(2, B, N, c, ...): the early and the late chunk of (B, N, 2 c, ...)."""
    return jnp.stack(jnp.split(x, 2, axis=2))


def _doublings(size: int) -> list[int]:
    """1, 2, 4, ... below the size of a group: how far away the device is with which each device exchanges its keys."""
    return [2**i for i in range(size.bit_length() - 1)]


def _swapped(held: Sequence[Arrays], axis: str, distance: int) -> list[Arrays]:
    """What the device at this distance holds. A device's sets of keys are in the order of their distances from it."""
    return jax.lax.ppermute([*held], axis, [(i, i ^ distance) for i in range(jax.lax.axis_size(axis))])


def _sent_on(held: Sequence[Arrays], axis: str, distance: int) -> list[Arrays]:
    devices = jax.lax.axis_size(axis)
    return jax.lax.ppermute([*held], axis, [(i, (i + distance) % devices) for i in range(devices)])


def _half_of(keys: Sequence[Arrays], half: Half) -> list[jax.Array]:
    """(B, K, S, H): the early or the late chunks of all sets of keys, and of their values."""
    return [jnp.concatenate([x[half] for x in sets], 2) for sets in zip(*keys, strict=True)]


def _own_pairs() -> list[Pair]:
    """The products of chunks with a device's own keys. A chunk needs the causal mask only against itself."""
    return [Pair(0, 0, masked=True), Pair(1, 0), Pair(1, 1, masked=True)]


def _pairs(later: jax.Array) -> list[Pair]:
    """The products of chunks with keys of other devices. later: whether these come from later devices.

    The late queries of a device always see the early keys of another. If those of an earlier device, its early queries
    see these too, and no query sees the late keys. If those of a later one, its late queries see both chunks and its
    early queries see neither.
    """
    half = later.astype(jnp.int32)
    return [Pair(1, 0), Pair(half, half)]


def _by_half(merge: Merge, found: Sequence[tuple[Half, Arrays]]) -> list[Arrays]:
    """What was found for the early and for the late chunk, merged."""
    return [functools.reduce(merge, [arrays for at, arrays in found if at == half]) for half in (0, 1)]


def _sum(total: Arrays, more: Arrays) -> Arrays:
    return tuple(x + y for x, y in zip(total, more, strict=True))


def _either(total: Arrays, more: Arrays) -> Arrays:
    """From the attention to two sets of keys, (values, log) each, that to either."""
    (values, log), (more_values, more_log) = total, more
    both = jnp.logaddexp(log, more_log)
    return values * jnp.exp(log - both)[..., None] + more_values * jnp.exp(more_log - both)[..., None], both


def _forward(masked: bool, q: jax.Array, k: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
    """`PartKernel.forward` by blocks of positions, float32."""
    k, v = (for_each_query_head(x, q.shape[1]) for x in (k, v))
    q_blocks, k_blocks, v_blocks = map(_blocks, (q, k, v))
    if len(q_blocks) == len(k_blocks) == 1:
        return _block_forward(q, k, v, masked)

    def of_queries(i: jax.Array) -> Arrays:
        def more(j: jax.Array, total: Arrays) -> Arrays:
            return _either(total, _block_forward(q_blocks[i], k_blocks[j], v_blocks[j], False))

        # The block on the diagonal is masked, and those after it are not needed.
        own = i if masked else 0
        first = _block_forward(q_blocks[i], k_blocks[own], v_blocks[own], masked)
        return jax.lax.fori_loop(0 if masked else 1, i if masked else len(k_blocks), more, first)

    values, log = jax.lax.map(of_queries, jnp.arange(len(q_blocks)))
    return _joined(values), _joined(log)


def _backward(
    masked: bool, q: jax.Array, k: jax.Array, v: jax.Array, out: jax.Array, log: jax.Array, gradient: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """`PartKernel.backward` by blocks of positions, float32."""
    shared = k.shape[1]
    k, v = (for_each_query_head(x, q.shape[1]) for x in (k, v))
    q_blocks, k_blocks, v_blocks, out_blocks, log_blocks, gradients = map(_blocks, (q, k, v, out, log, gradient))
    if len(q_blocks) == len(k_blocks) == 1:
        whole = _block_backward(masked, q, k, v, out, log, gradient)
        return whole[0], _summed(whole[1], shared), _summed(whole[2], shared)

    def of_queries(total: Arrays, i: jax.Array) -> tuple[Arrays, jax.Array]:
        def more(j: jax.Array, carry: Arrays, *, on_diagonal: bool = False) -> Arrays:
            dq, dk, dv = carry
            queries = out_blocks[i], log_blocks[i], gradients[i]
            found = _block_backward(on_diagonal, q_blocks[i], k_blocks[j], v_blocks[j], *queries)
            return dq + found[0], dk.at[j].add(found[1]), dv.at[j].add(found[2])

        carry = jnp.zeros_like(q_blocks[i], jnp.float32), *total
        carry = jax.lax.fori_loop(0, i if masked else len(k_blocks), more, carry)
        dq, dk, dv = more(i, carry, on_diagonal=True) if masked else carry
        return (dk, dv), dq

    zeros: Arrays = (jnp.zeros_like(k_blocks, jnp.float32), jnp.zeros_like(v_blocks, jnp.float32))
    (dk, dv), dq = jax.lax.scan(of_queries, zeros, jnp.arange(len(q_blocks)))
    return _joined(dq), _summed(_joined(dk), shared), _summed(_joined(dv), shared)


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
