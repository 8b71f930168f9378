# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A GPT that generates: the blocks of `models.gpt` with a cache of keys and values, and weights in narrow formats.

Two programs share one function, `forward`: a prompt fills the cache (`prefill`), then each token reads it (`decode`).
Written without Flax, so that the model of `models.gpt` is an independent reference of its logits.

Axes: B requests, T tokens given, S places of the cache, D width, K heads of keys and values, G the queries of such a
head, its keys and its values, N heads of queries, H head width, F hidden width, V rows of the vocabulary, L layers.
Under tensor parallelism K, N, F and V are those of one device.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from jaxbench.core.trees import ArrayTree
from jaxbench.errors import Unsupported
from jaxbench.workloads.models.gpt import Dimensions

T = TypeVar("T")
INT8_LARGEST, FP8_LARGEST = 127.0, 448.0
# Queries and keys are this much larger than unit variance, so that attention selects few places. With small random
# weights it would average all of them, and a wrong place in the cache would hardly change the logits.
SHARPNESS = 2.0
EPSILON = 1e-5  # of the norms, as in models.gpt
PAGE, PAGES_AT_ONCE = 128, 4  # at most: places of a page, and pages that the paged kernel reads together
DTYPES: dict[str, DTypeLike] = {
    "float32": jnp.float32,
    "bfloat16": jnp.bfloat16,
    "int8": jnp.int8,
    "fp8": jnp.float8_e4m3fn,
}


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Layer:
    """A product. kernel: (*inputs, *outputs) in its stored format. scale: (*outputs,) float32 of an int8 or fp8 kernel;
    None: the kernel has its values. bias: (*outputs,)."""

    kernel: jax.Array
    scale: jax.Array | None
    bias: jax.Array | None


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Norm:
    """LayerNorm, or RMSNorm without a bias; (D,) each."""

    scale: jax.Array
    bias: jax.Array | None


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Block:
    """One block. grouped: (D, K, G, H). out: (N, H, D). up, gate: (D, F). down: (F, D)."""

    norm_attention: Norm
    grouped: Layer
    out: Layer
    norm_perceptron: Norm
    up: Layer
    gate: Layer | None
    down: Layer


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Weights:
    """A decoder. tokens: (V, D), one scale for each row. positions: (S or more, D)."""

    tokens: Layer
    positions: jax.Array
    blocks: tuple[Block, ...]
    norm: Norm


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Cache:
    """Keys and values of all layers, in the layout of `Form`. The scales exist for int8 only, one for each place and
    head, without the axis H."""

    k: tuple[jax.Array, ...]
    v: tuple[jax.Array, ...]
    k_scale: tuple[jax.Array, ...]
    v_scale: tuple[jax.Array, ...]


@dataclass(frozen=True, kw_only=True)
class Form:
    """How a device computes. The ablations leave out a part.

    Attributes:
      dtype: of the activations. cache: the format of the cache.
      layout: "heads": one array (L, B, K, S, H). "positions": one array (L, B, S, K, H). An array for each layer:
        (B, K, S, H) for "split", (K, B, S, H) for "pages".
      attention: "xla" or "cudnn": `jax.nn.dot_product_attention`; "pallas" or, on TPUs, "paged": a kernel of
        `jax.experimental.pallas.ops`.
      axis: the mesh axis of tensor parallelism; None: the device has the whole model.
      communicate: False: partial sums are not summed. attend: False: the cache is neither read nor written.
      between: False: products alone, without norms, activations and the residual stream.
    """

    dtype: DTypeLike
    cache: str
    layout: str = "heads"
    attention: str = "xla"
    axis: str | None = None
    communicate: bool = True
    attend: bool = True
    between: bool = True

    @property
    def per_layer(self) -> bool:
        """Whether the cache has an array for each layer, so that a kernel reads a layer without a copy."""
        return self.layout in ("split", "pages")

    def ordered(self, batch: T, heads: T, places: T) -> tuple[T, T, T]:
        """The leading axes of a layer of the cache in the order of its layout."""
        orders = {"positions": (batch, places, heads), "pages": (heads, batch, places)}
        return orders.get(self.layout, (batch, heads, places))


