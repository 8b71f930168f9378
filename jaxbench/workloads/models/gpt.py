# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A decoder-only transformer, GPT-2's architecture: learned positions, pre-normalization, tanh-GELU, tied embedding.

Radford et al., "Language Models are Unsupervised Multitask Learners", 2019, without dropout. Settings add the products
of Llama: a gated perceptron (Shazeer, arXiv:2002.05202) and fewer heads of keys and values (Ainslie et al.,
arXiv:2305.13245).

A mixture of experts can replace the perceptron of each block: each position is routed to one expert. Fedus et al.,
"Switch Transformers", arXiv:2101.03961: a position goes to the expert with the largest router probability, and the
output of the expert is multiplied by that probability. Positions beyond the capacity of an expert are dropped (the
residual stream remains), and a loss term balances the load. The capacity is per sequence, as for the groups of Lepikhin
et al., "GShard", arXiv:2006.16668, so dropping does not depend on the sharding of the batch.

`partition` splits the model over devices: the axes of its parameters, the communication of its layers, and its pipeline
stages.

Axes: B examples, T positions (S those attended to), D width, N heads, K heads of keys and values, H head width, F
hidden width, V vocabulary, E experts (after the exchange, those of a device), C capacity. In the formulas: b examples
of a micro-batch on a device, t positions, d width, l blocks; act = b t d numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax.ad_checkpoint import checkpoint_name
from ml_collections import ConfigDict

from jaxbench.core.workload import Batch, CollectiveBounds, DeviceShare, Metrics, Partition, PyTree, Stages
from jaxbench.errors import UserError, did_you_mean
from jaxbench.workloads import sharding_context
from jaxbench.workloads.adapters import from_nnx
from jaxbench.workloads.flops import dense
from jaxbench.workloads.fusion_fence import materialized_gradient
from jaxbench.workloads.losses import PerPosition, score
from jaxbench.workloads.models import sharded_layers
from jaxbench.workloads.models.attention import KERNELS, causal
from jaxbench.workloads.models.blocks import run_blocks
from jaxbench.workloads.models.ring import exchanged, group_size
from jaxbench.workloads.models.sharded_layers import Vocabulary, column, columns, row, score_bytes

EXPANSION = 4  # hidden width of a block's perceptron, in widths

# GPT-2's vocabulary is odd. 47 rows pad its embedding to the next multiple of 128, which divides over devices and fills
# the tiles of a product: "small" has 124,439,808 parameters and 36,096 more that stay zero.
ROWS = 50304
CAPACITY_FACTOR = 1.25  # Switch's default: total capacity of all experts / positions of the sequence
BALANCE = 0.01  # weight of the balance loss, Switch's alpha
# Logical axes by dimension. All else (positions, norms, biases of row-parallel products, router) is replicated.
AXES: dict[str, tuple[str | None, ...]] = {
    "tokens": ("vocab", None),
    "blocks/*/attention/qkv/kernel": (None, None, "heads", None),
    "blocks/*/attention/qkv/bias": (None, "heads", None),
    "blocks/*/attention/grouped/kernel": (None, "heads", None, None),
    "blocks/*/attention/grouped/bias": ("heads", None, None),
    "blocks/*/attention/out/kernel": ("heads", None, None),
    "blocks/*/perceptron/up/kernel": (None, "hidden"),
    "blocks/*/perceptron/up/bias": ("hidden",),
    "blocks/*/perceptron/gate/kernel": (None, "hidden"),
    "blocks/*/perceptron/gate/bias": ("hidden",),
    "blocks/*/perceptron/down/kernel": ("hidden", None),
}
# The perceptron of a block with experts, which replaces that of AXES.
EXPERTS: dict[str, tuple[str | None, ...]] = {
    "blocks/*/perceptron/up_kernel": ("experts", None, None),
    "blocks/*/perceptron/up_bias": ("experts", None),
    "blocks/*/perceptron/down_kernel": ("experts", None, None),
    "blocks/*/perceptron/down_bias": ("experts", None),
}


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


