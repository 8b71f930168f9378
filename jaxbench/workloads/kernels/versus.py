# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The same jobs in every way that a machine has: Python, NumPy, XLA on its cores, XLA on its accelerators.

    product  (rows, 784) times (784, 128): the first layer below
    mlp      the gradient of a perceptron 784-128-10
    cnn      the gradient of a 5x5 convolution with stride 2 (28x28 to 8 channels), and a dense layer to 10 classes
    lstm     the gradient of a classifier of texts of 16 tokens: embedding 16, LSTM of width 32, 5 classes

A size is a number of rows (of the product, images, texts). XLA differentiates a forward pass; NumPy and Python have the
backward pass written by hand (`by_hand.py`), so that both are checked by each other, in double precision.
"jit+copies" sends the inputs from the host and fetches the result with each call: what a program costs whose data do
not stay on the device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench.workloads.cases import Array, KernelWorkload
from jaxbench.workloads.flops import conv2d, dense, training
from jaxbench.workloads.kernels import by_hand

IMPLS = ("python", "numpy", "jit", "jit+copies")
DTYPES = ("float32",)
PYTHON_MAX = 16  # rows, for which a call of Python's takes about a second
PIXELS, HIDDEN, CLASSES, SIDE, CHANNELS = 784, 128, 10, 28, 8
LENGTH, WORDS, EMBEDDING, WIDTH, KINDS = 16, 256, 16, 32, 5
OUTPUT = (SIDE - by_hand.KERNEL) // by_hand.STRIDE + 1  # side of the convolution's output
# Relative to the largest value: sums of many numbers in float32, in another order, through up to 16 positions; and
# under XLA, where an accelerator rounds the factors of float32 products to TF32 or bfloat16, several such products.
TOLERANCE = {"python": 1e-4, "numpy": 1e-4, "jit": 2**-6, "jit+copies": 2**-6}


@dataclass(frozen=True, kw_only=True)
class Routine:
    """One job. arrays: rows -> its arguments. flops: of one row."""

    jax: Callable[..., Any]
    numpy: Callable[..., Any]
    python: Callable[..., Callable[[], Any]] | None = None
    arrays: Callable[[int], tuple[Array, ...]]
    flops: float
    parameters: int = 0  # the first arguments, whose gradients are the result


def _of(classes: int, *shape: int) -> Array:
    return Array(shape, "int32", draw=lambda random, shape: random.integers(0, classes, shape))


def _weights(inputs: int, outputs: int) -> Array:
    return Array((inputs, outputs), scale=inputs**-0.5)


def _loss(logits: jax.Array, label: jax.Array) -> jax.Array:
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), label[:, None], axis=1))


def _mlp(w1: Any, b1: Any, w2: Any, b2: Any, x: Any, label: Any) -> jax.Array:
    return _loss(jnp.tanh(x @ w1 + b1) @ w2 + b2, label)


def _cnn(kernel: Any, w: Any, x: Any, label: Any) -> jax.Array:
    # A product of patches, as in NumPy: kernels are timed in a call that is not inlined (fusion_fence.py), where XLA's
    # CPU is slow at the gradient of a convolution's kernel.
    ends, places = by_hand.STRIDE * OUTPUT, range(by_hand.KERNEL)
    patches = [x[:, i : i + ends : by_hand.STRIDE, j : j + ends : by_hand.STRIDE] for i in places for j in places]
    hidden = jnp.stack(patches, axis=-1) @ kernel
    return _loss(jnp.tanh(hidden).reshape(len(x), -1) @ w, label)