def noise(seed: jax.Array, shape: tuple[int, ...], deviation: float) -> jax.Array:
    """Uniform float32 numbers of mean 0, from a hash of their places: random keys would take seconds for a large model.

    seed: uint32 scalar.
    """
    x = jax.lax.iota(jnp.uint32, math.prod(shape)).reshape(shape) + seed * jnp.uint32(0x9E3779B9)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x = (x ^ (x >> shift)) * jnp.uint32(factor)
    x = x ^ (x >> 16)
    uniform = x.astype(jnp.float32) * 2.0**-32 - 0.5
    return uniform * (deviation * math.sqrt(12.0))


class _Draws:
    """Random arrays with a seed of their own each."""

    def __init__(self, seed: jax.Array):
        self._seed = seed * jnp.uint32(1009)

    def __call__(self, shape: tuple[int, ...], deviation: float) -> jax.Array:
        self._seed = self._seed + jnp.uint32(1)
        return noise(self._seed, shape, deviation)

    def norm(self, shape: Dimensions) -> Norm:
        scale = 1.0 + self((shape.width,), 0.02)
        return Norm(scale, None if shape.rms else self((shape.width,), 0.02))

    def layer(self, kernel: jax.Array, form: str, inputs: int, *, bias: bool) -> Layer:
        """A kernel in its stored format, with its bias. inputs: the number of its axes that are summed over."""
        drawn = self(kernel.shape[inputs:], 0.02) if bias else None
        return stored(Layer(kernel, None, drawn), form, tuple(range(inputs)))

    def kernel(self, shape: tuple[int, ...], inputs: int) -> jax.Array:
        """Each product keeps the variance of its input."""
        return self(shape, 1 / math.sqrt(math.prod(shape[:inputs])))


def init_block(shape: Dimensions, form: str, seed: jax.Array) -> Block:
    """The random weights of a block in a format of `DTYPES`. seed: of the block, uint32 scalar."""
    draw, kv, bias = _Draws(seed), shape.kv_heads or shape.heads, not shape.rms
    shared, width, hidden = shape.heads // kv, shape.width, shape.between
    sharp = jnp.ones((shared + 2, 1)).at[: shared + 1].set(SHARPNESS)  # queries and keys, not values
    return Block(
        norm_attention=draw.norm(shape),
        grouped=draw.layer(draw.kernel((width, kv, shared + 2, shape.head), 1) * sharp, form, 1, bias=bias),
        out=draw.layer(draw.kernel((shape.heads, shape.head, width), 2), form, 2, bias=bias),
        norm_perceptron=draw.norm(shape),
        up=draw.layer(draw.kernel((width, hidden), 1), form, 1, bias=bias),
        gate=draw.layer(draw.kernel((width, hidden), 1), form, 1, bias=bias) if shape.gated else None,
        down=draw.layer(draw.kernel((hidden, width), 1), form, 1, bias=bias),
    )


def init_ends(shape: Dimensions, form: str, seed: jax.Array) -> tuple[Layer, jax.Array, Norm]:
    """The random weights outside of the blocks: tokens, positions and the last norm."""
    draw = _Draws(seed)
    words = jnp.where(jnp.arange(shape.rows)[:, None] < shape.vocab, draw((shape.rows, shape.width), 1.0), 0.0)
    # A row is looked up and also scored, so each row has a scale.
    tokens = stored(Layer(words, None, None), form, (1,))
    return tokens, plain(draw((shape.context, shape.width), 1.0), form), draw.norm(shape)


def plain(x: jax.Array, form: str) -> jax.Array:
    """An array that is no kernel, in the format of the activations."""
    return x.astype(jnp.float32 if form == "float32" else jnp.bfloat16)


def stored(layer: Layer, form: str, inputs: tuple[int, ...]) -> Layer:
    """A float32 layer in another format. inputs: the axes of its kernel that are summed over."""
    if form in ("float32", "bfloat16"):
        return replace(layer, kernel=layer.kernel.astype(DTYPES[form]))
    values, scale = narrowed(layer.kernel, form, inputs)
    return replace(layer, kernel=values, scale=scale)


def narrowed(x: jax.Array, form: str, over: tuple[int, ...]) -> tuple[jax.Array, jax.Array]:
    """(values in int8 or fp8, float32 scales without the axes `over`): the largest value fills the format."""
    largest = INT8_LARGEST if form == "int8" else FP8_LARGEST
    scale = jnp.maximum(jnp.max(jnp.abs(x.astype(jnp.float32)), over, keepdims=True), 1e-30) / largest
    scaled = x / scale
    values = jnp.round(scaled).astype(jnp.int8) if form == "int8" else scaled.astype(DTYPES[form])
    return values, jnp.squeeze(scale, over)