def dimensions(config: ConfigDict) -> Dimensions:
    """The shape of ``config.preset``, with each number that is not 0 in the config replaced.

    Raises:
      UserError: no such preset, heads that do not divide the width, or fewer rows than words.
    """
    if config.preset not in PRESETS:
        raise UserError(f"--config.model.preset={config.preset} is unknown: {did_you_mean(config.preset, PRESETS)}")
    # 0 in a config means "as the preset", so that one config block serves all presets.
    fields = {field: config.get(field, 0) or value for field, value in vars(PRESETS[config.preset]).items()}
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
    if sizes.experts and (sizes.gated or sizes.rms):  # else the model would silently have neither
        raise UserError(
            f"--config.model.experts={sizes.experts} have biases and no gate: use gated=0 and rms=0 with them."
        )
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
            k_BKTH, v_BKTH = all_BKGTH[:, :, -2], all_BKGTH[:, :, -1]
        else:
            q_BNTH, k_BKTH, v_BKTH = jnp.transpose(column(self.qkv, x_BTD), (2, 0, 3, 1, 4))
        q_BNTH, k_BKTH = checkpoint_name(q_BNTH, "query_proj"), checkpoint_name(k_BKTH, "key_proj")
        mixed_BNTH = causal(q_BNTH, k_BKTH, checkpoint_name(v_BKTH, "value_proj"), self.kernel)
        return checkpoint_name(row(self.out, jnp.transpose(mixed_BNTH, (0, 2, 1, 3))), "out_proj")


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
            gate_BTF, up_BTF = checkpoint_name(columns((self.gate, self.up), x_BTD), "mlpwi")
            return checkpoint_name(row(self.down, jax.nn.silu(gate_BTF) * up_BTF), "mlpwo")
        up_BTF = checkpoint_name(column(self.up, x_BTD), "mlpwi")
        return checkpoint_name(row(self.down, jax.nn.gelu(up_BTF, approximate=True)), "mlpwo")


def capacity(context: int, experts: int) -> int:
    """The number of positions of one sequence of length `context` that one expert takes."""
    return math.ceil(CAPACITY_FACTOR * context / experts)


class Routing(nnx.Variable):
    """(share of positions dropped, balance loss) of the latest call, float32 (2,)."""


class Mixture(nnx.Module):
    """A mixture of experts in place of a block's perceptron, (B, T, D) to (B, T, D)."""

    def __init__(self, shape: Dimensions, rngs: nnx.Rngs):
        width, hidden, experts = shape.width, shape.between, shape.experts
        self.capacity, self.experts = capacity(shape.context, experts), experts
        draw, narrow = jax.random.normal, math.sqrt(2 * shape.layers)  # as `_linear` draws its kernels
        self.router = nnx.Param(0.02 * draw(rngs.params(), (width, experts)))
        self.up_kernel = nnx.Param(0.02 * draw(rngs.params(), (experts, width, hidden)))
        self.up_bias = nnx.Param(jnp.zeros((experts, hidden)))
        self.down_kernel = nnx.Param(0.02 / narrow * draw(rngs.params(), (experts, hidden, width)))
        self.down_bias = nnx.Param(jnp.zeros((experts, width)))
        # A variable instead of a second result, so that a block is called alike with and without experts.
        self.routing = Routing(jnp.zeros(2))

    def __call__(self, x_BTD: jax.Array) -> jax.Array:
        # float32 also for a model in bfloat16: a rounded probability could change the chosen expert.
        probability_BTE = jax.nn.softmax((x_BTD @ self.router[...]).astype(jnp.float32))
        slot_BTEC, share, balance = routed(probability_BTE, self.capacity)
        self.routing[...] = jnp.stack([1 - share, balance])
        # Positions are moved to slots by a product with zeros and ones, so no shape depends on the routing.
        slot_BTEC = slot_BTEC.astype(x_BTD.dtype)
        inputs_BECD = _exchanged(jnp.einsum("btec,btd->becd", slot_BTEC, x_BTD), outward=True)
        hidden = jnp.einsum("becd,edf->becf", inputs_BECD, self.up_kernel[...]) + self.up_bias[...][:, None]
        hidden = checkpoint_name(hidden, "mlpwi")
        outputs = jnp.einsum("becf,efd->becd", jax.nn.gelu(hidden, approximate=True), self.down_kernel[...])
        outputs = checkpoint_name(outputs + self.down_bias[...][:, None], "mlpwo")
        outputs_BECD = _exchanged(outputs, outward=False)
        # The choice itself has no gradient: the prediction's loss trains the router through this factor.
        probability_BT1 = jnp.max(probability_BTE, -1, keepdims=True).astype(x_BTD.dtype)
        return probability_BT1 * jnp.einsum("btec,becd->btd", slot_BTEC, outputs_BECD)


