# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A decoder-only transformer, GPT-2's architecture: learned positions, pre-normalization, tanh-GELU, tied embedding.

Radford et al., "Language Models are Unsupervised Multitask Learners", 2019, without dropout. Settings add the products
of Llama: a gated perceptron (Shazeer, arXiv:2002.05202) and fewer heads of keys and values (Ainslie et al.,
arXiv:2305.13245).
Axes: B examples, T positions (S those attended to), D width, N heads, K heads of keys and values, H head width, F
hidden width, V vocabulary.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from flax import nnx
from ml_collections import ConfigDict

from jaxbench.errors import UserError, did_you_mean
from jaxbench.workloads import positions
from jaxbench.workloads.flops import dense
from jaxbench.workloads.models import blocks
from jaxbench.workloads.models.attention import KERNELS, causal
from jaxbench.workloads.models.materialized_gradient import materialized_gradient
from jaxbench.workloads.models.mixture import Mixture, capacity
from jaxbench.workloads.models.tensor_parallel import Vocabulary, column, columns, row

EXPANSION = 4  # hidden width of a block's perceptron, in widths


@dataclass(frozen=True)
class Dimensions:
    layers: int
    width: int
    heads: int
    context: int
    vocab: int
    experts: int = 0  # per block; 0: one plain perceptron
    padded_vocab: int = 0  # rows of the embedding, padding included; 0: no padding
    hidden: int = 0  # hidden width of a block's perceptron; 0: EXPANSION x width
    gated: int = 0  # 1: silu(gate) x up instead of GELU(up)
    kv_heads: int = 0  # heads of keys and values, each for heads / kv_heads query heads; 0: heads
    head_width: int = 0  # 0: width / heads
    rms: int = 0  # 1: RMSNorm instead of LayerNorm, and no biases

    @property
    def rows(self) -> int:
        """The rows of the embedding."""
        return self.padded_vocab or self.vocab

    @property
    def head(self) -> int:
        """The width of a head."""
        return self.head_width or self.width // self.heads

    @property
    def between(self) -> int:
        """The hidden width of a block's perceptron."""
        return self.hidden or EXPANSION * self.width

    @property
    def grouped(self) -> bool:
        """Whether several heads share keys and values."""
        return self.kv_heads not in (0, self.heads)


# GPT-2's vocabulary is odd. 47 rows pad its embedding to the next multiple of 128, which divides over devices and fills
# the tiles of a product: "small" has 124,439,808 parameters and 36,096 more that stay zero.
ROWS = 50304

# GPT-2's four; then, with its vocabulary, those of table 2.1 of Brown et al., arXiv:2005.14165: "1b" has the layers and
# the width of GPT-3 XL (1.3B, with 16 heads: the table's 24 do not divide 2048), "7b" is GPT-3 6.7B.
PRESETS = {
    "tiny": Dimensions(4, 128, 4, 128, 256),
    "small": Dimensions(12, 768, 12, 1024, 50257, padded_vocab=ROWS),
    "medium": Dimensions(24, 1024, 16, 1024, 50257, padded_vocab=ROWS),
    "large": Dimensions(36, 1280, 20, 1024, 50257, padded_vocab=ROWS),
    "xl": Dimensions(48, 1600, 25, 1024, 50257, padded_vocab=ROWS),
    "1b": Dimensions(24, 2048, 16, 2048, 50257, padded_vocab=ROWS),
    "7b": Dimensions(32, 4096, 32, 2048, 50257, padded_vocab=ROWS),
}


def shape(config: ConfigDict) -> Dimensions:
    """The shape of ``config.preset``, with each number that is not 0 in the config replaced.

    Raises:
      UserError: no such preset, a negative number, heads that do not divide the width, or fewer rows than words.
    """
    if config.preset not in PRESETS:
        raise UserError(f"--config.model.preset={config.preset} is unknown: {did_you_mean(config.preset, PRESETS)}")
    fields = {}
    for field, value in vars(PRESETS[config.preset]).items():
        override = config.get(field, 0)
        if override < 0:
            raise UserError(f"--config.model.{field}={override} is negative: use 0 for the preset's {value}.")
        fields[field] = override or value
    if config.get("vocab", 0) and not config.get("padded_vocab", 0):
        fields["padded_vocab"] = 0  # the preset's padding is for its own vocabulary
    sizes = Dimensions(**fields)
    if sizes.rows < sizes.vocab:
        raise UserError(
            f"--config.model.padded_vocab={sizes.rows} is less than the vocabulary of {sizes.vocab}: use "
            f"{-(-sizes.vocab // 128) * 128}, for example."
        )
    if sizes.width % sizes.heads and not sizes.head_width:
        raise UserError(
            f"--config.model.heads={sizes.heads} does not divide the width {sizes.width}: use "
            f"{_divisor(sizes.width, sizes.heads)}, for example."
        )
    if sizes.kv_heads and sizes.heads % sizes.kv_heads:
        raise UserError(
            f"--config.model.kv_heads={sizes.kv_heads} does not divide the {sizes.heads} heads: use "
            f"{_divisor(sizes.heads, sizes.kv_heads)}, for example."
        )
    if sizes.gated not in (0, 1) or (sizes.gated and sizes.experts):
        raise UserError(
            f"--config.model.gated={sizes.gated} is not 0 or 1, or the model has experts: they have no gate."
        )
    if sizes.rms not in (0, 1) or (sizes.rms and sizes.experts):
        raise UserError(f"--config.model.rms={sizes.rms} is not 0 or 1, or the model has experts, which have biases.")
    return sizes


