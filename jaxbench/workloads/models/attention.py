# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Causal attention over a whole sequence, or over a sequence split over the axis `context` (ring attention).

If it is split, keys and values travel around the ring of devices, and each device attends to those that it currently
has (Liu et al., "Ring Attention", arXiv:2310.01889), with the online softmax of Milakov and Gimelshein,
arXiv:1805.02867. In the order of `sharding_context` each device computes 3 products of chunks with its own keys and
2 with those of any other device: all have equal work, and little of it is masked.

`flash_kernels` are JAX's own kernels, which never write the scores to memory: "splash attention" for TPUs and a Triton
kernel for NVIDIA GPUs (Dao et al., "FlashAttention", arXiv:2205.14135).

Axes: B examples, N heads, T query positions, S key positions, H head width; c: positions of a chunk.

And a stack of identical blocks, recomputed in the backward pass by the lever `remat` (gradient checkpointing).

Chen et al., "Training Deep Nets with Sublinear Memory Cost", arXiv:1604.06174: with n blocks, storing the input of
every sqrt(n)-th block and recomputing the rest takes memory of order sqrt(n) and one more forward pass.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax.ad_checkpoint import checkpoint_name
from jax.extend import core
from jax.sharding import PartitionSpec

from jaxbench import levers
from jaxbench.core.workload import PyTree
from jaxbench.errors import Unsupported, UserError, did_you_mean
from jaxbench.hlo.operations import ATTENTIONS
from jaxbench.levers import ATTENTION
from jaxbench.workloads import sharding_context

KERNELS = ("auto", "plain", "flash")
Arrays = tuple[jax.Array, ...]
WIDEST = 256  # the width of the widest head: a block of a wider one does not fit into a GPU's shared memory
_LANES = 128  # of a TPU's vectors: its kernel takes multiples of them
_NARROWEST = 16  # the shortest side of a product on a GPU's tensor cores


def causal(q_BNTH: jax.Array, k_BNTH: jax.Array, v_BNTH: jax.Array, kernel: str = "auto") -> jax.Array:
    """softmax(q k^T / sqrt(H)) v over this and earlier positions, (B, N, T, H). The softmax is float32.

    kernel: "plain" writes the scores to memory. "flash" does not, on a TPU or an NVIDIA GPU; on a CPU it is the same as
    plain. "auto" is flash for numbers of 16 bits if its kernels take the heads. A sequence that is split over devices
    always takes the ring. Raises Unsupported for sizes that the kernels do not take.
    """
    q_BNTH = q_BNTH * q_BNTH.shape[-1] ** -0.5  # before the product: T H multiplications, and not T S
    axis = sharding_context.current().context
    if axis is None and (kernel == "flash" or (kernel == "auto" and flash_takes(q_BNTH))):
        # Chosen when it is compiled and not by the devices here: forecasts compile for absent hardware.
        kernels = flash_kernels(q_BNTH.shape, ATTENTION)
        return jax.lax.platform_dependent(q_BNTH, k_BNTH, v_BNTH, **kernels, cpu=_plain)
    if axis is None:
        return _plain(q_BNTH, k_BNTH, v_BNTH)
    with jax.named_scope(ATTENTIONS["ring"]):
        return _ring(axis)(q_BNTH, k_BNTH, v_BNTH)


@jax.named_scope(ATTENTIONS["plain"])
def _plain(q_BNTH: jax.Array, k_BNTH: jax.Array, v_BNTH: jax.Array) -> jax.Array:
    t = q_BNTH.shape[2]
    scores_BNTS = jnp.einsum("bnth,bnsh->bnts", q_BNTH, k_BNTH)
    causal_TS = jnp.tril(jnp.ones((t, t), bool))
    # -inf gives later positions a weight of exactly 0, and float32 keeps small weights in the sum of many.
    scores_BNTS = jnp.where(causal_TS, scores_BNTS.astype(jnp.float32), -jnp.inf)
    weights_BNTS = jax.nn.softmax(scores_BNTS).astype(q_BNTH.dtype)
    return checkpoint_name(jnp.einsum("bnts,bnsh->bnth", weights_BNTS, v_BNTH), ATTENTION)