def _lstm(embedding: Any, wx: Any, wh: Any, b: Any, w: Any, tokens: Any, label: Any) -> jax.Array:
    def position(state: tuple[Any, Any], x: jax.Array) -> tuple[tuple[Any, Any], None]:
        h, c = state
        i, f, g, o = jnp.split(x + h @ wh, 4, axis=1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

    zeros = jnp.zeros((len(tokens), WIDTH), wx.dtype)
    inputs = jnp.swapaxes(embedding[tokens] @ wx + b, 0, 1)  # of all positions in one product
    (h, _), _ = jax.lax.scan(position, (zeros, zeros), inputs, unroll=True)  # whose FLOPs are seen
    return _loss(h @ w, label)


JOBS = {
    "product": Routine(
        jax=lambda a, b: a @ b,
        numpy=by_hand.product,
        python=by_hand.python_product,
        arrays=lambda rows: (Array((rows, PIXELS)), _weights(PIXELS, HIDDEN)),
        flops=dense(PIXELS, HIDDEN),
    ),
    "mlp": Routine(
        jax=jax.grad(_mlp, argnums=tuple(range(4))),
        parameters=4,
        numpy=by_hand.mlp,
        python=by_hand.python_mlp,
        arrays=lambda rows: (
            _weights(PIXELS, HIDDEN), Array((HIDDEN,)), _weights(HIDDEN, CLASSES), Array((CLASSES,)),
            Array((rows, PIXELS)), _of(CLASSES, rows),
        ),
        flops=training([dense(PIXELS, HIDDEN), dense(HIDDEN, CLASSES)]),
    ),
    "cnn": Routine(
        jax=jax.grad(_cnn, argnums=tuple(range(2))),
        parameters=2,
        numpy=by_hand.cnn,
        arrays=lambda rows: (
            _weights(by_hand.KERNEL**2, CHANNELS), _weights(OUTPUT**2 * CHANNELS, CLASSES),
            Array((rows, SIDE, SIDE)), _of(CLASSES, rows),
        ),
        flops=training([
            conv2d(OUTPUT, OUTPUT, kernel=by_hand.KERNEL, inputs=1, outputs=CHANNELS),
            dense(OUTPUT**2 * CHANNELS, CLASSES),
        ]),
    ),
    "lstm": Routine(
        jax=jax.grad(_lstm, argnums=tuple(range(5))),
        parameters=5,
        numpy=by_hand.lstm,
        arrays=lambda rows: (
            Array((WORDS, EMBEDDING)), _weights(EMBEDDING, 4 * WIDTH), _weights(WIDTH, 4 * WIDTH), Array((4 * WIDTH,)),
            _weights(WIDTH, KINDS), _of(WORDS, rows, LENGTH), _of(KINDS, rows),
        ),
        flops=training([0.0, LENGTH * dense(EMBEDDING + WIDTH, 4 * WIDTH), dense(WIDTH, KINDS)]),
    ),
}  # fmt: skip
OPS = tuple(JOBS)


def cases(op: str, dtype: str, rows: int, impls: tuple[str, ...] = IMPLS) -> Iterator[KernelWorkload]:
    """The implementations of one job at one size. Python's numbers are double precision."""
    job = JOBS[op]
    prepares = {"python": job.python, "numpy": _called(job.numpy), "jit+copies": _with_copies(job.jax)}
    arrays = job.arrays(rows)
    for impl in impls:
        if impl == "python" and (job.python is None or rows > PYTHON_MAX):
            continue
        yield KernelWorkload(
            op=op,
            dtype=dtype,
            impl=impl,
            elements=rows,
            flops=job.flops * rows,
            bytes_moved=None,
            arguments=arrays,
            function=job.jax if impl == "jit" else None,
            prepare=prepares.get(impl),
            answer=job.numpy,
            tolerance=TOLERANCE[impl],
            result_bytes=4 * rows * HIDDEN if op == "product" else sum(a.nbytes for a in arrays[: job.parameters]),
            host=impl in ("python", "numpy"),
            waits=impl == "jit+copies",
        )


def _called(function: Callable[..., Any]) -> Callable[..., Callable[[], Any]]:
    return lambda *arrays: lambda: function(*arrays)


def _with_copies(function: Callable[..., Any]) -> Callable[..., Callable[[], Any]]:
    """Calls with arguments on the host, and a result that is fetched."""

    def prepare(*arrays: jax.Array) -> Callable[[], Any]:
        compiled, at_host = jax.jit(function), [np.asarray(array) for array in arrays]
        return lambda: jax.device_get(compiled(*at_host))

    return prepare
