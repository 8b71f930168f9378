# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Pooling for the vision models. Images are (batch, height, width, channels), square."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from ml_collections import ConfigDict

from jaxbench.errors import UserError
from jaxbench.workloads.base import Partition
from jaxbench.workloads.models import dense_layers


def max_pool(x: jax.Array, window: int, *, stride: int, padding: int = 0) -> jax.Array:
    """The maximum of each square window, with -inf as padding.

    Rows come first, then columns, each as the maximum of shifted arrays. (The gradient of a windowed reduction is a
    scatter, which takes 3 to 10 times as long and several times the memory on XLA's CPU backend.) Equal values share
    the gradient.
    """
    pad = (padding, padding)
    if padding:
        x = jnp.pad(x, ((0, 0), pad, pad, (0, 0)), constant_values=-jnp.inf)
    return _max_along(_max_along(x, 1, window, stride), 2, window, stride)


def _max_along(x: jax.Array, axis: int, window: int, stride: int) -> jax.Array:
    last = (x.shape[axis] - window) // stride * stride + 1
    shifted = [jax.lax.slice_in_dim(x, i, i + last, stride, axis) for i in range(window)]
    return functools.reduce(jnp.maximum, shifted)


def average_to(x: jax.Array, side: int) -> jax.Array:
    """Means of equal squares, (B, H, W, C) -> (B, side, side, C): PyTorch's adaptive pool if `side` divides H and W."""
    batch, height, width, channels = x.shape
    squares = x.reshape(batch, side, height // side, side, width // side, channels)
    return jnp.mean(squares, axis=(2, 4))


def dense_sizes(config: ConfigDict, channels: int) -> list[tuple[int, int]]:
    """(inputs, outputs) of the three dense layers after an average pool of `channels` channels."""
    features = config.pooled**2 * channels
    return [(features, config.hidden), (config.hidden, config.hidden), (config.hidden, config.classes)]


def classifier_partition(config: ConfigDict, channels: int) -> Partition:
    """The Partition of a model with the three dense layers that `dense_sizes` lists."""
    names = ("hidden/0", "hidden/1", "logits")
    layers = [(name, *sizes) for name, sizes in zip(names, dense_sizes(config, channels), strict=True)]
    return dense_layers.partition(layers, convolutions="convolutions/*")


def check_pooled(side: int, config: ConfigDict) -> None:
    """Raises UserError unless ``config.pooled`` divides `side`, the side of the average pool's input."""
    if side < 1:
        raise UserError(
            f"--config.model.size={config.size} is too small: nothing is left after the pools; use 224, for example."
        )
    if config.pooled < 1 or side % config.pooled:
        raise UserError(
            f"--config.model.pooled={config.pooled} does not divide the {side} pixels that --config.model.size="
            f"{config.size} leaves: use {side}, for example."
        )
