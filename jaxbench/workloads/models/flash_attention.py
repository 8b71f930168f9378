# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Causal attention by JAX's own kernels, which never write the scores to memory.

They are "splash attention" for TPUs and a Triton kernel for NVIDIA GPUs (Dao et al., "FlashAttention",
arXiv:2205.14135). Their sizes are multiples of a block, so arrays are padded with zeros. Padded positions come last,
where no real query sees them, and a padded part of a head adds nothing to a score: the result is that of the unpadded
arrays. A TPU pays for the padding. Inside, the GPU's kernel rounds the width of a head up to a power of two.

Axes: B examples, N heads, T positions, H head width.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name
from jax.extend import core
from jax.sharding import PartitionSpec

from jaxbench.errors import Unsupported

WIDEST = 256  # the width of the widest head: a block of a wider one does not fit into a GPU's shared memory
_LANES = 128  # of a TPU's vectors: its kernel takes multiples of them
_NARROWEST = 16  # the shortest side of a product on a GPU's tensor cores
Attend = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]


def takes(q_BNTH: jax.Array) -> bool:
    """Whether `attention=auto` takes the kernels, as common ones do: heads that fit, in a 16-bit format."""
    return q_BNTH.shape[-1] <= WIDEST and q_BNTH.dtype.itemsize == 2


def kernels(shape: tuple[int, ...], name: str = "") -> dict[str, Attend]:
    """By platform, the function (q, k, v) -> attention; all have this shape (B, N, T, H), and q is already scaled.

    name: what `jax.checkpoint` calls the results that a backward pass needs. Each imports its kernel when it is traced,
    because the import takes a second that other models need not spend. Raises Unsupported for heads that are too wide.
    """
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
    gpu = padded(partial(_cuda, block), block, _NARROWEST if width < _NARROWEST else 1)
    return {"tpu": padded(_tpu, _LANES, _LANES), "cuda": gpu}


def _by_example(attend: Attend, examples: int) -> Attend:
    """`attend` on each device's own examples, where the compiler places arrays."""
    # The partitioner does not look into a kernel: without this, each device would gather the whole batch and compute
    # all of it.
    mesh = jax.sharding.get_abstract_mesh()
    placed = tuple(axis for axis in mesh.axis_names if axis not in mesh.manual_axes and mesh.shape[axis] > 1)
    if not placed or examples % math.prod(mesh.shape[axis] for axis in placed):
        return attend
    rows = PartitionSpec(placed)
    return jax.shard_map(attend, in_specs=(rows, rows, rows), out_specs=rows, axis_names=set(placed))


def _differentiable(kernel: Attend, name: str) -> Any:
    """`kernel` with a backward pass from its arguments and its results, which have the given name."""

    @jax.custom_vjp
    def attend(*qkv: jax.Array) -> jax.Array:
        return _untyped(kernel)(*qkv)

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

        made = _untyped(run)(*qkv)
        made = [checkpoint_name(x, name) for x in made] if name else made
        ((structure, order),) = structures
        distinct = [*qkv, *made]
        return made[0], jax.tree.unflatten(structure, [distinct[i] for i in order])

    def backward(pulled: Any, gradient: jax.Array) -> Any:
        return _untyped(lambda pulled, gradient: pulled(gradient))(pulled, gradient)

    attend.defvjp(forward, backward)
    return attend


def _untyped(function: Callable[..., Any]) -> Callable[..., Any]:
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
        axes = frozenset().union(*map(_varying, leaves))
        return jax.tree.map(lambda x: jax.lax.pcast(x, tuple(axes - _varying(x)), to="varying"), results)

    return run


def _varying(x: jax.Array) -> frozenset[str]:
    return jax.typeof(x).manual_axis_type.varying


def _block(positions: int, largest: int) -> int:
    """The largest multiple of the lanes that divides the positions, at most `largest`."""
    return max(size for size in range(_LANES, largest + 1, _LANES) if positions % size == 0)


def _tpu(q_BNTH: jax.Array, k_BNTH: jax.Array, v_BNTH: jax.Array) -> jax.Array:
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as splash
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks

    _, heads, positions, _ = q_BNTH.shape
    names = ("block_q", "block_kv", "block_kv_compute", "block_q_dkv", "block_kv_dkv", "block_kv_dkv_compute")
    sizes: Any = {**dict.fromkeys(names, _block(positions, 512)), "use_fused_bwd_kernel": True}
    mask = masks.MultiHeadMask([masks.CausalMask((positions, positions))] * heads)
    kernel = splash.make_splash_mha(mask, head_shards=1, q_seq_shards=1, block_sizes=splash.BlockSizes(**sizes))
    return jax.vmap(kernel)(q_BNTH, k_BNTH, v_BNTH)


def triton_kernel() -> Any:
    """JAX's module of the GPU's kernel. Newer JAX warns at its import that another package will replace it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from jax.experimental.pallas.ops.gpu import attention as triton
    return triton


def _cuda(block: int, q_BNTH: jax.Array, k_BNTH: jax.Array, v_BNTH: jax.Array) -> jax.Array:
    triton = triton_kernel()
    q, k, v = (x.transpose(0, 2, 1, 3) for x in (q_BNTH, k_BNTH, v_BNTH))
    mixed = triton.mha(q, k, v, None, sm_scale=1.0, causal=True, block_sizes=triton.BlockSizes(*[block] * 6))
    return mixed.transpose(0, 2, 1, 3)
