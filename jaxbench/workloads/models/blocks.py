# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Like blocks in a row, recomputed in the backward pass as the lever `remat` says (gradient checkpointing).

Chen et al., "Training Deep Nets with Sublinear Memory Cost", arXiv:1604.06174: of n blocks, keeping the input of every
sqrt(n)-th and recomputing what lies between needs memory of order sqrt(n) for one more forward pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
from flax import nnx

from jaxbench.errors import UserError, did_you_mean
from jaxbench.levers.remat import REMAT
from jaxbench.workloads.base import PyTree


def run(blocks: Sequence[Any], x: Any, remat: str) -> Any:
    """Applies NNX modules one after the other, ``x = block(x)``. The result is the same whatever `remat` is.

    Args:
      remat: none keeps every activation; sqrt the inputs of groups of about sqrt(n) blocks; block the input of each;
        dots_saveable the results of matrix products; offload keeps those in host memory, where the device can.

    Raises:
      UserError: no such `remat`.
    """
    return _grouped(_row, nnx.remat, nnx.List, blocks, x, remat)


def apply(block: Callable[[PyTree, Any], Any], rows: Sequence[PyTree], x: Any, remat: str) -> Any:
    """As `run`, of a block that is a function of its parameters, ``x = block(params, x)`` for each of `rows`."""

    def row(rows: Sequence[PyTree], x: Any) -> Any:
        for params in rows:
            x = block(params, x)
        return x

    return _grouped(row, jax.checkpoint, list, rows, x, remat)


def _grouped(row: Callable[..., Any], checkpoint: Any, group: Any, blocks: Sequence[Any], x: Any, remat: str) -> Any:
    """`row` of all blocks, or of each group of them under `checkpoint`, that takes them as a `group`."""
    if remat == "none":
        return row(blocks, x)
    size = group_size(len(blocks), remat)
    for at in range(0, len(blocks), size):
        x = checkpoint(row, policy=_policy(remat))(group(blocks[at : at + size]), x)
    return x


def group_size(count: int, remat: str) -> int:
    """How many of `count` blocks are recomputed together."""
    return math.ceil(math.sqrt(count)) if remat == "sqrt" else 1


def _row(blocks: Sequence[Any], x: Any) -> Any:
    for block in blocks:
        x = block(x)
    return x


def _policy(remat: str) -> Callable[..., bool] | None:
    if remat in ("sqrt", "block"):
        return None
    if remat == "dots_saveable":
        return jax.checkpoint_policies.dots_saveable
    if remat == "offload":
        policy = jax.checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host")
        return policy
    raise UserError(f"there is no remat '{remat}': {did_you_mean(remat, REMAT.values)}")
