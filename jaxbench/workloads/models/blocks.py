# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A stack of identical blocks, recomputed in the backward pass by the lever `remat` (gradient checkpointing).

Chen et al., "Training Deep Nets with Sublinear Memory Cost", arXiv:1604.06174: with n blocks, storing the input of
every sqrt(n)-th block and recomputing the rest takes memory of order sqrt(n) and one more forward pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
from flax import nnx

from jaxbench import levers
from jaxbench.core.workload import PyTree
from jaxbench.errors import UserError, did_you_mean


def run_blocks(blocks: Sequence[Any], x: Any, remat: str) -> Any:
    """Applies NNX modules one after the other, ``x = block(x)``. The result does not depend on `remat`.

    Args:
      remat: "none" stores every activation; "sqrt" the inputs of groups of about sqrt(n) blocks; "block" the input of
        each block; "stage" the input of the first block alone; "dots_saveable" the results of matrix products;
        "offload" those in host memory, if the device can. The others select activations by name
        (`levers.REMAT_PRESETS`).
    """
    return _grouped(_one_after_another, nnx.remat, nnx.List, blocks, x, remat)


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


def _one_after_another(blocks: Sequence[Any], x: Any) -> Any:
    for block in blocks:
        x = block(x)
    return x


def _policy(remat: str) -> Callable[..., bool] | None:
    """What a block stores for its backward pass; None: its arguments only."""
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
