# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The same jobs in Python, in NumPy, in XLA on the machine's cores and in XLA on its accelerators.

    product  (rows, 784) times (784, 128): the first layer below
    mlp      the gradient of a perceptron 784-128-10
    cnn      the gradient of a 5x5 convolution with stride 2 (28x28 to 8 channels), and a dense layer to 10 classes
    lstm     the gradient of a classifier of texts of 16 tokens: embedding 16, LSTM of width 32, 5 classes
    gbdt     one level of a boosted tree: sums by node, column and bin, and the best gain of each node and column

A size is a number of rows (of the product, images, texts, a table). XLA differentiates a forward pass; NumPy and Python
have a backward pass that is written by hand (`by_hand.py`). So each checks the other, in double precision.
"jit+copies" sends the inputs from the host and fetches the result with each call: the cost of a program if its data
does not stay on the device. Two more variants split that time into parts, and are on no axis of sizes: "waited" finds
its arguments on the device, and "start" is a program of the same arguments that does almost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench.core.trees import ArrayTree
from jaxbench.workloads.cases import Array, KernelWorkload
from jaxbench.workloads.flops import conv2d, dense, training
from jaxbench.workloads.kernels import by_hand

T = TypeVar("T")
WAITED, START = PARTS = ("waited", "start")  # analysis/case_comparisons.py reads these names
IMPLS = ("python", "numpy", "jit", "jit+copies", *PARTS)
DTYPES = ("float32",)
PYTHON_MAX = 16  # rows, for which a call of Python's takes about a second
PIXELS, HIDDEN, CLASSES, SIDE, CHANNELS = 784, 128, 10, 28, 8
LENGTH, WORDS, EMBEDDING, WIDTH, KINDS = 16, 256, 16, 32, 5
OUTPUT = (SIDE - by_hand.KERNEL) // by_hand.STRIDE + 1  # side of the convolution's output
# Relative to the largest value: sums of many numbers in float32, in another order, through up to 16 positions; and
# under XLA, where an accelerator rounds the factors of float32 products to TF32 or bfloat16, several such products.
TOLERANCE, XLA_TOLERANCE = 1e-4, 2**-6


@dataclass(frozen=True, kw_only=True)
class Routine:
    """One job. arrays: rows -> its arguments. flops: of one row. products: whether it has products, which XLA may round
    to fewer bits."""

    jax: Callable[..., ArrayTree]
    numpy: Callable[..., ArrayTree]
    python: Callable[..., Callable[[], object]] | None = None
    arrays: Callable[[int], tuple[Array, ...]]
    flops: float | None
    products: bool = True
    parameters: int = 0  # the number of first arguments that are parameters; their gradients are the result
    result_bytes: Callable[[int], int] | None = None  # rows -> of the result; None: as large as the parameters


def _of(classes: int, *shape: int) -> Array:
    """An array of drawn class numbers."""
    return Array(shape, "int32", draw=lambda random, shape: random.integers(0, classes, shape))


def _weights(inputs: int, outputs: int) -> Array:
    """A weight matrix with the scale that keeps the size of activations."""
    return Array((inputs, outputs), scale=inputs**-0.5)


def _loss(logits: jax.Array, label: jax.Array) -> jax.Array:
    """The mean cross-entropy."""
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), label[:, None], axis=1))