def restored(layer: Layer, inputs: tuple[int, ...]) -> jax.Array:
    """The kernel in float32."""
    kernel = layer.kernel.astype(jnp.float32)
    return kernel if layer.scale is None else kernel * jnp.expand_dims(layer.scale, inputs)


def product(layer: Layer, x: jax.Array, inputs: int) -> jax.Array:
    """(B, T, *inputs) to (B, T, *outputs), without the bias. inputs: how many axes of the kernel are summed over."""
    rows, outputs = x.shape[:2], layer.kernel.shape[inputs:]
    kernel = layer.kernel.reshape(math.prod(layer.kernel.shape[:inputs]), -1)
    y = x.reshape(rows[0] * rows[1], -1) @ kernel.astype(x.dtype)
    if layer.scale is not None:  # after the product: the kernel is read in its narrow format
        y = (y * layer.scale.reshape(-1)).astype(x.dtype)
    return y.reshape(*rows, *outputs)


def biased(layer: Layer, y: jax.Array) -> jax.Array:
    return y if layer.bias is None else y + layer.bias.astype(y.dtype)


def normalized(norm: Norm, x: jax.Array) -> jax.Array:
    """Statistics are float32 whatever the format of x."""
    wide = x.astype(jnp.float32)
    if norm.bias is not None:
        wide = wide - jnp.mean(wide, -1, keepdims=True)
    wide = wide * jax.lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + EPSILON) * norm.scale
    return (wide if norm.bias is None else wide + norm.bias).astype(x.dtype)


def summed(x: jax.Array, form: Form) -> jax.Array:
    """The all-reduce of a product that is split by its inputs."""
    return x if form.axis is None or not form.communicate else jax.lax.psum(x, form.axis)


def empty_cache(shape: Dimensions, form: Form, batch: int, places: int, *, kv_heads: int) -> Cache:
    """A cache of zeros for `batch` requests. kv_heads: on one device."""
    of_layer = form.ordered(batch, kv_heads, places)
    sizes = of_layer if form.per_layer else (shape.layers, *of_layer)
    count = shape.layers if form.per_layer else 1
    values = tuple(jnp.zeros((*sizes, shape.head), DTYPES[form.cache]) for _ in range(count))
    scales = tuple(jnp.ones(sizes, jnp.float32) for _ in range(count)) if form.cache == "int8" else ()
    return Cache(values, values, scales, scales)


def written(cache: Cache, number: int, position: jax.Array, k: jax.Array, v: jax.Array, form: Form) -> Cache:
    """The cache with keys and values (B, T, K, H) of layer `number` from `position` on."""
    if form.layout == "pages":
        k, v = (jnp.transpose(x, (2, 0, 1, 3)) for x in (k, v))
    elif form.layout != "positions":
        k, v = jnp.swapaxes(k, 1, 2), jnp.swapaxes(v, 1, 2)
    axis = 1 if form.layout == "positions" else 2  # of the positions, in a layer

    def put(arrays: tuple[jax.Array, ...], x: jax.Array) -> tuple[jax.Array, ...]:
        start = [jnp.int32(0)] * x.ndim
        start[axis] = position.astype(jnp.int32)
        if form.per_layer:
            changed = jax.lax.dynamic_update_slice(arrays[number], x.astype(arrays[number].dtype), start)
            return (*arrays[:number], changed, *arrays[number + 1 :])
        (whole,) = arrays
        return (jax.lax.dynamic_update_slice(whole, x[None].astype(whole.dtype), [jnp.int32(number), *start]),)

    if form.cache != "int8":
        return replace(cache, k=put(cache.k, k), v=put(cache.v, v))
    (k_values, k_scale), (v_values, v_scale) = (narrowed(x, "int8", (x.ndim - 1,)) for x in (k, v))
    return Cache(
        put(cache.k, k_values), put(cache.v, v_values), put(cache.k_scale, k_scale), put(cache.v_scale, v_scale)
    )


def layer_of(cache: Cache, number: int, form: Form) -> tuple[jax.Array, jax.Array]:
    """Keys and values of a layer, (B, S, K, H), in the format of the activations."""

    def get(arrays: tuple[jax.Array, ...], scales: tuple[jax.Array, ...]) -> jax.Array:
        x = arrays[number] if form.per_layer else arrays[0][number]
        x = x.astype(form.dtype)
        if scales:
            x = x * (scales[number] if form.per_layer else scales[0][number])[..., None].astype(form.dtype)
        if form.layout == "pages":
            return jnp.transpose(x, (1, 2, 0, 3))
        return x if form.layout == "positions" else jnp.swapaxes(x, 1, 2)

    return get(cache.k, cache.k_scale), get(cache.v, cache.v_scale)


