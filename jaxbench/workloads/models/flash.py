# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""JAX's own attention kernels, which never write the scores to memory: "splash attention" for TPUs and a Triton kernel
for NVIDIA GPUs (Dao et al., "FlashAttention", arXiv:2205.14135).

`flash_kernels` are whole causal attention. `part_kernels` are a part of one, with the logarithm of its sum of weights,
from which `ring` adds up the parts that a device gets one after the other.

Axes: B examples, N heads, T positions, H head width.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name
from jax.extend import core
from jax.sharding import PartitionSpec

from jaxbench.errors import Unsupported
from jaxbench.hlo.operations import UNMASKED
from jaxbench.workloads import sharding_context

WIDEST = 256  # the width of the widest head: a block of a wider one does not fit into a GPU's shared memory
_LANES = 128  # of a TPU's vectors: its kernel takes multiples of them
_NARROWEST = 16  # the shortest side of a product on a GPU's tensor cores

Attend = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]


def flash_takes(q_BNTH: jax.Array) -> bool:
    """Whether `attention=auto` takes the kernels, as common ones do: heads that fit, in a 16-bit format."""
    return q_BNTH.shape[-1] <= WIDEST and q_BNTH.dtype.itemsize == 2


def flash_kernels(shape: tuple[int, ...], name: str = "") -> dict[str, Attend]:
    """By platform, the function (q, k, v) -> attention; all have this shape (B, N, T, H), and q is already scaled.

    name: what `jax.checkpoint` calls the results that a backward pass needs. Each imports its kernel when it is traced,
    because the import takes a second that other models need not spend. Raises Unsupported for heads that are too wide.
    """
    # Their sizes are multiples of a block, so arrays are padded with zeros. Padded positions come last, where no real
    # query sees them, and a padded part of a head adds nothing to a score: the result is that of the unpadded arrays.
    positions, width = shape[-2:]
    if width > WIDEST:
        raise Unsupported(
            f"--config.model.attention=flash takes heads of at most {WIDEST} numbers, and this model's have {width}: "
            "use plain."
        )

    def padded(kernel: Attend, tile: int, narrowest: int) -> Attend:
        pads = ((0, 0), (0, 0), (0, -positions % tile), (0, -width % narrowest))

        def attend(*qkv: jax.Array) -> jax.Array:
            whole = [jnp.pad(x, pads) if any(map(any, pads)) else x for x in qkv]
            return _differentiable(kernel, name)(*whole)[:, :, :positions, :width]

        return lambda *qkv: _by_example(attend, qkv[0].shape[0])(*qkv)

    block = 64 if width <= 128 else 32  # positions of a block of scores on a GPU: wide heads leave room for a small one
    # Inside, the GPU's kernel rounds the width up to a power of two. A TPU pays for its padding.
    gpu = padded(partial(_cuda, block), block, _NARROWEST if width < _NARROWEST else 1)
    return {"tpu": padded(_tpu, _LANES, _LANES), "cuda": gpu}


def _by_example(attend: Attend, examples: int) -> Attend:
    """`attend` on each device's own examples, where the compiler places arrays."""
    # The partitioner does not look into a kernel: without this, each device would gather the whole batch and compute
    # all of it.
    mesh = jax.sharding.get_abstract_mesh()
    # Inside `shard_map` (manual axes) a device already has only its own.
    placed = tuple(axis for axis in mesh.axis_names if axis not in mesh.manual_axes and mesh.shape[axis] > 1)
    if not placed or examples % math.prod(mesh.shape[axis] for axis in placed):
        return attend
    rows = PartitionSpec(placed)
    return jax.shard_map(attend, in_specs=(rows, rows, rows), out_specs=rows, axis_names=set(placed))


def _differentiable(kernel: Attend, name: str) -> Any:
    """`kernel` with a backward pass from its arguments and its results, which have the given name."""

    @jax.custom_vjp
    def attend(*qkv: jax.Array) -> jax.Array:
        return untyped(kernel)(*qkv)

    # A kernel hides its residuals in its backward pass. Here they are named arrays, so that `jax.checkpoint` can keep
    # them. Those that are arguments are passed on instead, and not stored a second time.
    def forward(*qkv: jax.Array) -> tuple[jax.Array, Any]:
        structures = []

        def run(*qkv: jax.Array) -> list[jax.Array]:
            out, pulled = jax.vjp(kernel, *qkv)
            leaves, structure = jax.tree.flatten(pulled)
            distinct = [*qkv, out]
            for leaf in leaves:
                distinct += [] if any(leaf is known for known in distinct) else [leaf]
            structures.append((structure, [next(i for i, x in enumerate(distinct) if x is leaf) for leaf in leaves]))
            return distinct[len(qkv) :]

        made = [checkpoint_name(x, name) for x in untyped(run)(*qkv)]
        ((structure, order),) = structures
        distinct = [*qkv, *made]
        return made[0], jax.tree.unflatten(structure, [distinct[i] for i in order])

    def backward(pulled: Any, gradient: jax.Array) -> Any:
        return untyped(lambda pulled, gradient: pulled(gradient))(pulled, gradient)

    attend.defvjp(forward, backward)
    return attend


