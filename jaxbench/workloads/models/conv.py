# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The convolution of all vision models: NHWC, padded by half its kernel on both sides, as the papers' models are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx


def conv(
    inputs: int,
    outputs: int,
    *,
    kernel: int,
    stride: int = 1,
    padding: int | None = None,
    bias: bool = False,
    rngs: nnx.Rngs,
) -> nnx.Conv:
    """A square convolution of `inputs` to `outputs` channels.

    padding: pixels on each side; None: kernel // 2, so that a stride of s leaves ceil(side / s). ("SAME" of XLA pads
    only as much as is needed, on the right first, which under a stride is another function.)
    bias: off where a normalisation follows, which would take it out again.
    The initial values are He's for ReLU (arXiv:1502.01852, forward case).
    """
    edge = kernel // 2 if padding is None else padding
    return nnx.Conv(
        inputs,
        outputs,
        (kernel, kernel),
        strides=stride,
        padding=((edge, edge), (edge, edge)),
        use_bias=bias,
        kernel_init=nnx.initializers.he_normal(),
        conv_general_dilated=_product if kernel == 1 and not edge else jax.lax.conv_general_dilated,
        rngs=rngs,
    )


def _product(x: jax.Array, kernel: jax.Array, strides: Sequence[int], padding: Any, **others: Any) -> jax.Array:
    """A 1x1 convolution without padding as a matrix product. x: (B, H, W, C), kernel: (1, 1, C, outputs).

    The same sums, and faster on XLA's CPU: over the shapes of ResNet-50 and ResNet-164 (medians of 9 interleaved
    repetitions, one core) forward 1.1 to 1.8 times, backward 1.3 to 2.6, under a stride 5. A 3x3 of stride 1 stays a
    convolution: as products of patches or of nine shifted images it took 1 to 4 times as long on images of 16 pixels
    and more, and about as long on smaller ones.
    """
    rows, columns = strides
    x = x[:, ::rows, ::columns] if rows > 1 or columns > 1 else x
    return jnp.einsum("bhwc,co->bhwo", x, kernel[0, 0], precision=others["precision"])


def out_side(side: int, *, kernel: int, stride: int = 1, padding: int | None = None) -> int:
    """The output's side of a convolution or a pool."""
    edge = kernel // 2 if padding is None else padding
    return (side + 2 * edge - kernel) // stride + 1
