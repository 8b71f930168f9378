# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The convolution of all vision models: NHWC, padded by half its kernel on both sides, as in the papers."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from jaxbench.machine.start import traced_for


def conv(
    inputs: int,
    outputs: int,
    *,
    kernel: int,
    stride: int = 1,
    padding: int | None = None,
    bias: bool = False,
    gain: float = 1.0,
    rngs: nnx.Rngs,
) -> nnx.Conv:
    """A square convolution of `inputs` to `outputs` channels.

    padding: pixels on each side; None: kernel // 2, so a stride of s leaves ceil(side / s). (XLA's "SAME" pads as
    little as possible, on the right first, which with a stride is another function.)
    bias: leave it off before a normalization, which would remove it.
    The initial values are He's for ReLU (arXiv:1502.01852, forward case), times `gain`.
    """
    pad = kernel // 2 if padding is None else padding
    return nnx.Conv(
        inputs,
        outputs,
        (kernel, kernel),
        strides=stride,
        padding=((pad, pad), (pad, pad)),
        use_bias=bias,
        kernel_init=nnx.initializers.variance_scaling(2 * gain**2, "fan_in", "truncated_normal"),
        conv_general_dilated=_product if kernel == 1 and not pad else convolution,
        rngs=rngs,
    )


def _product(x: jax.Array, kernel: jax.Array, strides: Sequence[int], padding: Any, **others: Any) -> jax.Array:
    """A 1x1 convolution without padding as a matrix product. x: (B, H, W, C), kernel: (1, 1, C, outputs).

    The sums are the same, and this form is faster on XLA's CPU backend. For the shapes of ResNet-50 and ResNet-164
    (medians of 9 interleaved repetitions, one core) the forward pass was 1.1 to 1.8 times as fast, the backward pass
    1.3 to 2.6 times, or 5 times with a stride. A 3x3 convolution of stride 1 stays a convolution: as products of
    patches or of nine shifted images it took 1 to 4 times as long on images of 16 pixels and more, and about as long on
    smaller images. There is no forward mode.
    """
    rows, columns = strides
    x = x[:, ::rows, ::columns] if rows > 1 or columns > 1 else x
    return _at_each_pixel(x, kernel[0, 0], others["precision"])


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def _at_each_pixel(x: jax.Array, matrix: jax.Array, precision: Any) -> jax.Array:
    """The product of (B, H, W, C) and (C, outputs).

    The gradient of the matrix contracts over the images. XLA's CPU compiler transposes the first factor for this, so
    the narrower factor comes first. In a bottleneck the wider factor is the residual stream or its gradient. To
    transpose that, XLA recomputes the sum from the first block on: ResNet-164 took 6 times as long on one device.
    """
    return jnp.einsum("bhwc,co->bhwo", x, matrix, precision=precision)


def _at_each_pixel_forward(x: jax.Array, matrix: jax.Array, precision: Any) -> Any:
    return _at_each_pixel(x, matrix, precision), (x, matrix)


def _at_each_pixel_backward(precision: Any, residuals: tuple[jax.Array, jax.Array], d_y: jax.Array) -> Any:
    x, matrix = residuals
    d_x = jnp.einsum("bhwo,co->bhwc", d_y, matrix, precision=precision)
    sharding = jax.typeof(matrix).sharding if any(jax.typeof(x).sharding.spec) else None
    product = functools.partial(jnp.einsum, precision=precision, out_sharding=sharding)
    if matrix.shape[0] <= matrix.shape[1]:
        return d_x, product("bhwc,bhwo->co", x, d_y)
    return d_x, product("bhwo,bhwc->oc", d_y, x).T


_at_each_pixel.defvjp(_at_each_pixel_forward, _at_each_pixel_backward)


COLUMNS = 4  # columns of a one-channel image that become channels
SMALL_SIDE, MANY_CHANNELS = 7, 256