def _divisor(number: int, near: int) -> int:
    """The largest divisor of a number that is smaller than `near`."""
    return max(n for n in range(1, max(2, near)) if number % n == 0)


def kernel(config: ConfigDict) -> str:
    """``config.attention``, the name of the attention kernel. Raises UserError for an unknown name."""
    name = config.get("attention", KERNELS[0])
    if name not in KERNELS:
        raise UserError(f"--config.model.attention={name} is unknown: {did_you_mean(name, KERNELS)}")
    return str(name)


class Attention(nnx.Module):
    """Causal multi-head attention. The three projections are one product."""

    def __init__(self, shape: Dimensions, kernel: str, rngs: nnx.Rngs):
        """kernel: as `attention.causal` takes it."""
        heads, self.kernel, bias = (shape.heads, shape.head), kernel, not shape.rms
        self.shared = shape.heads // shape.kv_heads if shape.grouped else 0
        if self.shared:  # for each head of keys and values: the queries that share it, its keys, its values
            self.grouped = _linear((shape.width,), (shape.kv_heads, self.shared + 2, shape.head), bias=bias, rngs=rngs)
        else:
            self.qkv = _linear((shape.width,), (3, *heads), bias=bias, rngs=rngs)
        self.out = _linear(heads, (shape.width,), residuals=2 * shape.layers, bias=bias, rngs=rngs)

    def __call__(self, x_BTD: jax.Array) -> jax.Array:
        if self.shared:
            all_BKGTH = jnp.transpose(column(self.grouped, x_BTD), (0, 2, 3, 1, 4))  # G: shared + 2
            q_BNTH = all_BKGTH[:, :, :-2].reshape(all_BKGTH.shape[0], -1, *all_BKGTH.shape[3:])
            k_BNTH, v_BNTH = (jnp.repeat(all_BKGTH[:, :, at], self.shared, axis=1) for at in (-2, -1))
        else:
            q_BNTH, k_BNTH, v_BNTH = jnp.transpose(column(self.qkv, x_BTD), (2, 0, 3, 1, 4))
        mixed_BNTH = causal(q_BNTH, k_BNTH, v_BNTH, self.kernel)
        return row(self.out, jnp.transpose(mixed_BNTH, (0, 2, 1, 3)))


class Perceptron(nnx.Module):
    """Two dense layers with tanh-GELU between them; if gated, silu of a third layer gates the first instead."""

    def __init__(self, shape: Dimensions, rngs: nnx.Rngs):
        bias = not shape.rms
        self.up = _linear((shape.width,), (shape.between,), bias=bias, rngs=rngs)
        self.gated = bool(shape.gated)
        if self.gated:
            self.gate = _linear((shape.width,), (shape.between,), bias=bias, rngs=rngs)
        self.down = _linear((shape.between,), (shape.width,), residuals=2 * shape.layers, bias=bias, rngs=rngs)

    def __call__(self, x_BTD: jax.Array) -> jax.Array:
        if self.gated:
            gate_BTF, up_BTF = columns((self.gate, self.up), x_BTD)
            return row(self.down, jax.nn.silu(gate_BTF) * up_BTF)
        return row(self.down, jax.nn.gelu(column(self.up, x_BTD), approximate=True))