def attended(q: jax.Array, k: jax.Array, v: jax.Array, places: jax.Array, form: Form) -> jax.Array:
    """The attention of one query for each request, (B, 1, N, H), to the first `places` of (B, S, K, H)."""
    lengths = jnp.full(q.shape[:1], places, jnp.int32)
    if form.attention == "paged":
        from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention  # only TPUs have it

        batch, total, heads, width = k.shape
        page = math.gcd(total, PAGE)
        count = total // page
        # XLA drops these transpositions together with those of `layer_of`.
        k, v = (jnp.transpose(x, (2, 0, 1, 3)).reshape(heads, batch * count, page, width) for x in (k, v))
        numbers = jnp.arange(batch * count, dtype=jnp.int32).reshape(batch, count)
        at_once = math.gcd(count, PAGES_AT_ONCE)
        scaled = q[:, 0] * (1 / math.sqrt(width))  # the kernel does not scale
        paged: jax.Array = paged_attention(scaled, k, v, lengths, numbers, pages_per_compute_block=at_once)
        return paged[:, None].astype(q.dtype)
    if form.attention == "pallas":
        from jax.experimental.pallas.ops.gpu import decode_attention  # only GPUs have it

        mixed: jax.Array = decode_attention.gqa(q[:, 0], k, v, kv_seq_len=lengths)
        return mixed[:, None].astype(q.dtype)
    implementation: Literal["xla", "cudnn"] = "cudnn" if form.attention == "cudnn" else "xla"
    return jax.nn.dot_product_attention(q, k, v, key_value_seq_lengths=lengths, implementation=implementation)


def embedded(weights: Weights, tokens: jax.Array, position: jax.Array, form: Form) -> jax.Array:
    """(B, T) to (B, T, D). Each device of a split vocabulary contributes its own rows."""
    table = weights.tokens
    number, local = tokens, table.kernel.shape[0]
    if form.axis is not None:
        number = tokens - jax.lax.axis_index(form.axis) * local
    here = (number >= 0) & (number < local)
    row = jnp.where(here, number, 0)
    x = table.kernel[row].astype(form.dtype)
    if table.scale is not None:
        x = (x * table.scale[row][..., None]).astype(form.dtype)
    x = summed(jnp.where(here[..., None], x, 0), form)
    places = jax.lax.dynamic_slice_in_dim(weights.positions, position, tokens.shape[1])
    return x + places.astype(form.dtype)


def scores(weights: Weights, x: jax.Array, words: int, form: Form) -> jax.Array:
    """(B, D) to float32 logits (B, V), of padding so low that it is never chosen."""
    table = weights.tokens
    logits = jnp.einsum("bd,vd->bv", x, table.kernel.astype(x.dtype), preferred_element_type=jnp.float32)
    logits = logits.astype(jnp.float32)
    if table.scale is not None:
        logits = logits * table.scale
    local = table.kernel.shape[0]
    first = 0 if form.axis is None else jax.lax.axis_index(form.axis) * local
    return jnp.where(first + jnp.arange(local) < words, logits, jnp.finfo(jnp.float32).min)


def chosen(logits: jax.Array, form: Form) -> jax.Array:
    """The greedy next token of each request, (B,) int32. Devices of a split vocabulary exchange their best ones."""
    token = jnp.argmax(logits, -1).astype(jnp.int32)
    if form.axis is None or not form.communicate:
        return token
    best = jnp.max(logits, -1)
    token = token + jax.lax.axis_index(form.axis).astype(jnp.int32) * logits.shape[-1]
    # One message: a float32 and the bits of an int32.
    pair = jnp.stack([best, jax.lax.bitcast_convert_type(token, jnp.float32)])
    every = jax.lax.all_gather(pair, form.axis)  # (devices, 2, B)
    winner = jnp.argmax(every[:, 0], 0)  # the first of equal ones, as on one device
    tokens = jax.lax.bitcast_convert_type(every[:, 1], jnp.int32)
    return jnp.take_along_axis(tokens, winner[None], 0)[0]


