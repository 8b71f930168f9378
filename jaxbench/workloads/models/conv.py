# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The convolution of all vision models: NHWC, padded by half its kernel on both sides, as the papers' models are."""

from __future__ import annotations

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
        rngs=rngs,
    )


def out_side(side: int, *, kernel: int, stride: int = 1, padding: int | None = None) -> int:
    """The output's side of a convolution or a pool."""
    edge = kernel // 2 if padding is None else padding
    return (side + 2 * edge - kernel) // stride + 1