class Block(nnx.Module):
    """x + attention(norm(x)), then x + perceptron(norm(x))."""

    def __init__(self, shape: Dimensions, kernel: str, rngs: nnx.Rngs):
        self.norm_attention = norm(shape, rngs)
        self.attention = Attention(shape, kernel, rngs)
        self.norm_perceptron = norm(shape, rngs)
        self.perceptron = _mixture(shape, rngs) if shape.experts else Perceptron(shape, rngs)

    def __call__(self, x_BTD: jax.Array) -> jax.Array:
        x_BTD = materialized_gradient(x_BTD)
        x_BTD = materialized_gradient(x_BTD + self.attention(self.norm_attention(x_BTD)))
        return x_BTD + self.perceptron(self.norm_perceptron(x_BTD))


class GPT(nnx.Module):
    """Token numbers (B, T), T at most the context, to logits (B, T, V)."""

    def __init__(self, config: ConfigDict, rngs: nnx.Rngs, *, remat: str = "none"):
        """config: what `shape` reads. remat: as `blocks.run` takes it."""
        sizes = shape(config)
        normal = jax.random.normal
        words = 0.02 * normal(rngs.params(), (sizes.vocab, sizes.width))
        padding = sizes.rows - sizes.vocab
        self.tokens = nnx.Param(jnp.pad(words, ((0, padding), (0, 0))) if padding else words)
        self.positions = nnx.Param(0.01 * normal(rngs.params(), (sizes.context, sizes.width)))
        self.blocks = nnx.List(Block(sizes, kernel(config), rngs) for _ in range(sizes.layers))
        self.norm = norm(sizes, rngs)
        self.remat, self.words = remat, sizes.vocab

    def __call__(self, tokens_BT: jax.Array) -> jax.Array:
        embedding = Vocabulary(self.tokens[...], tokens_BT, self.words)
        x_BTD = embedded(embedding, self.positions[...], tokens_BT.shape[1])
        return embedding.scores(self.norm(blocks.run(self.blocks, x_BTD, self.remat)))


def embedded(embedding: Vocabulary, positions_TD: jax.Array, local_positions: int) -> jax.Array:
    """The first block's input, (B, T, D). local_positions: number of positions on a device."""
    place_TD = positions.local(positions_TD[: positions.global_count(local_positions)], axis=0)
    return embedding.rows() + positions.sequence_shard(place_TD, axis=0)


def norm(shape: Dimensions, rngs: nnx.Rngs) -> nnx.LayerNorm | nnx.RMSNorm:
    """RMSNorm or LayerNorm, with float32 statistics whatever the model's number format.

    LayerNorm computes them in two passes.
    """
    if shape.rms:
        return nnx.RMSNorm(shape.width, epsilon=1e-5, rngs=rngs)
    return nnx.LayerNorm(shape.width, epsilon=1e-5, use_fast_variance=False, rngs=rngs)


def _mixture(shape: Dimensions, rngs: nnx.Rngs) -> Mixture:
    places, deviations = capacity(shape.context, shape.experts), (0.02, 0.02 / math.sqrt(2 * shape.layers))
    return Mixture(
        width=shape.width, hidden=shape.between, experts=shape.experts, capacity=places,
        deviations=deviations, rngs=rngs,
    )  # fmt: skip


def _linear(
    inputs: tuple[int, ...], outputs: tuple[int, ...], *, residuals: int = 1, bias: bool = True, rngs: nnx.Rngs
) -> nnx.LinearGeneral:
    """A kernel of (*inputs, *outputs) with GPT-2's initial values, divided by the root of the number of `residuals`."""
    initial = nnx.initializers.normal(0.02 / math.sqrt(residuals))
    axes = tuple(range(-len(inputs), 0))
    return nnx.LinearGeneral(inputs, outputs, axis=axes, kernel_init=initial, use_bias=bias, rngs=rngs)


def layer_flops(config: ConfigDict, *, causal: bool = True) -> list[float]:
    """Forward FLOPs of each product, one example of `context` positions.

    The two products of attention (queries by keys, weights by values) count half, because half of their result is
    masked out and need not be computed. causal=False counts them in full, as the unsplit model computes them. The
    embedding lookup and the padding of the vocabulary do not count. With experts, each position counts one expert and
    the router.
    """
    sizes = shape(config)
    t, d = sizes.context, sizes.width
    inner, kv = sizes.heads * sizes.head, (sizes.kv_heads or sizes.heads) * sizes.head
    attention = 2 * t * dense(inner, t) / (2 if causal else 1)
    perceptron = (3 if sizes.gated else 2) * t * dense(d, sizes.between)
    block = [t * dense(d, inner + 2 * kv), attention, t * dense(inner, d), perceptron]
    block += [t * dense(d, sizes.experts)] if sizes.experts else []
    return [*block * sizes.layers, t * dense(d, sizes.vocab)]