def untyped(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` without the type check of an enclosing `shard_map`: a kernel does not say where its results vary.

    They vary wherever an argument does.
    """
    mesh, whole = jax.sharding.get_abstract_mesh(), PartitionSpec()
    if not mesh.manual_axes:
        return function

    def run(*arguments: Any) -> Any:
        leaves, structure = jax.tree.flatten(arguments)
        given = jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in leaves])

        def body(*leaves: jax.Array) -> Any:
            closed, out = jax.make_jaxpr(function, return_shape=True)(*given)  # of arrays that vary nowhere
            return jax.tree.unflatten(jax.tree.structure(out), core.jaxpr_as_fun(closed)(*leaves))

        results = jax.shard_map(body, mesh=mesh, in_specs=whole, out_specs=whole, check_vma=False)(*leaves)
        axes = frozenset().union(*map(sharding_context.varies, leaves))
        vary: Any = lambda x: jax.lax.pcast(x, tuple(axes - sharding_context.varies(x)), to="varying")  # noqa: E731
        return jax.tree.map(vary, results)

    return run


def _tpu(q_BNTH: jax.Array, k_BNTH: jax.Array, v_BNTH: jax.Array, *, masked: bool = True) -> jax.Array:
    """Attention with the splash kernel, one call for each example."""
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as splash
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks

    (_, heads, positions, _), keys = q_BNTH.shape, k_BNTH.shape[2]
    names = ("block_q", "block_kv", "block_kv_compute", "block_q_dkv", "block_kv_dkv", "block_kv_dkv_compute")
    both = math.gcd(positions, keys)
    block = max(size for size in range(_LANES, 513, _LANES) if both % size == 0)  # blocks divide the positions
    sizes: Any = {**dict.fromkeys(names, block), "use_fused_bwd_kernel": True}
    one = masks.CausalMask((positions, keys)) if masked else masks.FullMask((positions, keys))
    mask = masks.MultiHeadMask([one] * heads)
    kernel = splash.make_splash_mha(mask, head_shards=1, q_seq_shards=1, block_sizes=splash.BlockSizes(**sizes))
    return jax.vmap(kernel)(q_BNTH, k_BNTH, v_BNTH)


def triton_kernel() -> Any:
    """JAX's module of the GPU's kernel. Newer JAX warns at its import that another package will replace it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from jax.experimental.pallas.ops.gpu import attention as triton
    return triton


def _cuda(block: int, q_BNTH: jax.Array, k_BNTH: jax.Array, v_BNTH: jax.Array) -> jax.Array:
    """`_triton` for arrays with heads before positions, which is how the TPU's kernel takes them."""
    return _swapped(_triton(block, *map(_swapped, (q_BNTH, k_BNTH, v_BNTH))))


def _triton(block: int, q_BTNH: jax.Array, k_BTNH: jax.Array, v_BTNH: jax.Array, *, masked: bool = True) -> jax.Array:
    """Attention with the Triton kernel."""
    triton = triton_kernel()
    sizes = triton.BlockSizes(*[block] * 6)
    return triton.mha(q_BTNH, k_BTNH, v_BTNH, None, sm_scale=1.0, causal=masked, block_sizes=sizes)


def _swapped(x: jax.Array) -> jax.Array:
    """(B, N, T, H) to (B, T, N, H), or back."""
    return x.transpose(0, 2, 1, 3)


@dataclass(frozen=True)
class PartKernel:
    """Attention of queries (B, N, T, H), which are scaled, to a part of the keys and values (B, K, S, H).

    Each head of keys serves N / K heads of queries in turn, and S is a multiple of T.

    forward: (q, k, v) -> (the mean of the values, the logarithm of the sum of weights (B, N, T), float32).
    backward: (q, k, v, out, log, gradient) -> the gradients of q, k and v, where `out` and `log` are those of attention
    to all keys, so that the weights are those of the whole softmax.
    """

    forward: Callable[..., tuple[jax.Array, jax.Array]]
    backward: Callable[..., tuple[jax.Array, jax.Array, jax.Array]]


def part_kernels(shape: tuple[int, ...], *, masked: bool) -> dict[str, PartKernel]:
    """By platform, the kernel of a part. shape: of the queries, which `parts_take`. masked: only earlier keys count, of
    as many as there are queries."""
    block = 64 if shape[-1] <= 128 else 32
    # The Triton kernel's logarithm has base 2, and its arrays have the positions before the heads.
    cuda = _part(partial(_triton, block, masked=masked), base=2.0, on_gpu=True, narrowest=_NARROWEST, masked=masked)
    tpu = _part(partial(_tpu, masked=masked), base=math.e, on_gpu=False, narrowest=_LANES, masked=masked)
    return {"tpu": tpu, "cuda": cuda}


def parts_take(shape: tuple[int, ...]) -> bool:
    """Whether the part kernels of all platforms take this shape (B, N, T, H): without a mask, no padding is hidden."""
    return shape[-1] <= WIDEST and shape[-2] % _LANES == 0


def _part(kernel: Attend, *, base: float, on_gpu: bool, narrowest: int, masked: bool) -> PartKernel:
    """The two passes of a part from a kernel with a backward pass of its own."""
    # The kernel stores its result and the logarithm for its backward pass, in which both may be those of all keys.
    scale, scope = math.log(base), UNMASKED if not masked else "masked"

    def laid_out(x: jax.Array) -> jax.Array:
        pad = -x.shape[-1] % narrowest if x.shape[-1] < narrowest or narrowest == _LANES else 0
        x = jnp.pad(x, ((0, 0), (0, 0), (0, 0), (0, pad))) if pad else x
        return _swapped(x) if on_gpu else x

    def back(x: jax.Array, width: int) -> jax.Array:
        return (_swapped(x) if on_gpu else x)[..., :width]

    def split(q: jax.Array, k: jax.Array, v: jax.Array) -> tuple[jax.Array, Any, list[Any], int, int]:
        """(the result, the structure of what is stored, its arrays, the places of the result and of the logarithm)."""
        out, pulled = jax.vjp(kernel, q, k, v)
        leaves, structure = jax.tree.flatten(pulled)
        given = [i for i, x in enumerate(leaves) if not any(x is known for known in (q, k, v))]
        (place,) = (i for i in given if leaves[i].shape == out.shape)
        (log,) = (i for i in given if leaves[i].ndim == 3 and leaves[i].dtype == jnp.float32)
        return out, structure, leaves, place, log

    def grouped(x: jax.Array, shared: int, folded: int) -> jax.Array:
        """(heads / shared / folded, B, shared, folded T, ...): heads that share one of keys are further positions."""
        x = x.reshape(x.shape[0], shared, -1, folded * x.shape[2], *x.shape[3:])
        return jnp.moveaxis(x, 2, 0)

    def together(x: jax.Array, positions: int) -> jax.Array:
        """Inverse of `grouped`."""
        x = jnp.moveaxis(x, 0, 2)
        return x.reshape(x.shape[0], -1, positions, *x.shape[4:])

    # A kernel takes as many heads of keys as of queries, but nothing repeats the keys in memory. Without a mask, the
    # queries of further heads are further positions of one head; with one, the kernel is mapped over them.
    @jax.named_scope(scope)
    def forward(q: jax.Array, k: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
        def one(q: jax.Array, k: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
            out, _, leaves, _, log = split(*map(laid_out, (q, k, v)))
            return back(out, q.shape[-1]).astype(jnp.float32), leaves[log] * scale

        folded = 1 if masked else q.shape[1] // k.shape[1]
        out, log = jax.vmap(one, (0, None, None))(grouped(q, k.shape[1], folded), k, v)
        return together(out, q.shape[2]), together(log, q.shape[2])

    @jax.named_scope(scope)
    def backward(
        q: jax.Array, k: jax.Array, v: jax.Array, out: jax.Array, log: jax.Array, gradient: jax.Array
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        def one(
            q: jax.Array, k: jax.Array, v: jax.Array, out: jax.Array, log: jax.Array, gradient: jax.Array
        ) -> tuple[jax.Array, ...]:
            _, structure, leaves, at_out, at_log = split(*map(laid_out, (q, k, v)))
            leaves[at_out], leaves[at_log] = laid_out(out), log / scale
            found = jax.tree.unflatten(structure, leaves)(laid_out(gradient))
            return tuple(back(x, q.shape[-1]).astype(jnp.float32) for x in found)

        heads, sets = q.shape[1] // k.shape[1], k.shape[2] // q.shape[2]
        # The Triton kernel's backward pass takes as many keys as queries, so it is mapped over the rest of both.
        folded = 1 if masked else math.gcd(heads, sets) if on_gpu else heads
        of_sets = (jnp.stack(jnp.split(x, sets // folded if on_gpu else 1, 2)) for x in (k, v))
        queries, *rest = (grouped(x, k.shape[1], folded) for x in (q, out, log, gradient))
        over_heads = jax.vmap(one, (0, None, None, 0, 0, 0))
        dq, dk, dv = jax.vmap(over_heads, (None, 0, 0, None, None, None))(queries, *of_sets, *rest)
        dk, dv = (jnp.concatenate([*x.sum(1)], 2) for x in (dk, dv))
        return together(dq.sum(0), q.shape[2]), dk, dv

    return PartKernel(untyped(forward), untyped(backward))