def routed(probability_BTE: jax.Array, capacity: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(1 where a position has a slot of an expert, (B, T, E, C); share of positions with a slot; balance loss).

    The balance loss is E times a sum over experts: the share of positions
    routed to the expert times its mean probability. It is 1 if all experts are used equally (Switch, equation 4), and
    is averaged over B.
    """
    experts = probability_BTE.shape[-1]
    chosen_BTE = jax.nn.one_hot(jnp.argmax(probability_BTE, -1), experts)
    # By sequence and in its order, so that what is dropped does not depend on the mesh: one device is a reference.
    before_BTE = jnp.cumsum(chosen_BTE, 1) - chosen_BTE  # earlier positions with the same expert
    slot_BT = jnp.sum(before_BTE * chosen_BTE, -1).astype(jnp.int32)
    slot_BTEC = chosen_BTE[..., None] * jax.nn.one_hot(slot_BT, capacity)[:, :, None]  # no slot beyond the capacity
    balance = experts * jnp.mean(jnp.sum(jnp.mean(chosen_BTE, 1) * jnp.mean(probability_BTE, 1), -1))
    return slot_BTEC, jnp.mean(jnp.sum(slot_BTEC, (2, 3))), balance


def _exchanged(x_BECD: jax.Array, *, outward: bool) -> jax.Array:
    """Sends inputs to their experts, (B, E, C, D) to (B of all devices, E of this device, C, D), or outputs back."""
    axis = sharding_context.current().expert
    if axis is None:
        return x_BECD
    return jax.lax.all_to_all(x_BECD, axis, *((1, 0) if outward else (0, 1)), tiled=True)


def balance_loss(model_state: Any) -> tuple[jax.Array, dict[str, jax.Array]]:
    """(term of the loss, {"dropped": share of positions dropped}) of the latest call of a model with mixtures."""
    leaves = [leaf for path, leaf in jax.tree.leaves_with_path(model_state) if "routing" in jax.tree_util.keystr(path)]
    dropped, balance = jnp.mean(jnp.stack(leaves), 0)
    return BALANCE * len(leaves) * balance, {"dropped": dropped}


class Block(nnx.Module):
    """x + attention(norm(x)), then x + perceptron(norm(x))."""

    def __init__(self, shape: Dimensions, kernel: str, rngs: nnx.Rngs):
        self.norm_attention = norm(shape, rngs)
        self.attention = Attention(shape, kernel, rngs)
        self.norm_perceptron = norm(shape, rngs)
        self.perceptron = Mixture(shape, rngs) if shape.experts else Perceptron(shape, rngs)

    def __call__(self, x_BTD: jax.Array) -> jax.Array:
        # Each sum of the residual stream has its gradient in memory: see `materialized_gradient`.
        x_BTD = checkpoint_name(materialized_gradient(x_BTD), "decoder_layer_input")
        x_BTD = materialized_gradient(x_BTD + self.attention(self.norm_attention(x_BTD)))
        return x_BTD + self.perceptron(self.norm_perceptron(x_BTD))


class GPT(nnx.Module):
    """Token numbers (B, T), T at most the context, to logits (B, T, V), or to what `Vocabulary.scored` has for them."""

    def __init__(self, config: ConfigDict, rngs: nnx.Rngs, *, remat: str = "none"):
        """config: what `dimensions` reads. remat: as `blocks.run_blocks` takes it."""
        sizes = dimensions(config)
        normal = jax.random.normal
        words = 0.02 * normal(rngs.params(), (sizes.vocab, sizes.width))
        padding = sizes.rows - sizes.vocab
        # Padding starts at zero and stays there, because it has no gradient and no update.
        self.tokens = nnx.Param(jnp.pad(words, ((0, padding), (0, 0))) if padding else words)
        self.positions = nnx.Param(0.01 * normal(rngs.params(), (sizes.context, sizes.width)))
        self.blocks = nnx.List(Block(sizes, kernel(config), rngs) for _ in range(sizes.layers))
        self.norm = norm(sizes, rngs)
        self.remat, self.words = remat, sizes.vocab
        self.deterministic = False  # `eval()` sets it

    def __call__(self, tokens_BT: jax.Array) -> jax.Array | PerPosition:
        embedding = Vocabulary(self.tokens[...], tokens_BT, self.words)
        x_BTD = embedded(embedding, self.positions[...], tokens_BT.shape[1])
        x_BTD = self.norm(run_blocks(self.blocks, x_BTD, self.remat))
        return embedding.scored(x_BTD, recompute=self.remat != "none" and not self.deterministic)


def embedded(embedding: Vocabulary, positions_TD: jax.Array, local_positions: int) -> jax.Array:
    """The first block's input, (B, T, D). local_positions: number of positions on a device."""
    # A ring has the positions in another order, and sequence parallelism splits them once more.
    place_TD = sharding_context.own_positions(positions_TD[: sharding_context.global_count(local_positions)], axis=0)
    return embedding.rows() + sharding_context.sequence_shard(place_TD)


def norm(shape: Dimensions, rngs: nnx.Rngs) -> nnx.LayerNorm | nnx.RMSNorm:
    """RMSNorm or LayerNorm, with float32 statistics whatever the model's number format."""
    if shape.rms:
        return nnx.RMSNorm(shape.width, epsilon=1e-5, rngs=rngs)
    # In two passes: the mean of squares minus the squared mean loses digits.
    return nnx.LayerNorm(shape.width, epsilon=1e-5, use_fast_variance=False, rngs=rngs)


def _linear(
    inputs: tuple[int, ...], outputs: tuple[int, ...], *, residuals: int = 1, bias: bool = True, rngs: nnx.Rngs
) -> nnx.LinearGeneral:
    """A kernel of (*inputs, *outputs) with GPT-2's initial values, divided by the root of the number of `residuals`."""
    # Every block adds to the residual stream; with smaller outputs the sum is as large as one of them at the start.
    initial = nnx.initializers.normal(0.02 / math.sqrt(residuals))
    axes = tuple(range(-len(inputs), 0))
    return nnx.LinearGeneral(inputs, outputs, axis=axes, kernel_init=initial, use_bias=bias, rngs=rngs)


def layer_flops(config: ConfigDict, *, causal: bool = True) -> list[float]:
    """Forward FLOPs of each product, one example of `context` positions.

    causal: the two products of attention (queries by keys, weights by values) count half; False: in full, as the
    unsplit model computes them. The embedding lookup and the padding of the vocabulary do not count. With experts, each
    position counts one expert and the router.
    """
    sizes = dimensions(config)
    t, d = sizes.context, sizes.width
    inner, kv = sizes.heads * sizes.head, (sizes.kv_heads or sizes.heads) * sizes.head
    attention = 2 * t * dense(inner, t) / (2 if causal else 1)  # half of the scores need not be computed
    perceptron = (3 if sizes.gated else 2) * t * dense(d, sizes.between)
    block = [t * dense(d, inner + 2 * kv), attention, t * dense(inner, d), perceptron]
    block += [t * dense(d, sizes.experts)] if sizes.experts else []
    return [*block * sizes.layers, t * dense(d, sizes.vocab)]


def padding_flops(config: ConfigDict) -> float:
    """FLOPs of one example that experts do beyond one expert for each position, forward and backward.

    Places without a position are multiplied, too, and so are the zeros and ones that move positions to places and back.
    That choice has no gradient, so each of the two moves is two products and not three.
    """
    sizes = dimensions(config)
    if not sizes.experts:
        return 0.0
    places = sizes.experts * capacity(sizes.context, sizes.experts)
    empty = 3 * 2 * (places - sizes.context) * dense(sizes.width, sizes.between)
    moved = 2 * 2 * sizes.context * dense(places, sizes.width)
    return sizes.layers * (empty + moved)


def partition(config: ConfigDict, *, remat: str = "none", weights: str | None = None) -> Partition:
    """The Partition of a GPT. config: as `dimensions` reads it. remat: the lever. weights: as in
    `losses.next_token`."""
    sizes = dimensions(config)
    dense = {path: axes for path, axes in AXES.items() if "perceptron" not in path}
    return Partition(
        axes={**dense, **EXPERTS} if sizes.experts else AXES,
        collective_bounds=partial(collective_bounds, sizes, recomputed=remat != "none"),
        # Experts take positions by whole sequences, so neither a ring nor sequence parallelism may split them.
        positions=0 if sizes.experts else sizes.context,
        # `Stages.block` returns only x, but each mixture adds a term to the loss.
        stages=None if sizes.experts else pipeline_stages(config, remat, weights),
    )


def collective_bounds(shape: Dimensions, share: DeviceShare, *, recomputed: bool) -> CollectiveBounds:
    """The expected communication of one forward and backward pass on one device."""
    positions_held = share.examples * shape.context // share.over("context")  # positions of all examples on a device
    bounds: CollectiveBounds = {}
    recomputed |= share.recomputed
    if share.over("tensor") > 1:
        bounds |= _tensor(shape, share, positions_held, recomputed=recomputed)
    ring = share.over("context")
    if ring > 1:
        queries, keys = (heads // share.over("tensor") for heads in (shape.heads, shape.kv_heads or shape.heads))
        part = positions_held * shape.head  # of one head of keys, or of values, of one block
        # Keys and values of the other devices come in both passes. In the backward pass their gradients return: once
        # around the ring of groups, if there are several, and then to the other devices of the group.
        group = group_size(ring, queries, keys)
        returned = (ring if ring > group else 0) + group - 1
        once, back = 2 * (ring - 1) * keys * part, 2 * (ring - 1 + returned) * keys * part
        kind = "collective-permute"
        if share.ulysses:  # queries, keys and values to their heads, and the result back; and the gradients
            both_ways = 2 * (queries + exchanged(queries, keys, ring)) * part
            kind, once, back = "all-to-all", both_ways, both_ways
        bounds[kind] = shape.layers * (once + back), shape.layers * (once + back + recomputed * once)
    if share.over("expert") > 1:
        sent = share.examples * shape.experts * capacity(shape.context, shape.experts) * shape.width
        # To the experts and back, in both passes; a recomputed forward pass sends again.
        bounds["all-to-all"] = shape.layers * 4 * sent, shape.layers * (4 + 2 * recomputed) * sent
    return bounds


def _tensor(shape: Dimensions, share: DeviceShare, positions_held: int, *, recomputed: bool) -> CollectiveBounds:
    """The expected communication over `tensor`.

    There are four sums of activations for each block (two with experts, which are not split), one for the embedding
    lookup, one for the gradient of the scores' input, and four numbers per position for the loss. If positions are
    split, each sum becomes a reduce-scatter and an all-gather. The gradients of replicated parameters are then summed,
    because each device has only some positions.
    """
    act, blocks = positions_held * shape.width, share.blocks or shape.layers
    backward = "backward" in share.passes
    products = 1 if shape.experts else 2  # of a block that end in a sum: attention, and the perceptron
    # Recomputed forward passes repeat their sums, if the compiler does not reuse the first.
    loss, more = backward * 4 * positions_held, backward * recomputed * products * blocks
    # Of a block of scores that is computed again, the largest score and the sum of exponentials are exchanged again.
    large = score_bytes(positions_held, shape.rows // share.over("tensor")) > sharded_layers.WHOLE_BYTES
    again = backward * (recomputed and large) * 2 * positions_held
    sums = len(share.passes) * (products * blocks + 1)
    if not share.sequence:
        return {"all-reduce": (sums * act + loss, (sums + more) * act + loss + again)}
    norm, bias = (1, 0) if shape.rms else (2, 1)  # vectors of a normalisation, and of a product that is split by rows
    vectors = shape.layers * 2 * (norm + bias) + norm
    # A pipeline sums them itself, once a step and not in each pass of its blocks.
    partly = 0 if share.blocks else (vectors + shape.context // share.over("context")) * shape.width
    size = share.over("tensor")
    return {
        "all-gather": (sums * act, (sums + more) * act),
        "reduce-scatter": (sums * act // size, (sums + more) * act // size),
        "all-reduce": (loss + partly, loss + partly + again),
    }


def pipeline_stages(config: ConfigDict, remat: str, weights: str | None = None) -> Stages:
    """The blocks, with the embedding as prologue and the norm, scores and loss as epilogue."""
    sizes = dimensions(config)
    # One block for all: blocks differ only in their parameters, which a stage passes in.
    block = from_nnx(partial(Block, sizes, kernel(config)))
    last_norm = from_nnx(partial(norm, sizes))

    def first(params: PyTree, x: Any, batch: Batch, key: jax.Array) -> jax.Array:
        del x, key
        tokens = sharding_context.own_positions(batch["tokens"][:, :-1])
        return embedded(Vocabulary(params["tokens"], tokens), params["positions"], tokens.shape[1])

    def middle(params: PyTree, x: jax.Array, batch: Batch, key: jax.Array) -> jax.Array:
        del batch, key
        return block.apply(params, {}, x)[0]

    def last(params: PyTree, x: jax.Array, batch: Batch, key: jax.Array) -> tuple[Any, Metrics]:
        del key
        tokens = sharding_context.own_positions(batch["tokens"][:, :-1])
        embedding, x = Vocabulary(params["tokens"], tokens, sizes.vocab), last_norm.apply(params["norm"], {}, x)[0]
        return score(embedding.scored(x, recompute=remat != "none"), batch, weights=weights)

    return Stages(first=first, block=middle, last=last, remat=remat)
