# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Causal attention over a sequence that is split over the axis `context`: by a ring, or by an exchange of heads.

`ring`: keys and values travel around the ring of devices, and each device attends to those that it currently has (Liu
et al., "Ring Attention", arXiv:2310.01889). In the order of `sharding_context` each device computes 3 products of
chunks with its own keys and 2 with those of any other device: all have equal work, and little of it is masked. Each is
an attention kernel that also returns the logarithm of its sum of weights (`flash.part_kernels`). With these logarithms
the results are added up in float32. Where there is no such kernel, a product is computed by blocks. So no array with
two axes of positions is larger than a block.

`ulysses`: each device gives up its positions of most heads for all positions of its own heads, attends as usual, and
the results go back (Jacobs et al., "DeepSpeed Ulysses", arXiv:2309.14509). It sends fewer bytes than a ring of three
devices or more, but nothing is computed meanwhile, and there cannot be more devices than heads.

Axes: B examples, N heads, T query positions, S key positions, H head width; c: positions of a chunk.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

from jaxbench.errors import Unsupported
from jaxbench.hlo.operations import ATTENTIONS
from jaxbench.levers import ATTENTION
from jaxbench.workloads.models.flash import Attend, PartKernel, part_kernels, parts_take, untyped

Arrays = tuple[jax.Array, ...]
Half = int | jax.Array  # 0: the early chunk of positions, 1: the late one; an array if it depends on the device
BLOCK = 512  # the most positions of a block of scores, where a product is computed without a kernel


def ulysses(axis: str, attend: Attend, *qkv: jax.Array) -> jax.Array:
    """`attend` on all positions of this device's share of the heads. qkv: (B, N, T of this device, H) each.

    Raises Unsupported if the heads do not divide over the devices."""
    devices, heads = jax.lax.axis_size(axis), qkv[0].shape[1]
    if heads % devices:
        raise Unsupported(
            f"{heads} heads cannot be exchanged over {devices} devices of the axis context: use "
            "--config.lever.context_attention=ring, or fewer devices."
        )
    with jax.named_scope(ATTENTIONS["ulysses"]):
        outward = [jax.lax.all_to_all(x, axis, split_axis=1, concat_axis=2, tiled=True) for x in qkv]
        return jax.lax.all_to_all(attend(*outward), axis, split_axis=2, concat_axis=1, tiled=True)


