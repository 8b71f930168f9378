# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Causal attention over a whole sequence, or over one that is split over the axis `context` (`ring`).

Axes: B examples, N heads, T query positions, S key positions, H head width.

And a stack of identical blocks, recomputed in the backward pass by the lever `remat` (gradient checkpointing).

Chen et al., "Training Deep Nets with Sublinear Memory Cost", arXiv:1604.06174: with n blocks, storing the input of
every sqrt(n)-th block and recomputing the rest takes memory of order sqrt(n) and one more forward pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax.ad_checkpoint import checkpoint_name

from jaxbench import levers
from jaxbench.core.workload import PyTree
from jaxbench.errors import UserError, did_you_mean
from jaxbench.hlo.operations import ATTENTIONS
from jaxbench.levers import ATTENTION
from jaxbench.workloads import sharding_context
from jaxbench.workloads.models.flash import flash_kernels, flash_takes
from jaxbench.workloads.models.ring import ring, ulysses

KERNELS = ("auto", "plain", "flash")


def causal(q_BNTH: jax.Array, k_BNTH: jax.Array, v_BNTH: jax.Array, kernel: str = "auto") -> jax.Array:
    """softmax(q k^T / sqrt(H)) v over this and earlier positions, (B, N, T, H). The softmax is float32.

    kernel: "plain" writes the scores to memory. "flash" does not, on a TPU or an NVIDIA GPU; on a CPU it is the same as
    plain. "auto" is flash for numbers of 16 bits if its kernels take the heads. If a sequence is split over devices,
    the parts of a ring are computed by these kernels or by blocks. Raises Unsupported for sizes that the kernels do not
    take.
    """
    q_BNTH = q_BNTH * q_BNTH.shape[-1] ** -0.5  # before the product: T H multiplications, and not T S
    context = sharding_context.current()
    fast = kernel == "flash" or (kernel == "auto" and flash_takes(q_BNTH))
    if context.context is not None and not context.ulysses:
        with jax.named_scope(ATTENTIONS["ring"]):
            return ring(context.context, kernels=fast)(q_BNTH, k_BNTH, v_BNTH)

    def attend(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        if not fast:
            return _plain(q, k, v)
        # Chosen when it is compiled and not by the devices here: forecasts compile for absent hardware.
        return jax.lax.platform_dependent(q, k, v, **flash_kernels(q.shape, ATTENTION), cpu=_plain)

    if context.context is not None:
        return ulysses(context.context, attend, q_BNTH, k_BNTH, v_BNTH)
    return attend(q_BNTH, k_BNTH, v_BNTH)


@jax.named_scope(ATTENTIONS["plain"])
def _plain(q_BNTH: jax.Array, k_BNTH: jax.Array, v_BNTH: jax.Array) -> jax.Array:
    t = q_BNTH.shape[2]
    scores_BNTS = jnp.einsum("bnth,bnsh->bnts", q_BNTH, k_BNTH)
    causal_TS = jnp.tril(jnp.ones((t, t), bool))
    # -inf gives later positions a weight of exactly 0, and float32 keeps small weights in the sum of many.
    scores_BNTS = jnp.where(causal_TS, scores_BNTS.astype(jnp.float32), -jnp.inf)
    weights_BNTS = jax.nn.softmax(scores_BNTS).astype(q_BNTH.dtype)
    return checkpoint_name(jnp.einsum("bnts,bnsh->bnth", weights_BNTS, v_BNTH), ATTENTION)


def run_blocks(blocks: Sequence[Any], x: Any, remat: str) -> Any:
    """Applies NNX modules one after the other, ``x = block(x)``. The result does not depend on `remat`.

    Args:
      remat: "none" stores every activation; "sqrt" the inputs of groups of about sqrt(n) blocks; "block" the input of
        each block; "stage" the input of the first block alone; "dots_saveable" the results of matrix products;
        "offload" those in host memory, if the device can. The others select activations by name
        (`levers.REMAT_PRESETS`).
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
    return {"sqrt": math.ceil(math.sqrt(count)), levers.STAGE_INPUTS: count}.get(remat, 1)


def _row(blocks: Sequence[Any], x: Any) -> Any:
    for block in blocks:
        x = block(x)
    return x


def _policy(remat: str) -> Callable[..., bool] | None:
    if remat in ("sqrt", "block", levers.STAGE_INPUTS):
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