def forward(
    weights: Weights, cache: Cache, tokens: jax.Array, position: jax.Array, words: int, form: Form
) -> tuple[Cache, jax.Array]:
    """(the cache with the given tokens, the logits (B, V) after the last of them).

    tokens: (B, T); with T > 1 they begin at position 0, as a prompt does. position: of the first one, int32 scalar.
    """
    x = embedded(weights, tokens, position, form)
    for number, block in enumerate(weights.blocks):
        cache, x = applied(block, cache, number, x, position, form)
    x = x[:, -1]
    if form.between:
        x = normalized(weights.norm, x)
    return cache, scores(weights, x, words, form)


def applied(
    block: Block, cache: Cache, number: int, x: jax.Array, position: jax.Array, form: Form
) -> tuple[Cache, jax.Array]:
    """One block."""
    h = normalized(block.norm_attention, x) if form.between else x
    all_BTKGH = biased(block.grouped, product(block.grouped, h, 1))
    q = all_BTKGH[..., :-2, :].reshape(*x.shape[:2], -1, all_BTKGH.shape[-1])
    k, v = all_BTKGH[..., -2, :], all_BTKGH[..., -1, :]
    if form.attend:
        cache = written(cache, number, position, k, v, form)
        if x.shape[1] > 1:  # a prompt attends to itself
            mixed = jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation="xla")
        else:
            mixed = attended(q, *layer_of(cache, number, form), position + 1, form)
    else:  # the same shapes, and all products are needed
        mixed = q * (jnp.mean(k) + jnp.mean(v)).astype(q.dtype)
    y = biased(block.out, summed(product(block.out, mixed, 2), form))
    x = x + y if form.between else y
    h = normalized(block.norm_perceptron, x) if form.between else x
    up = biased(block.up, product(block.up, h, 1))
    if block.gate is not None:
        gate = biased(block.gate, product(block.gate, h, 1))
        up = jax.nn.silu(gate) * up if form.between else gate + up
    elif form.between:
        up = jax.nn.gelu(up, approximate=True)
    y = biased(block.down, summed(product(block.down, up, 1), form))
    return cache, x + y if form.between else y


def as_gpt(weights: Weights, shape: Dimensions) -> dict[str, ArrayTree]:
    """The same weights as parameters of `models.gpt.GPT` in float32: its forward pass is the reference."""

    def linear(layer: Layer, kernel: jax.Array) -> dict[str, jax.Array]:
        return {"kernel": kernel} | ({} if layer.bias is None else {"bias": layer.bias})

    def norm(each: Norm) -> dict[str, jax.Array]:
        return {"scale": each.scale} | ({} if each.bias is None else {"bias": each.bias})

    def attention(block: Block) -> dict[str, ArrayTree]:
        kernel, bias = restored(block.grouped, (0,)), block.grouped.bias
        out = linear(block.out, restored(block.out, (0, 1)))
        if shape.grouped:
            return {"grouped": linear(block.grouped, kernel), "out": out}
        turned = {"kernel": jnp.swapaxes(kernel, 1, 2)}  # (D, 3, N, H)
        return {"qkv": turned | ({} if bias is None else {"bias": jnp.swapaxes(bias, 0, 1)}), "out": out}

    def perceptron(block: Block) -> dict[str, ArrayTree]:
        layers = {"up": block.up, "gate": block.gate, "down": block.down}
        return {name: linear(each, restored(each, (0,))) for name, each in layers.items() if each is not None}

    blocks: list[dict[str, ArrayTree]] = [
        {
            "norm_attention": norm(block.norm_attention),
            "attention": attention(block),
            "norm_perceptron": norm(block.norm_perceptron),
            "perceptron": perceptron(block),
        }
        for block in weights.blocks
    ]
    return {
        "tokens": restored(weights.tokens, (1,)),
        "positions": weights.positions.astype(jnp.float32),
        "blocks": blocks,
        "norm": norm(weights.norm),
    }


def require_heads(shape: Dimensions, tensor: int) -> None:
    """Raises Unsupported if the heads, hidden units or rows of a model do not divide over `tensor` devices."""
    sizes: Sequence[tuple[str, int]] = (
        ("heads of keys and values", shape.kv_heads or shape.heads),
        ("hidden units", shape.between),
        ("rows of the vocabulary", shape.rows),
    )
    for what, number in sizes:
        if number % tensor:
            raise Unsupported(
                f"the {number} {what} of this model do not divide over {tensor} devices of the axis tensor: use "
                f"{max(n for n in range(1, tensor + 1) if number % n == 0)} of them, or --config.strategy=data."
            )