def _ring(axis: str) -> Any:
    """The function (q, k, v) -> attention; each array has a device's two chunks of positions."""
    devices = jax.lax.axis_size(axis)

    # JAX's own backward pass would store the keys and values of every device, which is the whole sequence.
    @jax.custom_vjp
    def attend(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        return forward(q, k, v)[0]

    def forward(q: jax.Array, k: jax.Array, v: jax.Array) -> tuple[jax.Array, Arrays]:
        early, late = _Sum(_halves(q)[0]), _Sum(_halves(q)[1])
        travelling: Arrays = k, v
        for step in range(devices):
            for query, key, masked in _pairs(step, axis):
                part = _Sum.of(_take_half(q, query), *(_take_half(x, key) for x in travelling), masked=masked)
                early, late = early.plus(part, query == 0), late.plus(part, query == 1)
            if step < devices - 1:  # after the last step nobody needs them
                travelling = _send_on(travelling, axis)
        out = jnp.concatenate([early.mean(q.dtype), late.mean(q.dtype)], 2)
        weight = jnp.concatenate([early.log(), late.log()], 2)
        out, weight = checkpoint_name((out, weight), ATTENTION)
        return out, (q, k, v, out, weight)

    def backward(residuals: Arrays, gradient: jax.Array) -> Arrays:
        q, k, v, out, weight = residuals
        # Without this barrier the compiler would store all keys and values of the forward pass instead of resending.
        k, v, gradient = jax.lax.optimization_barrier((k, v, gradient))
        # <do, o> of each query, once, and not in each of its products.
        inner = jnp.sum(gradient.astype(jnp.float32) * out, -1, keepdims=True)
        saved = jnp.concatenate([weight, inner, gradient.astype(jnp.float32)], -1)
        dq = jnp.zeros_like(q, jnp.float32)  # a sum of 2 devices + 1 products, which 16 bits would round
        # Keys and values travel again, now with their gradients, so no device stores those of another.
        travelling: Arrays = k, v
        d_travelling: Arrays = jnp.zeros_like(k, jnp.float32), jnp.zeros_like(v, jnp.float32)
        for step in range(devices):
            dq, d_travelling = _gradients(step, q, saved, travelling, axis, dq, d_travelling)
            # The gradients make one step more than the keys: it brings them back to the device that owns the keys.
            d_travelling = _send_on(d_travelling, axis)
            if step < devices - 1:
                travelling = _send_on(travelling, axis)
        return dq.astype(q.dtype), d_travelling[0].astype(k.dtype), d_travelling[1].astype(v.dtype)

    attend.defvjp(forward, backward)
    return attend


def _halves(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    early, late = jnp.split(x, 2, axis=2)
    return early, late


def _send_on(travelling: Arrays, axis: str) -> Arrays:
    devices = jax.lax.axis_size(axis)
    return jax.lax.ppermute(travelling, axis, [(i, (i + 1) % devices) for i in range(devices)])


def _pairs(step: int, axis: str) -> list[tuple[Any, Any, bool]]:
    """The products of chunks when a device has the keys and values of the device `step` before it.

    Each is (chunk of queries, chunk of keys, masked), with 0 for the early chunk and 1 for the late chunk. The late
    queries of device i always see the early keys of device j. If j < i, the early queries see these too, and no query
    sees the late keys. If j > i, the late queries see both chunks and the early queries see neither.
    """
    if step == 0:  # its own keys: a chunk needs the causal mask only against itself
        return [(0, 0, True), (1, 0, False), (1, 1, True)]
    from_later = (jax.lax.axis_index(axis) < step).astype(jnp.int32)  # j = i - step, modulo the devices
    return [(1, 0, False), (from_later, from_later, False)]


def _take_half(x: jax.Array, half: Any) -> jax.Array:
    early, late = _halves(x)
    if isinstance(half, int):
        return late if half else early
    # All devices run the same program, so a half that depends on the device is chosen at run time.
    return jnp.where(half == 1, late, early)


def _add_to_half(x: jax.Array, half: Any, addend: jax.Array) -> jax.Array:
    """`x` with `addend` added to one of its halves."""
    zeros = jnp.zeros_like(addend)
    if isinstance(half, int):
        return x + jnp.concatenate([zeros, addend] if half else [addend, zeros], 2)
    return x + jnp.concatenate([jnp.where(half == 0, addend, 0), jnp.where(half == 1, addend, 0)], 2)


def _scores(q: jax.Array, k: jax.Array, masked: bool) -> jax.Array:
    scores = jnp.einsum("bnth,bnsh->bnts", q, k).astype(jnp.float32)
    return jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -jnp.inf) if masked else scores


class _Sum:
    """An online softmax: weighted values and the sum of weights, both relative to the largest score so far."""

    def __init__(self, q: jax.Array):
        """An empty sum for queries `q`."""
        self.values = jnp.zeros_like(q, jnp.float32)
        self.weights = self.values[..., :1]
        self.largest = jnp.full_like(self.weights, -jnp.inf)  # an early chunk may get no part for some steps

    @classmethod
    def of(cls, q: jax.Array, k: jax.Array, v: jax.Array, *, masked: bool) -> _Sum:
        part, scores = cls(q), _scores(q, k, masked)
        part.largest = jnp.max(scores, -1, keepdims=True)
        weights = jnp.exp(scores - part.largest)
        part.weights = jnp.sum(weights, -1, keepdims=True)
        part.values = jnp.einsum("bnts,bnsh->bnth", weights.astype(v.dtype), v).astype(jnp.float32)
        return part

    def plus(self, other: _Sum, when: Any) -> _Sum:
        """The combination of both sums, or `self` if `when` is False."""
        if when is False:
            return self
        total = _Sum(self.values)
        total.largest = jnp.maximum(self.largest, other.largest)
        # Both parts are rescaled to the same largest score. The scale of an empty sum is exp(-inf) = 0.
        self_scale, other_scale = jnp.exp(self.largest - total.largest), jnp.exp(other.largest - total.largest)
        total.weights = self.weights * self_scale + other.weights * other_scale
        total.values = self.values * self_scale + other.values * other_scale
        if when is not True:
            for name in ("largest", "weights", "values"):
                setattr(total, name, jnp.where(when, getattr(total, name), getattr(self, name)))
        return total

    def mean(self, dtype: Any) -> jax.Array:
        return (self.values / self.weights).astype(dtype)

    def log(self) -> jax.Array:
        """The log-sum-exp of all scores."""
        return self.largest + jnp.log(self.weights)


def _gradients(
    step: int, q: jax.Array, saved: jax.Array, travelling: Arrays, axis: str, dq: jax.Array, d_travelling: Arrays
) -> tuple[jax.Array, Arrays]:
    """Adds the gradients of one step's products. saved: for each query its log-sum-exp, <gradient, output>, gradient.

    With weights w and output o = sum of w v: dv = w do, ds = w (do v - <do, o>), dq = ds k, dk = ds q.
    """
    k, v = travelling
    dk, dv = d_travelling
    for query, key, masked in _pairs(step, axis):
        queries, query_saved = _take_half(q, query), _take_half(saved, query)
        keys, values = _take_half(k, key), _take_half(v, key)
        weights = jnp.exp(_scores(queries, keys, masked) - query_saved[..., :1])  # again: only their sum was stored
        gradient = query_saved[..., 2:].astype(q.dtype)
        d_weights = jnp.einsum("bnth,bnsh->bnts", gradient, values).astype(jnp.float32) - query_saved[..., 1:2]
        d_scores = (weights * d_weights).astype(q.dtype)
        dv = _add_to_half(dv, key, jnp.einsum("bnts,bnth->bnsh", weights.astype(q.dtype), gradient).astype(jnp.float32))
        dk = _add_to_half(dk, key, jnp.einsum("bnts,bnth->bnsh", d_scores, queries).astype(jnp.float32))
        dq = _add_to_half(dq, query, jnp.einsum("bnts,bnsh->bnth", d_scores, keys).astype(jnp.float32))
    return dq, (dk, dv)


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
        return _untyped(kernel)(*qkv)

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

        made = [checkpoint_name(x, name) for x in _untyped(run)(*qkv)]
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
        axes = frozenset().union(*map(sharding_context.varies, leaves))
        vary: Any = lambda x: jax.lax.pcast(x, tuple(axes - sharding_context.varies(x)), to="varying")  # noqa: E731
        return jax.tree.map(vary, results)

    return run


def _tpu(q_BNTH: jax.Array, k_BNTH: jax.Array, v_BNTH: jax.Array) -> jax.Array:
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as splash
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks

    _, heads, positions, _ = q_BNTH.shape
    names = ("block_q", "block_kv", "block_kv_compute", "block_q_dkv", "block_kv_dkv", "block_kv_dkv_compute")
    block = max(size for size in range(_LANES, 513, _LANES) if positions % size == 0)  # blocks divide the positions
    sizes: Any = {**dict.fromkeys(names, block), "use_fused_bwd_kernel": True}
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
    q, k, v = (x.transpose(0, 2, 1, 3) for x in (q_BNTH, k_BNTH, v_BNTH))  # this kernel takes (B, T, N, H)
    mixed = triton.mha(q, k, v, None, sm_scale=1.0, causal=True, block_sizes=triton.BlockSizes(*[block] * 6))
    return mixed.transpose(0, 2, 1, 3)


def run_blocks(blocks: Sequence[Any], x: Any, remat: str) -> Any:
    """Applies NNX modules one after the other, ``x = block(x)``. The result does not depend on `remat`.

    Args:
      remat: "none" stores every activation; "sqrt" the inputs of groups of about sqrt(n) blocks; "block" the input of
        each block; "dots_saveable" the results of matrix products; "offload" those in host memory, if the device can.
        The others select activations by name (`levers.REMAT_PRESETS`).
    """
    return _grouped(_row, nnx.remat, nnx.List, blocks, x, remat)


def apply_blocks(block: Callable[[PyTree, Any], Any], rows: Sequence[PyTree], x: Any, remat: str) -> Any:
    """Like `run`, for a block that is a function of its parameters: ``x = block(params, x)`` for each of `rows`."""

    def row(rows: Sequence[PyTree], x: Any) -> Any:
        for params in rows:
            x = block(params, x)
        return x

    return _grouped(row, jax.checkpoint, list, rows, x, remat)


def _grouped(row: Callable[..., Any], checkpoint: Any, group: Any, blocks: Sequence[Any], x: Any, remat: str) -> Any:
    """Applies `row` to all blocks, or under `checkpoint` to each `group` of them."""
    if remat == "none":
        return row(blocks, x)
    size = group_size(len(blocks), remat)
    for start in range(0, len(blocks), size):
        x = checkpoint(row, policy=_policy(remat))(group(blocks[start : start + size]), x)
    return x


def group_size(count: int, remat: str) -> int:
    """The number of blocks, out of `count`, that are recomputed together."""
    return math.ceil(math.sqrt(count)) if remat == "sqrt" else 1


def _row(blocks: Sequence[Any], x: Any) -> Any:
    for block in blocks:
        x = block(x)
    return x


def _policy(remat: str) -> Callable[..., bool] | None:
    if remat in ("sqrt", "block"):
        return None  # JAX's default stores nothing but the arguments
    if remat == "dots_saveable":
        return jax.checkpoint_policies.dots_saveable
    if remat == "offload":
        # Products with weights only: those of attention have a batch dimension, and grow with the square of positions.
        return jax.checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host")
    named = levers.named_activations(remat)
    if named is None:  # the lever refuses it, too, but a person's model may name a policy itself
        raise UserError(f"remat={remat} is unknown: {did_you_mean(remat, [*levers.REMATS, *levers.REMAT_PRESETS])}")
    return jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=named.keep,
        names_which_can_be_offloaded=named.offload,
        offload_src="device",
        offload_dst="pinned_host",
    )
