# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A decoder-only transformer, GPT-2's architecture: learned positions, normalisation first, tanh-GELU, tied embedding.

Radford et al., "Language Models are Unsupervised Multitask Learners", 2019. No dropout.
Axes: B examples, T positions (S those attended to), D width, N heads, H head width, F hidden width, V vocabulary.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from flax import nnx
from ml_collections import ConfigDict

from jaxbench.errors import UserError, did_you_mean
from jaxbench.workloads.flops import dense
from jaxbench.workloads.models import blocks
from jaxbench.workloads.models.per_device import Tied
from jaxbench.workloads.models.stored import stored_gradient

EXPANSION = 4  # hidden width of a block's perceptron, in widths


@dataclass(frozen=True)
class Shape:
    layers: int
    width: int
    heads: int
    context: int
    vocab: int


# GPT-2's four; then, with its vocabulary, those of table 2.1 of Brown et al., arXiv:2005.14165: "1b" has the layers and
# the width of GPT-3 XL (1.3B, with 16 heads: the table's 24 do not divide 2048), "7b" is GPT-3 6.7B.
PRESETS = {
    "tiny": Shape(4, 128, 4, 128, 256),
    "small": Shape(12, 768, 12, 1024, 50257),
    "medium": Shape(24, 1024, 16, 1024, 50257),
    "large": Shape(36, 1280, 20, 1024, 50257),
    "xl": Shape(48, 1600, 25, 1024, 50257),
    "1b": Shape(24, 2048, 16, 2048, 50257),
    "7b": Shape(32, 4096, 32, 2048, 50257),
}


def shape(config: ConfigDict) -> Shape:
    """The numbers of ``config.preset``, each replaced by the config's own where that is not 0.

    Raises:
      UserError: no such preset, a negative number, or heads that do not divide the width.
    """
    if config.preset not in PRESETS:
        raise UserError(f"--config.model.preset={config.preset} is unknown: {did_you_mean(config.preset, PRESETS)}")
    chosen = {}
    for field, value in vars(PRESETS[config.preset]).items():
        if config[field] < 0:
            raise UserError(f"--config.model.{field}={config[field]} is negative: use 0 for the preset's {value}.")
        chosen[field] = config[field] or value
    found = Shape(**chosen)
    if found.width % found.heads:
        legal = max(n for n in range(1, found.heads) if found.width % n == 0)
        raise UserError(
            f"--config.model.heads={found.heads} does not divide the width {found.width}: use {legal}, for example."
        )
    return found


class Attention(nnx.Module):
    """Causal attention of several heads. The three projections are one product; the softmax is float32."""

    def __init__(self, shape: Shape, rngs: nnx.Rngs):
        self.heads = shape.heads
        self.qkv = _linear(shape.width, 3 * shape.width, rngs=rngs)
        self.out = _linear(shape.width, shape.width, residuals=2 * shape.layers, rngs=rngs)

    def __call__(self, x_BTD: jax.Array) -> jax.Array:
        b, t, d = x_BTD.shape
        qkv = _flat(self.qkv, x_BTD).reshape(b, t, 3, self.heads, d // self.heads)
        q_BNTH, k_BNTH, v_BNTH = jnp.transpose(qkv, (2, 0, 3, 1, 4))
        scores_BNTS = jnp.einsum("bnth,bnsh->bnts", q_BNTH * (d // self.heads) ** -0.5, k_BNTH)
        causal_TS = jnp.tril(jnp.ones((t, t), bool))
        scores_BNTS = jnp.where(causal_TS, scores_BNTS.astype(jnp.float32), -jnp.inf)
        weights_BNTS = jax.nn.softmax(scores_BNTS).astype(x_BTD.dtype)
        mixed_BNTH = jnp.einsum("bnts,bnsh->bnth", weights_BNTS, v_BNTH)
        return _flat(self.out, jnp.transpose(mixed_BNTH, (0, 2, 1, 3)).reshape(b, t, d))


class Block(nnx.Module):
    """x + attention(norm(x)), then x + perceptron(norm(x))."""

    def __init__(self, shape: Shape, rngs: nnx.Rngs):
        hidden = EXPANSION * shape.width
        self.norm_attention = _norm(shape.width, rngs)
        self.attention = Attention(shape, rngs)
        self.norm_perceptron = _norm(shape.width, rngs)
        self.up = _linear(shape.width, hidden, rngs=rngs)
        self.down = _linear(hidden, shape.width, residuals=2 * shape.layers, rngs=rngs)

    def __call__(self, x_BTD: jax.Array) -> jax.Array:
        x_BTD = stored_gradient(x_BTD)
        x_BTD = stored_gradient(x_BTD + self.attention(self.norm_attention(x_BTD)))
        hidden_BTF = jax.nn.gelu(_flat(self.up, self.norm_perceptron(x_BTD)), approximate=True)
        return x_BTD + _flat(self.down, hidden_BTF)


class GPT(nnx.Module):
    """Token numbers (B, T), T at most the context, to logits (B, T, V)."""

    def __init__(self, config: ConfigDict, rngs: nnx.Rngs, *, remat: str = "none"):
        """config: what `shape` reads. remat: as `blocks.run` takes it."""
        found = shape(config)
        normal = jax.random.normal
        self.tokens = nnx.Param(0.02 * normal(rngs.params(), (found.vocab, found.width)))
        self.positions = nnx.Param(0.01 * normal(rngs.params(), (found.context, found.width)))
        self.blocks = nnx.List(Block(found, rngs) for _ in range(found.layers))
        self.norm = _norm(found.width, rngs)
        self.remat = remat

    def __call__(self, tokens_BT: jax.Array) -> jax.Array:
        embedding = Tied(self.tokens[...], tokens_BT)
        x_BTD = embedding.rows() + self.positions[: tokens_BT.shape[1]]
        x_BTD = blocks.run(self.blocks, x_BTD, self.remat)
        return embedding.scores(self.norm(x_BTD))


def _flat(layer: nnx.Linear, x_BTD: jax.Array) -> jax.Array:
    """The layer on one axis of examples and positions, (B, T, D) to (B, T, F).

    The gradient of its weights then sums over one axis, for which XLA's CPU compiler has a product almost three times
    as fast as for two.
    """
    return layer(x_BTD.reshape(-1, x_BTD.shape[-1])).reshape(*x_BTD.shape[:-1], -1)


def _linear(inputs: int, outputs: int, *, residuals: int = 1, rngs: nnx.Rngs) -> nnx.Linear:
    """GPT-2's initial values; those that add to the residual stream are smaller by the root of their number."""
    initial = nnx.initializers.normal(0.02 / math.sqrt(residuals))
    return nnx.Linear(inputs, outputs, kernel_init=initial, rngs=rngs)


def _norm(width: int, rngs: nnx.Rngs) -> nnx.LayerNorm:
    """Statistics in float32 and in two passes, whatever the model computes in."""
    return nnx.LayerNorm(width, epsilon=1e-5, use_fast_variance=False, rngs=rngs)


def layer_flops(config: ConfigDict, *, causal: bool = True) -> list[float]:
    """Forward FLOPs of each product, one example of `context` positions.

    The two products of attention (queries by keys, weights by values) count half: half of their result lies in the
    future and is masked out, and need not be computed. causal=False counts them whole, as this model's plain form
    computes them. The lookup is none.
    """
    found = shape(config)
    t, d = found.context, found.width
    attention = 2 * t * dense(d, t) / (2 if causal else 1)
    block = [t * dense(d, 3 * d), attention, t * dense(d, d), 2 * t * dense(d, EXPANSION * d)]
    return [*block * found.layers, t * dense(d, found.vocab)]