def convolution(x: jax.Array, kernel: jax.Array, strides: Sequence[int], padding: Any, **others: Any) -> jax.Array:
    """`jax.lax.conv_general_dilated`, rewritten in two cases that are slow on XLA's CPU backend.

    The rewritten cases have no forward mode.
    """
    same = all(low == high == side // 2 for (low, high), side in zip(padding, kernel.shape, strict=False))
    if traced_for() == "cpu" and x.dtype == jnp.float32 and same and all(s == 1 for s in strides):
        if kernel.shape[2] == 1 and x.shape[2] % COLUMNS == 0:
            return _rewritten(x, kernel, "columns")
        if x.shape[2] <= SMALL_SIDE and kernel.shape[3] >= MANY_CHANNELS:
            return _rewritten(x, kernel, "places")
    return jax.lax.conv_general_dilated(x, kernel, strides, padding, **others)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def _rewritten(x: jax.Array, kernel: jax.Array, case: str) -> jax.Array:
    """A convolution of stride 1 that keeps the image's size.

    case: "columns" uses `_by_columns` in the forward pass; "places" uses `_by_places` for the gradient of the input.
    """
    return _by_columns(x, kernel) if case == "columns" else _plain(x, kernel)


def _forward(x: jax.Array, kernel: jax.Array, case: str) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    return _rewritten(x, kernel, case), (x, kernel)


def _backward(case: str, residuals: tuple[jax.Array, jax.Array], d_y: jax.Array) -> tuple[jax.Array, jax.Array]:
    d_x, d_kernel = jax.vjp(_plain, *residuals)[1](d_y)
    return (_by_places(d_y, residuals[1]) if case == "places" else d_x), d_kernel


_rewritten.defvjp(_forward, _backward)


def _plain(x: jax.Array, kernel: jax.Array) -> jax.Array:
    sides = [(side // 2, side // 2) for side in kernel.shape[:2]]
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), sides, dimension_numbers=("NHWC", "HWIO", "NHWC"))


def _by_columns(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """A convolution of one channel, with groups of columns as channels.

    The kernel becomes a matrix of shifted copies of itself, like the space-to-depth transform of ResNet's stem on TPUs.
    The zeros add multiply-adds, but this takes a quarter of the time (5x5, 16 outputs, 28 pixels; one core).
    """
    batch, height, width, _ = x.shape
    side, outputs = kernel.shape[0], kernel.shape[3]
    pad, groups = side // 2, -(-(COLUMNS + side - 1) // COLUMNS)
    right = COLUMNS * (groups - 1) - pad
    x = jnp.pad(x[..., 0], ((0, 0), (pad, pad), (pad, right)))
    x = x.reshape(batch, height + 2 * pad, (width + pad + right) // COLUMNS, COLUMNS)
    spare = COLUMNS * groups - side
    shifted = [jnp.pad(kernel, ((0, 0), (i, spare - i), (0, 0), (0, 0))) for i in range(COLUMNS)]
    matrix = jnp.stack(shifted, axis=3).reshape(side, groups, COLUMNS, COLUMNS * outputs)
    y = jax.lax.conv_general_dilated(x, matrix, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    y = y.reshape(batch, height, width // COLUMNS, COLUMNS, outputs)  # in two steps, so that JAX can infer the sharding
    return y.reshape(batch, height, width, outputs)


def _by_places(d_y: jax.Array, kernel: jax.Array) -> jax.Array:
    """The gradient of the input as one product for each position in the kernel, without transposing the kernel.

    The plain form transposes the kernel first. If the kernel is larger than the images, this form took 0.6 to 0.75 of
    the time of the plain form (256 and 512 channels, 4 and 7 pixels; one and two cores). On images of 8 pixels and more
    it took up to four times as long.
    """
    side, height, width = kernel.shape[0], *d_y.shape[1:3]
    d_y = jnp.pad(d_y, ((0, 0), (side // 2, side // 2), (side // 2, side // 2), (0, 0)))

    def at(i: int, j: int) -> jax.Array:
        shifted = d_y[:, side - 1 - i :, side - 1 - j :][:, :height, :width]
        return jnp.einsum("bhwo,co->bhwc", shifted, kernel[i, j])

    return functools.reduce(jnp.add, (at(i, j) for i in range(side) for j in range(side)))


def out_side(side: int, *, kernel: int, stride: int = 1, padding: int | None = None) -> int:
    """The output side of a convolution or a pool."""
    pad = kernel // 2 if padding is None else padding
    return (side + 2 * pad - kernel) // stride + 1