def mlp_logits(w1: jax.Array, b1: jax.Array, w2: jax.Array, b2: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.tanh(x @ w1 + b1) @ w2 + b2


def cnn_logits(kernel: jax.Array, w: jax.Array, x: jax.Array) -> jax.Array:
    # A product of patches, as in NumPy: kernels are timed in a call that is not inlined (fusion_fence.py), where XLA's
    # CPU is slow at the gradient of a convolution's kernel.
    ends, places = by_hand.STRIDE * OUTPUT, range(by_hand.KERNEL)
    patches = [x[:, i : i + ends : by_hand.STRIDE, j : j + ends : by_hand.STRIDE] for i in places for j in places]
    hidden = jnp.stack(patches, axis=-1) @ kernel
    return jnp.tanh(hidden).reshape(len(x), -1) @ w


def lstm_logits(
    embedding: jax.Array, wx: jax.Array, wh: jax.Array, b: jax.Array, w: jax.Array, tokens: jax.Array
) -> jax.Array:
    def position(state: tuple[jax.Array, jax.Array], x: jax.Array) -> tuple[tuple[jax.Array, jax.Array], None]:
        h, c = state
        i, f, g, o = jnp.split(x + h @ wh, 4, axis=1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

    zeros = jnp.zeros((len(tokens), WIDTH), wx.dtype)
    inputs = jnp.swapaxes(embedding[tokens] @ wx + b, 0, 1)  # all positions in one product
    (h, _), _ = jax.lax.scan(position, (zeros, zeros), inputs, unroll=True)  # so the compiler counts its FLOPs
    return h @ w


def gradients(logits: Callable[..., jax.Array], parameters: int) -> Callable[..., tuple[jax.Array, ...]]:
    """(*parameters, inputs, labels) -> the gradient of the mean cross-entropy with respect to each parameter."""
    return jax.grad(lambda *a: _loss(logits(*a[:-1]), a[-1]), argnums=tuple(range(parameters)))


def _level(first: jax.Array, second: jax.Array, bins: jax.Array, node: jax.Array) -> jax.Array:
    """`by_hand.level`, with the sums as a scatter of both derivatives at once."""
    nodes, columns, size = by_hand.NODES, by_hand.COLUMNS, by_hand.BINS
    cell = ((node[:, None] - nodes) * columns + jnp.arange(columns)) * size + bins
    both = jnp.broadcast_to(jnp.stack([first, second], axis=1)[:, None], (*bins.shape, 2))
    sums = jnp.zeros((nodes * columns * size, 2)).at[cell.reshape(-1)].add(both.reshape(-1, 2))
    of_first, of_second = (sums[:, k].reshape(nodes, columns, size) for k in range(2))
    return by_hand.best_gains(of_first, of_second)


def _table(rows: int) -> tuple[Array, ...]:
    """Both derivatives of the loss of each row, its bins, and its node of this level, NODES .. 2 NODES - 1."""
    return (
        Array((rows,)),
        Array((rows,), draw=lambda random, shape: random.uniform(0.01, 0.25, shape)),
        _of(by_hand.BINS, rows, by_hand.COLUMNS),
        Array((rows,), "int32", draw=lambda random, shape: random.integers(by_hand.NODES, 2 * by_hand.NODES, shape)),
    )


JOBS = {
    "product": Routine(
        jax=lambda a, b: a @ b,
        numpy=by_hand.product,
        python=by_hand.python_product,
        arrays=lambda rows: (Array((rows, PIXELS)), _weights(PIXELS, HIDDEN)),
        flops=dense(PIXELS, HIDDEN),
        result_bytes=lambda rows: 4 * rows * HIDDEN,
    ),
    "mlp": Routine(
        jax=gradients(mlp_logits, 4),
        parameters=4,
        numpy=by_hand.mlp,
        python=by_hand.python_mlp,
        arrays=lambda rows: (
            _weights(PIXELS, HIDDEN),
            Array((HIDDEN,)),
            _weights(HIDDEN, CLASSES),
            Array((CLASSES,)),
            Array((rows, PIXELS)),
            _of(CLASSES, rows),
        ),
        flops=training([dense(PIXELS, HIDDEN), dense(HIDDEN, CLASSES)]),
    ),
    "cnn": Routine(
        jax=gradients(cnn_logits, 2),
        parameters=2,
        numpy=by_hand.cnn,
        arrays=lambda rows: (
            _weights(by_hand.KERNEL**2, CHANNELS),
            _weights(OUTPUT**2 * CHANNELS, CLASSES),
            Array((rows, SIDE, SIDE)),
            _of(CLASSES, rows),
        ),
        flops=training(
            [
                conv2d(OUTPUT, OUTPUT, kernel=by_hand.KERNEL, inputs=1, outputs=CHANNELS),
                dense(OUTPUT**2 * CHANNELS, CLASSES),
            ]
        ),
    ),
    "lstm": Routine(
        jax=gradients(lstm_logits, 5),
        parameters=5,
        numpy=by_hand.lstm,
        arrays=lambda rows: (
            Array((WORDS, EMBEDDING)),
            _weights(EMBEDDING, 4 * WIDTH),
            _weights(WIDTH, 4 * WIDTH),
            Array((4 * WIDTH,)),
            _weights(WIDTH, KINDS),
            _of(WORDS, rows, LENGTH),
            _of(KINDS, rows),
        ),
        flops=training([0.0, LENGTH * dense(EMBEDDING + WIDTH, 4 * WIDTH), dense(WIDTH, KINDS)]),
    ),
    "gbdt": Routine(
        jax=_level,
        numpy=by_hand.level,
        arrays=_table,
        products=False,
        flops=None,  # additions, which a compiler counts in its own way
        result_bytes=lambda rows: 4 * by_hand.NODES * by_hand.COLUMNS,
    ),
}
OPS = tuple(JOBS)


def cases(op: str, dtype: str, rows: int, impls: tuple[str, ...] = IMPLS) -> Iterator[KernelWorkload]:
    """The implementations of one job at one size. Python's numbers are double precision."""
    job = JOBS[op]
    prepares = {
        "python": job.python,
        "numpy": lambda *arrays: lambda: job.numpy(*arrays),
        "jit+copies": _with_copies(job.jax),
        WAITED: _waited_for(job.jax),
        START: _waited_for(_little(job)),
    }
    arrays = job.arrays(rows)
    for impl in impls:
        if impl == "python" and (job.python is None or rows > PYTHON_MAX):
            continue
        part, host = impl in PARTS, impl in ("python", "numpy")  # parts are on no axis of sizes
        yield KernelWorkload(
            op=op,
            dtype=dtype,
            impl=impl,
            shape=f"{rows} row{'s' * (rows != 1)}" if part else "",
            elements=0 if part else rows,
            flops=None if job.flops is None or impl == START else job.flops * rows,
            bytes_moved=None,
            arguments=arrays,
            function=job.jax if impl == "jit" else None,
            prepare=prepares.get(impl),
            answer=_little(job) if impl == START else job.numpy,
            tolerance=0.0 if impl == START else XLA_TOLERANCE if job.products and not host else TOLERANCE,
            result_bytes=sum(a.nbytes for a in arrays[: job.parameters])
            if job.result_bytes is None
            else job.result_bytes(rows),
            host=host,
            one_core=impl == "python",
            waits=impl == "jit+copies" or part,
        )


def _little(job: Routine) -> Callable[..., tuple[jax.Array, ...]]:
    """The program of "start": arrays -> a tuple with one number of an argument for each result of the job."""
    # As many results, because each result costs time at the end of a call.
    return lambda *arrays: tuple(array.ravel()[0] for array in arrays[: max(1, job.parameters)])


def _with_copies(function: Callable[..., T]) -> Callable[..., Callable[[], T]]:
    """Calls with arguments on the host; the result is fetched to the host."""

    def prepare(*arrays: jax.Array) -> Callable[[], T]:
        compiled, at_host = jax.jit(function), [np.asarray(array) for array in arrays]
        return lambda: jax.device_get(compiled(*at_host))

    return prepare


def _waited_for(function: Callable[..., T]) -> Callable[..., Callable[[], T]]:
    """Calls with arguments on the device. Each call waits for its result."""

    def prepare(*arrays: jax.Array) -> Callable[[], T]:
        # "start" uses one number of each argument, and must still receive all of them.
        compiled = jax.jit(function, keep_unused=True)
        return lambda: jax.block_until_ready(compiled(*arrays))

    return prepare