def ring(axis: str, *, kernels: bool) -> Attend:
    """The function (q, k, v) -> attention; each array has a device's two chunks of positions, and q is scaled.

    kernels: use the device's attention kernels, if they take the chunks."""
    devices = jax.lax.axis_size(axis)

    # JAX's own backward pass would store the keys and values of every device, which is the whole sequence.
    @jax.custom_vjp
    def attend(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        return forward(q, k, v)[0]

    def forward(q: jax.Array, k: jax.Array, v: jax.Array) -> tuple[jax.Array, Arrays]:
        part = _parts(q, kernels)
        sums: list[Arrays] = [(), ()]  # of the early and the late queries
        travelling: Arrays = k, v
        for step in range(devices):
            for query, key, masked in _pairs(step, axis):
                added = part[masked].forward(_take_half(q, query), *(_take_half(x, key) for x in travelling))
                sums = [_plus(sums[half], added, query == half) for half in (0, 1)]
            if step < devices - 1:  # after the last step nobody needs them
                travelling = _send_on(travelling, axis)
        out = jnp.concatenate([values for values, _ in sums], 2).astype(q.dtype)
        log = jnp.concatenate([log for _, log in sums], 2)
        out, log = checkpoint_name((out, log), ATTENTION)
        return out, (q, k, v, out, log)

    def backward(residuals: Arrays, gradient: jax.Array) -> Arrays:
        q, k, v, out, log = residuals
        # Without this barrier the compiler would store all keys and values of the forward pass instead of resending.
        k, v, gradient = jax.lax.optimization_barrier((k, v, gradient))
        part = _parts(q, kernels)
        # Sums of 2 devices + 1 products, which 16 bits would round.
        dq = _no_gradients(q)
        # Keys and values travel again, now with their gradients, so no device stores those of another.
        travelling: Arrays = k, v
        dk, dv = _no_gradients(k), _no_gradients(v)
        for step in range(devices):
            for query, key, masked in _pairs(step, axis):
                of_query = [_take_half(x, query) for x in (q, out, log, gradient)]
                of_key = [_take_half(x, key) for x in travelling]
                found = part[masked].backward(of_query[0], *of_key, *of_query[1:])
                dq, dk, dv = _add(dq, query, found[0]), _add(dk, key, found[1]), _add(dv, key, found[2])
            # The gradients make one step more than the keys: it brings them back to the device that owns the keys.
            dk, dv = _send_on((dk, dv), axis)
            if step < devices - 1:
                travelling = _send_on(travelling, axis)
        whole = [jnp.concatenate([*halves], 2).astype(x.dtype) for halves, x in ((dq, q), (dk, k), (dv, v))]
        return tuple(whole)

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


def _no_gradients(x: jax.Array) -> jax.Array:
    """Zeros for the gradients of an array's early and late positions: (2, B, N, c, H)."""
    return jnp.stack([jnp.zeros_like(half, jnp.float32) for half in jnp.split(x, 2, axis=2)])


def _send_on(travelling: Arrays, axis: str) -> Arrays:
    devices = jax.lax.axis_size(axis)
    return jax.lax.ppermute(travelling, axis, [(i, (i + 1) % devices) for i in range(devices)])


def _pairs(step: int, axis: str) -> list[tuple[Half, Half, bool]]:
    """The products of chunks when a device has the keys and values of the device `step` before it.

    Each is (chunk of queries, chunk of keys, masked), with 0 for the early chunk and 1 for the late chunk. The late
    queries of device i always see the early keys of device j. If j < i, the early queries see these too, and no query
    sees the late keys. If j > i, the late queries see both chunks and the early queries see neither.
    """
    if step == 0:  # its own keys: a chunk needs the causal mask only against itself
        return [(0, 0, True), (1, 0, False), (1, 1, True)]
    from_later = (jax.lax.axis_index(axis) < step).astype(jnp.int32)  # j = i - step, modulo the devices
    return [(1, 0, False), (from_later, from_later, False)]


def _take_half(x: jax.Array, half: Half) -> jax.Array:
    # All devices run the same program, so a half that depends on the device is chosen at run time.
    size = x.shape[2] // 2
    return jax.lax.dynamic_slice_in_dim(x, half * size, size, 2)


def _add(halves: jax.Array, half: Half, addend: jax.Array) -> jax.Array:
    """(2, ...) with `addend` added to one of the two."""
    total = jax.lax.dynamic_index_in_dim(halves, half, keepdims=False) + addend
    return jax.lax.dynamic_update_index_in_dim(halves, total, half, 0)


def _plus(total: Arrays, added: Arrays, when: bool | jax.Array) -> Arrays:
    """The attention to two sets of keys, (values, log) each, from that to either; `total` if `when` is False.

    The own keys come first, so no chunk of queries is without a part when a device selects."""
    if when is False:
        return total
    if not total:
        return added
    (values, log), (more, more_log) = total, added
    both = jnp.logaddexp(log, more_log)
    values = values * jnp.exp(log - both)[..., None] + more * jnp.exp(more_log - both)[..., None]
    return (values, both) if when is True else (jnp.where(when, values, total[0]), jnp.where(when, both, log))


def _forward(masked: bool, q: jax.Array, k: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
    """`PartKernel.forward` by blocks of positions, float32."""
    q_blocks, k_blocks, v_blocks = map(_blocks, (q, k, v))
    count = len(q_blocks)
    if count == 1:
        return _block_forward(q, k, v, masked)

    def of_queries(i: jax.Array) -> Arrays:
        def more(j: jax.Array, total: Arrays) -> Arrays:
            return _plus(total, _block_forward(q_blocks[i], k_blocks[j], v_blocks[j], False), True)

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
