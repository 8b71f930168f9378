# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""JAX's attention kernels: "splash attention" for TPUs, and a Triton kernel for NVIDIA GPUs.

They never write the scores to memory (Dao et al., "FlashAttention", arXiv:2205.14135).

Axes: B examples, N heads, T positions, H head width.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from jaxbench.errors import Unsupported
from jaxbench.workloads import sharding_context

_BLOCK = {"tpu": 512, "cuda": 64}  # positions of a block of scores
_LANES = 128  # the kernels' positions and heads have multiples of a TPU vector's lanes
Attend = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]


def causal(shape: tuple[int, ...]) -> dict[str, Attend]:
    """By platform, the function (q, k, v) -> attention; all have this shape (B, N, T, H), and q is already scaled.

    Each imports its kernel when it is traced, because the import takes a second that other models need not spend.
    Raises Unsupported for sizes that the kernels do not take.
    """
    _, heads, positions, width = shape
    if positions % min(_BLOCK["tpu"], positions) or positions % _LANES or width % _LANES:
        raise Unsupported(
            f"--config.model.attention=flash needs positions and a head width that are multiples of {_LANES}, and this "
            f"model has {positions} and {width}: use plain."
        )
    if sharding_context.current().tensor is not None:
        raise Unsupported("--config.model.attention=flash has no kernel for heads split over tensor: use plain.")

    def tpu(q_BNTH: jax.Array, k_BNTH: jax.Array, v_BNTH: jax.Array) -> jax.Array:
        from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as splash
        from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks

        sizes = _sizes(splash, ("q", "kv", "kv_compute", "q_dkv", "kv_dkv", "kv_dkv_compute"), "tpu", positions)
        mask = masks.MultiHeadMask([masks.CausalMask((positions, positions))] * heads)
        kernel = splash.make_splash_mha(
            mask, head_shards=1, q_seq_shards=1, block_sizes=splash.BlockSizes(**sizes, use_fused_bwd_kernel=True)
        )
        return jax.vmap(kernel)(q_BNTH, k_BNTH, v_BNTH)

    def cuda(q_BNTH: jax.Array, k_BNTH: jax.Array, v_BNTH: jax.Array) -> jax.Array:
        from jax.experimental.pallas.ops.gpu import attention as triton

        sizes = _sizes(triton, ("q", "k", "q_dkv", "kv_dkv", "q_dq", "kv_dq"), "cuda", positions)
        q, k, v = (x.transpose(0, 2, 1, 3) for x in (q_BNTH, k_BNTH, v_BNTH))
        mixed = triton.mha(q, k, v, None, sm_scale=1.0, causal=True, block_sizes=triton.BlockSizes(**sizes))
        return mixed.transpose(0, 2, 1, 3)

    return {"tpu": tpu, "cuda": cuda}


def _sizes(module: Any, names: tuple[str, ...], platform: str, positions: int) -> dict[str, Any]:
    """The arguments of a kernel's BlockSizes, all equal."""
    known = module.BlockSizes.__dataclass_fields__
    return {f"block_{name}": min(_BLOCK[platform], positions) for name in names if f"block_{name}" in known}
