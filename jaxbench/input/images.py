# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Converts images in files to the input of a model: PNG -> pixels -> augmented float32."""

from __future__ import annotations

import io
from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np
from PIL import Image

from jaxbench.workloads.base import Field

CHANNELS = (1, 3, 4)  # numbers of channels of a PNG: grey, RGB, RGBA
BORDER = 8  # an image is shifted by at most an eighth of its height and width: 4 of the 32 pixels of CIFAR-10
MEAN, DEVIATION = 0.5, 0.25  # for pixels in [0, 1]
BLOCK, NOISE = 8, 32  # synthetic images: flat squares with edges of BLOCK pixels, plus noise of NOISE of 256 levels


def has_images(example: Mapping[str, Field]) -> bool:
    """Whether examples are labelled images: a float "image" of (height, width, channels) and a "label"."""
    image = example.get("image")
    if image is None or "label" not in example:
        return False
    return len(image.shape) == 3 and image.shape[2] in CHANNELS and bool(jnp.issubdtype(image.dtype, jnp.floating))


def draw(shape: tuple[int, int, int], generator: np.random.Generator) -> np.ndarray:
    """One image of (height, width, channels), uint8, that compresses about as well as a photograph, unlike noise."""
    height, width, channels = shape
    squares = generator.integers(0, 256 - NOISE, (-(-height // BLOCK), -(-width // BLOCK), channels), np.uint8)
    flat = squares.repeat(BLOCK, axis=0).repeat(BLOCK, axis=1)[:height, :width]
    return flat + generator.integers(0, NOISE, shape, np.uint8)


def to_pixels(image: np.ndarray) -> np.ndarray:
    """Floats in [0, 1] -> uint8; other values are clipped."""
    return np.rint(np.clip(image, 0, 1) * 255).astype(np.uint8)


def encode(pixels: np.ndarray) -> bytes:
    """(height, width, channels) uint8 -> PNG."""
    file = io.BytesIO()
    Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels).save(file, "PNG", compress_level=1)
    return file.getvalue()


def decode(png: bytes) -> np.ndarray:
    """PNG -> (height, width, channels) uint8. Raises OSError when it is damaged."""
    with Image.open(io.BytesIO(png)) as image:
        pixels = np.asarray(image)
    return pixels[..., None] if pixels.ndim == 2 else pixels


def augment(pixels: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Shifts the image at random, with a black border, and mirrors it left to right with probability 1/2.

    Digits are mirrored too: only the work is measured, not the accuracy.
    """
    height, width, _ = pixels.shape
    down, right = (int(generator.integers(-(edge // BORDER), edge // BORDER + 1)) for edge in (height, width))
    out = np.zeros_like(pixels)
    source = pixels[max(0, -down) : height - max(0, down), max(0, -right) : width - max(0, right)]
    out[max(0, down) : height + min(0, down), max(0, right) : width + min(0, right)] = source
    return out[:, ::-1] if generator.random() < 0.5 else out


def normalise(pixels: np.ndarray) -> np.ndarray:
    """uint8 -> float32, (p / 255 - MEAN) / DEVIATION."""
    out = pixels.astype(np.float32)
    out *= np.float32(1 / (255 * DEVIATION))
    out -= np.float32(MEAN / DEVIATION)
    return out
