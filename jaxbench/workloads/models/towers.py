# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Two perceptrons that map images and captions to unit vectors in a common space.

CLIP's architecture (Radford et al., arXiv:2103.00020), with towers as small as the data.
Axes: B examples, T bytes of a caption, E width of a byte's embedding, D width of the common space.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from flax import nnx
from ml_collections import ConfigDict

from jaxbench.errors import UserError
from jaxbench.workloads.flops import dense, training
from jaxbench.workloads.models.sharded_layers import rows

BYTES = 256  # the vocabulary: a byte is a token
MAX_LOG_SCALE = math.log(100)  # CLIP's limit, without which training was unstable (section 2.5)


class Towers(nnx.Module):
    """{"image": (B, size, size, 1), "caption": (B, T)} to (image_BD, caption_BD, scale); unit rows."""

    def __init__(self, config: ConfigDict, rngs: nnx.Rngs):
        """config: `size`, `length` (T), `embedding` (E), `hidden`, `width` (D), `temperature`, and `learned`.

        Raises UserError for a temperature that is not above 0.
        """
        if not config.temperature > 0:
            raise UserError(
                f"--config.model.temperature={config.temperature} must be above 0: use CLIP's 0.07, for example."
            )
        pixels, letters = layer_sizes(config)
        self.embedding = nnx.Param(0.1 * jax.random.normal(rngs.params(), (BYTES, config.embedding)))
        self.image = nnx.List(nnx.Linear(i, o, rngs=rngs) for i, o in pixels)
        self.caption = nnx.List(nnx.Linear(i, o, rngs=rngs) for i, o in letters)
        self.fixed = -math.log(config.temperature)
        # By its logarithm, as CLIP learns it: the scale stays positive.
        self.log_scale = nnx.Param(jnp.float32(self.fixed)) if config.learned else None

    def __call__(self, inputs: dict[str, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        log_scale = jnp.float32(self.fixed) if self.log_scale is None else self.log_scale[...]
        letters_BTE = rows(self.embedding[...], inputs["caption"])
        scale = jnp.exp(jnp.minimum(log_scale, MAX_LOG_SCALE))
        return _tower(self.image, inputs["image"]), _tower(self.caption, letters_BTE), scale


def _tower(layers: nnx.List, x: jax.Array) -> jax.Array:
    """An embedding of length 1 for each example."""
    x = x.reshape(x.shape[0], -1)
    for layer in layers[:-1]:
        x = nnx.relu(layer(x))
    x = layers[-1](x)
    # float32, because a sum of squares loses digits in 16 bits; 1e-12, because a row of zeros must not divide by 0.
    wide = x.astype(jnp.float32)
    return (wide * jax.lax.rsqrt(jnp.sum(wide**2, axis=-1, keepdims=True) + 1e-12)).astype(x.dtype)


def layer_sizes(config: ConfigDict) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """(inputs, outputs) of each layer of the image tower, and of the caption tower."""
    first = config.size * config.size, config.length * config.embedding
    pixels, letters = ([(inputs, config.hidden), (config.hidden, config.width)] for inputs in first)
    return pixels, letters


def training_flops(config: ConfigDict) -> float:
    """FLOPs of both towers, one example."""
    pixels, letters = ([dense(i, o) for i, o in sizes] for sizes in layer_sizes(config))
    return training(pixels) + training([0.0, *letters])  # embedded bytes need their gradient, pixels do not


def pair_flops(config: ConfigDict) -> float:
    """FLOPs of one entry of the similarity matrix, forward and backward (2 products)."""
    # A device computes the rows of its images and those of its captions, so each entry counts twice.
    return 2 * 3 * dense(config.width, 1)
