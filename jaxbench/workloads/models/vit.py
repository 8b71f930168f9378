# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The Vision Transformer (Dosovitskiy et al., arXiv:2010.11929) with a class token.

The sizes of S/16 are DeiT's, arXiv:2012.12877. There is no dropout, so all strategies compute the same numbers.
Shapes: B batch, H height, W width, C channels, T tokens, S tokens attended to, D width, N heads, K width of a head.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx
from ml_collections import ConfigDict

from jaxbench.errors import UserError
from jaxbench.workloads.flops import dense
from jaxbench.workloads.models import blocks

MLP = 4  # hidden width of a block, in widths
EPSILON = 1e-6


class ViT(nnx.Module):
    """`config`: size, patch, classes, width, depth, heads. remat: see `blocks.run`."""

    def __init__(self, config: ConfigDict, remat: str, rngs: nnx.Rngs):
        _check(config)
        init = nnx.initializers.normal(0.02)
        self.patches = nnx.Conv(
            3, config.width, (config.patch, config.patch), strides=config.patch, padding="VALID", rngs=rngs
        )
        self.class_token = nnx.Param(jnp.zeros((1, 1, config.width)))
        self.positions = nnx.Param(init(rngs.params(), (1, tokens(config), config.width)))
        self.blocks = nnx.List(Block(config.width, config.heads, rngs) for _ in range(config.depth))
        self.norm = _norm(config.width, rngs)
        self.logits = nnx.Linear(config.width, config.classes, rngs=rngs)
        self.remat = remat

    def __call__(self, x_BHWC: jax.Array) -> jax.Array:
        x_BHWD = self.patches(x_BHWC)
        x_BTD = x_BHWD.reshape(x_BHWD.shape[0], -1, x_BHWD.shape[-1])
        # Not broadcast_to: a sum with a slice of the batch inherits the sharding of the batch.
        class_B1D = jnp.zeros_like(x_BTD[:, :1]) + self.class_token[...].astype(x_BTD.dtype)
        x_BTD = jnp.concatenate([class_B1D, x_BTD], axis=1) + self.positions[...].astype(x_BTD.dtype)
        x_BTD = self.norm(blocks.run(self.blocks, x_BTD, self.remat))
        return self.logits(x_BTD[:, 0])


class Block(nnx.Module):
    """Pre-norm self-attention, then two dense layers with GELU, each with a residual connection.

    GELU has its tanh form, as in the authors' code. (JAX 0.12 refuses `erf` inside `shard_map`.)
    """

    def __init__(self, width: int, heads: int, rngs: nnx.Rngs):
        self.norm1, self.norm2 = _norm(width, rngs), _norm(width, rngs)
        self.qkv, self.out = nnx.Linear(width, 3 * width, rngs=rngs), nnx.Linear(width, width, rngs=rngs)
        self.hidden, self.back = nnx.Linear(width, MLP * width, rngs=rngs), nnx.Linear(MLP * width, width, rngs=rngs)
        self.heads = heads

    def __call__(self, x_BTD: jax.Array) -> jax.Array:
        x_BTD = x_BTD + self._attention(self.norm1(x_BTD))
        return x_BTD + self.back(jax.nn.gelu(self.hidden(self.norm2(x_BTD)), approximate=True))

    def _attention(self, x_BTD: jax.Array) -> jax.Array:
        batch, count, width = x_BTD.shape
        qkv = self.qkv(x_BTD).reshape(batch, count, 3, self.heads, width // self.heads)
        q_BTNK, k_BSNK, v_BSNK = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]
        scores_BNTS = jnp.einsum("btnk,bsnk->bnts", q_BTNK, k_BSNK).astype(jnp.float32)
        weight_BNTS = jax.nn.softmax(scores_BNTS * (width // self.heads) ** -0.5, axis=-1).astype(x_BTD.dtype)
        mixed_BTNK = jnp.einsum("bnts,bsnk->btnk", weight_BNTS, v_BSNK)
        return self.out(mixed_BTNK.reshape(batch, count, width))


def tokens(config: ConfigDict) -> int:
    """The patches of an image and the class token."""
    return (config.size // config.patch) ** 2 + 1


def layer_flops(config: ConfigDict) -> list[float]:
    """Forward FLOPs of each layer, one image; the attention's two products are one layer."""
    count, width = tokens(config), config.width
    attention = 2 * 2.0 * count * count * width
    block = [
        count * dense(width, 3 * width),
        attention,
        count * dense(width, width),
        count * dense(width, MLP * width),
        count * dense(MLP * width, width),
    ]
    patches = (count - 1) * dense(3 * config.patch**2, width)
    return [patches, *block * config.depth, dense(width, config.classes)]


def _norm(width: int, rngs: nnx.Rngs) -> nnx.LayerNorm:
    """A LayerNorm with float32 statistics in two passes: the mean of squares minus the squared mean loses digits."""
    return nnx.LayerNorm(width, epsilon=EPSILON, use_fast_variance=False, rngs=rngs)


def _check(config: ConfigDict) -> None:
    if config.patch < 1 or config.size % config.patch or config.size < config.patch:
        size = max(1, round(config.size / max(1, config.patch))) * max(1, config.patch)
        raise UserError(
            f"--config.model.size={config.size} is not a multiple of --config.model.patch={config.patch}: use {size}."
        )
    if config.heads < 1 or config.width % config.heads:
        raise UserError(
            f"--config.model.heads={config.heads} does not divide --config.model.width={config.width}: "
            f"use 1, for example."
        )
