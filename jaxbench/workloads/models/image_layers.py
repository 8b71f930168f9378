# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Convolutions, pools and batch normalization of the vision models.

Images are square, (batch, height, width, channels). Convolutions are padded by half their kernel on both sides, as in
the papers.

Batch normalization (Ioffe and Szegedy, arXiv:1502.03167) has per-device or global statistics. On several devices, "the
batch" can be the whole batch or the part of one device. Without an explicit choice the strategy would decide: the whole
batch under `jit`, the part of a device under `shard_map`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax.lax import PrecisionLike

from jaxbench.errors import UserError, did_you_mean
from jaxbench.machine.start import traced_for
from jaxbench.workloads import sharding_context

COLUMNS = 4  # columns of a one-channel image that become channels
SMALL_SIDE, MANY_CHANNELS = 7, 256  # where the kernel is larger than the images, as measured in `_by_places`
STATISTICS = ("device", "global")


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

    padding: pixels on each side; None: kernel // 2, so a stride of s leaves ceil(side / s).
    bias: leave it off before a normalization, which would remove it.
    The initial values are He's for ReLU (arXiv:1502.01852, forward case), times `gain`.
    """
    # Not XLA's "SAME", which pads as little as possible, on the right first: with a stride that is another function.
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


def _product(x: jax.Array, kernel: jax.Array, strides: Sequence[int], padding: object, **others: Any) -> jax.Array:
    """A 1x1 convolution without padding as a matrix product. x: (B, H, W, C), kernel: (1, 1, C, outputs).

    There is no forward mode.
    """
    # The sums are the same, and this form is faster on XLA's CPU backend. For the shapes of ResNet-50 and ResNet-164
    # (medians of 9 interleaved repetitions, one core) the forward pass was 1.1 to 1.8 times as fast, the backward pass
    # 1.3 to 2.6 times, or 5 times with a stride. A 3x3 convolution of stride 1 stays a convolution: as products of
    # patches or of nine shifted images it took 1 to 4 times as long on images of 16 pixels and more.
    rows, columns = strides
    x = x[:, ::rows, ::columns] if rows > 1 or columns > 1 else x
    return _at_each_pixel(x, kernel[0, 0], others["precision"])


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def _at_each_pixel(x: jax.Array, matrix: jax.Array, precision: PrecisionLike) -> jax.Array:
    """The product of (B, H, W, C) and (C, outputs)."""
    return jnp.einsum("bhwc,co->bhwo", x, matrix, precision=precision)


def _at_each_pixel_forward(
    x: jax.Array, matrix: jax.Array, precision: PrecisionLike
) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    return _at_each_pixel(x, matrix, precision), (x, matrix)


def _at_each_pixel_backward(
    precision: PrecisionLike, residuals: tuple[jax.Array, jax.Array], d_y: jax.Array
) -> tuple[jax.Array, jax.Array]:
    x, matrix = residuals
    d_x = jnp.einsum("bhwo,co->bhwc", d_y, matrix, precision=precision)
    sharding = jax.typeof(matrix).sharding if any(jax.typeof(x).sharding.spec) else None
    product = functools.partial(jnp.einsum, precision=precision, out_sharding=sharding)
    # This product contracts over the images. XLA's CPU compiler transposes the first factor for it, so the narrower
    # factor comes first. In a bottleneck the wider factor is the residual stream or its gradient. To transpose that,
    # XLA recomputes the sum from the first block on: ResNet-164 took 6 times as long on one device.
    if matrix.shape[0] <= matrix.shape[1]:
        return d_x, product("bhwc,bhwo->co", x, d_y)
    return d_x, product("bhwo,bhwc->oc", d_y, x).T


_at_each_pixel.defvjp(_at_each_pixel_forward, _at_each_pixel_backward)


def convolution(
    x: jax.Array, kernel: jax.Array, strides: Sequence[int], padding: Sequence[tuple[int, int]], **others: Any
) -> jax.Array:
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


def _rewritten_forward(x: jax.Array, kernel: jax.Array, case: str) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    return _rewritten(x, kernel, case), (x, kernel)


def _rewritten_backward(
    case: str, residuals: tuple[jax.Array, jax.Array], d_y: jax.Array
) -> tuple[jax.Array, jax.Array]:
    d_x, d_kernel = jax.vjp(_plain, *residuals)[1](d_y)
    return (_by_places(d_y, residuals[1]) if case == "places" else d_x), d_kernel


_rewritten.defvjp(_rewritten_forward, _rewritten_backward)


def _plain(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """The convolution as one operation."""
    sides = [(side // 2, side // 2) for side in kernel.shape[:2]]
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), sides, dimension_numbers=("NHWC", "HWIO", "NHWC"))


def column_zeros(height: int, width: int, *, kernel: int, outputs: int) -> float:
    """FLOPs with the zeros that `_by_columns` adds to a kernel, one image of one channel."""
    groups = -(-(COLUMNS + kernel - 1) // COLUMNS)
    return 2.0 * height * width * kernel * (COLUMNS * groups - kernel) * outputs if width % COLUMNS == 0 else 0.0


def _by_columns(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """A convolution of one channel, with groups of columns as channels."""
    batch, height, width, _ = x.shape
    side, outputs = kernel.shape[0], kernel.shape[3]
    pad, groups = side // 2, -(-(COLUMNS + side - 1) // COLUMNS)
    right = COLUMNS * (groups - 1) - pad
    x = jnp.pad(x[..., 0], ((0, 0), (pad, pad), (pad, right)))
    x = x.reshape(batch, height + 2 * pad, (width + pad + right) // COLUMNS, COLUMNS)
    spare = COLUMNS * groups - side
    # The kernel becomes a matrix of shifted copies of itself, like the space-to-depth transform of ResNet's stem on
    # TPUs. The zeros add multiply-adds, but this takes a quarter of the time (5x5, 16 outputs, 28 pixels; one core).
    shifted = [jnp.pad(kernel, ((0, 0), (i, spare - i), (0, 0), (0, 0))) for i in range(COLUMNS)]
    matrix = jnp.stack(shifted, axis=3).reshape(side, groups, COLUMNS, COLUMNS * outputs)
    y = jax.lax.conv_general_dilated(x, matrix, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    y = y.reshape(batch, height, width // COLUMNS, COLUMNS, outputs)  # in two steps, so that JAX can infer the sharding
    return y.reshape(batch, height, width, outputs)


def _by_places(d_y: jax.Array, kernel: jax.Array) -> jax.Array:
    """The gradient of the input as one product for each position in the kernel, without transposing the kernel."""
    # The plain form transposes the kernel first. If the kernel is larger than the images, this form took 0.6 to 0.75
    # of the time of the plain form (256 and 512 channels, 4 and 7 pixels; one and two cores). On images of 8 pixels and
    # more it took up to four times as long.
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


def max_pool(x: jax.Array, window: int, *, padding: int = 0) -> jax.Array:
    """The maximum of each square window, at a stride of 2, with -inf as padding. Equal values share the gradient."""
    pad = (padding, padding)
    if padding:
        x = jnp.pad(x, ((0, 0), pad, pad, (0, 0)), constant_values=-jnp.inf)
    # Rows first, then columns, each as the maximum of shifted arrays. The gradient of a windowed reduction is a
    # scatter, which takes 3 to 10 times as long and several times the memory on XLA's CPU backend.
    for axis in (1, 2):
        last = (x.shape[axis] - window) // 2 * 2 + 1
        x = functools.reduce(jnp.maximum, [jax.lax.slice_in_dim(x, i, i + last, 2, axis) for i in range(window)])
    return x


def average_to(x: jax.Array, side: int) -> jax.Array:
    """Means of equal squares, (B, H, W, C) -> (B, side, side, C): PyTorch's adaptive pool if `side` divides H and W."""
    batch, height, width, channels = x.shape
    squares = x.reshape(batch, side, height // side, side, width // side, channels)
    return jnp.mean(squares, axis=(2, 4))


class BatchNorm(nnx.Module):
    """Normalizes the last axis by the mean and variance over all others: (batch, ..., features), at least two axes.

    Statistics and arithmetic are float32; the result has the input's dtype. The running statistics move by
    1 - `momentum` in each step. Their variance is the biased variance (divided by n, not n - 1).
    """

    def __init__(
        self,
        features: int,
        *,
        statistics: str,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        scale: float = 1.0,
        rngs: nnx.Rngs | None = None,
    ):
        """statistics: "device", over each device's own examples, without communication; "global", over all examples of
        the step, with two small all-reduces. Raises UserError for any other value.
        scale: initial value of the learned scale.
        rngs: unused, accepted like by other layers.
        """
        if statistics not in STATISTICS:
            raise UserError(f"there are no statistics '{statistics}': {did_you_mean(statistics, STATISTICS)}")
        self.scale = nnx.Param(jnp.full(features, scale))
        self.bias = nnx.Param(jnp.zeros(features))
        self.mean = nnx.BatchStat(jnp.zeros(features))
        self.variance = nnx.BatchStat(jnp.ones(features))
        self.statistics, self.momentum, self.epsilon = statistics, momentum, epsilon
        self.use_running_average = False  # nnx's eval() sets it

    def __call__(self, x: jax.Array) -> jax.Array:
        if self.use_running_average:
            return self._normalized(x, self.mean[...], self.variance[...])
        context = sharding_context.current()
        if self.statistics == "device" and context.parts > 1:
            # Each contiguous group of a sharded batch is on one device, so this needs no communication.
            groups = x.reshape(context.parts, x.shape[0] // context.parts, *x.shape[1:])
            return self._by_group(groups, leading=1, axis=None).reshape(x.shape)
        return self._by_group(x, leading=0, axis=context.axis if self.statistics == "global" else None)

    def _by_group(self, x: jax.Array, *, leading: int, axis: str | tuple[str, ...] | None) -> jax.Array:
        """Normalizes each group along the `leading` axes separately, and updates the running statistics."""
        mean, variance = moments(x, over=tuple(range(leading, x.ndim - 1)), axis=axis)
        self._update(self.mean, mean)
        self._update(self.variance, variance)
        return self._normalized(x, mean, variance)

    def _update(self, running: nnx.BatchStat, value: jax.Array) -> None:
        """Updates with the mean over groups, which equals the average of per-device running statistics."""
        value = jnp.mean(value, axis=tuple(range(value.ndim - 1)))
        # Running statistics are no part of the loss, so nothing is differentiated through them.
        running.set_value(self.momentum * running[...] + (1 - self.momentum) * jax.lax.stop_gradient(value))

    def _normalized(self, x: jax.Array, mean: jax.Array, variance: jax.Array) -> jax.Array:
        """The input normalised in float32, in the format of the input."""
        slope = jax.lax.rsqrt(variance + self.epsilon) * self.scale[...].astype(jnp.float32)
        y = (x.astype(jnp.float32) - mean) * slope + self.bias[...].astype(jnp.float32)
        return y.astype(x.dtype)


def moments(x: jax.Array, *, over: tuple[int, ...], axis: str | tuple[str, ...] | None) -> tuple[jax.Array, jax.Array]:
    """Mean and variance in float32 over the axes `over` (kept, of length 1) and over the devices of a mapped `axis`."""
    x = x.astype(jnp.float32)
    mean = _mean_over(x, over, axis)
    # In two passes: the mean of squares minus the square of the mean would lose all digits of a small variance around a
    # large mean.
    return mean, _mean_over(jnp.square(x - mean), over, axis)


def _mean_over(x: jax.Array, over: tuple[int, ...], axis: str | tuple[str, ...] | None) -> jax.Array:
    mean = jnp.mean(x, axis=over, keepdims=True)
    return mean if axis is None else jax.lax.pmean(mean, axis)
