# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Kernels over arrays of n numbers: STREAM, activation functions, and the benefit of fusion.

STREAM (McCalpin 1995) measures the bandwidth of each level of memory. Bytes are counted as in STREAM: each array once,
without the reads of the cache before an array is overwritten. NumPy needs two passes for triad and moves more bytes.

    copy  a = b          2 arrays
    scale a = s b        2 arrays, 1 operation per element
    add   a = b + c      3 arrays, 1
    triad a = b + s c    3 arrays, 2

Activation functions run in a Python loop, NumPy and XLA, to find the crossovers in speed. GELU is its tanh form,
0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) (Hendrycks and Gimpel 2016), in all of them.

The benefit of fusion is the same arithmetic op by op, as one program with barriers, and as one fused program. Each
kernel is written once; the function that runs an operation is an argument. "op_by_op" calls `jax.numpy` eagerly: one
program for each operation, with every intermediate result in memory. "barriers" is one program in which every operation
stores its result. "fused" leaves fusion to the compiler.

    chain  8 element-wise operations of one operand
    block  y = x + bias, GELU (tanh form), softmax over rows of 1,000
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from jaxbench.core.trees import ArrayTree
from jaxbench.workloads.cases import ULPS, Array, KernelGrid, KernelWorkload, epsilon, in_place, itemsize
from jaxbench.workloads.fusion_fence import fenced

P = ParamSpec("P")
T = TypeVar("T")
DTYPES = ("float32", "float64")  # what NumPy and STREAM have
SCALAR = 3.0  # as in STREAM
PYTHON_MAX = 10**4  # elements, for which a call takes about a millisecond
SCALE, CUBE = math.sqrt(2 / math.pi), 0.044715  # of the tanh form of GELU: Hendrycks and Gimpel, arXiv:1606.08415
COLUMNS = 1000


@dataclass(frozen=True, kw_only=True)
class StreamKernel:
    """One of the four kernels. `arrays`: the number read and written. `flops`: operations per element; None: none.

    jax: on NumPy arrays in double precision it gives the right answer. numpy: (arguments ..., out) -> out.
    one: its second argument is a 1 that the compiler does not know.
    roundings: the largest number of roundings of one value.
    """

    arrays: int
    flops: float | None
    jax: Callable[..., ArrayTree]
    numpy: Callable[..., np.ndarray]
    one: bool = False
    roundings: float = 0.0


def _numpy_copy(b: np.ndarray, one: np.ndarray, out: np.ndarray) -> np.ndarray:
    np.copyto(out, b)
    return out


def _numpy_triad(c: np.ndarray, b: np.ndarray, out: np.ndarray) -> np.ndarray:  # in two passes over `out`
    np.multiply(c, SCALAR, out=out)
    return np.add(b, out, out=out)


STREAM_KERNELS = {
    # A plain copy compiles to two copies (the argument stays live) or to none, so this is a product.
    "copy": StreamKernel(arrays=2, flops=None, jax=lambda b, one: b * one, numpy=_numpy_copy, one=True),
    "scale": StreamKernel(
        arrays=2, flops=1, jax=lambda b: SCALAR * b, numpy=lambda b, out: np.multiply(b, SCALAR, out=out), roundings=1
    ),
    "add": StreamKernel(arrays=3, flops=1, jax=lambda b, c: b + c, numpy=np.add, roundings=1),
    # c comes first because the first argument changes from step to step, so s c is never loop-invariant.
    "triad": StreamKernel(arrays=3, flops=2, jax=lambda c, b: b + SCALAR * c, numpy=_numpy_triad, roundings=2),
}


def stream_cases(op: str, dtype: str, elements: int, impls: tuple[str, ...]) -> Iterator[KernelWorkload]:
    """One kernel over arrays of `elements` numbers each."""
    kernel, array = STREAM_KERNELS[op], Array((elements,), dtype)
    # One of the arrays is the result. The 1 is a number of one element, so it adds nothing to the bytes.
    rest = (Array((1,), dtype, draw=lambda _, shape: np.ones(shape)),) if kernel.one else (array,) * (kernel.arrays - 2)
    for impl in impls:
        yield KernelWorkload(
            op=op,
            dtype=dtype,
            impl=impl,
            elements=elements,
            flops=None if kernel.flops is None else kernel.flops * elements,
            bytes_moved=float(kernel.arrays * elements * itemsize(dtype)),
            arguments=(array, *rest),
            function=kernel.jax if impl == "jit" else None,
            prepare=in_place(kernel.numpy) if impl == "numpy" else None,
            answer=kernel.jax,
            tolerance=kernel.roundings * epsilon(dtype),
            elementwise=True,
            host=impl == "numpy",
        )


@dataclass(frozen=True, kw_only=True)
class Activation:
    """One function in each implementation, and its correct result in double precision by another formula.

    numpy: (x, out) -> out, without further arrays.
    flops: operations per element; None with an exp or tanh, which takes 1 to 20 operations, depending on the hardware.
    exact: the result is not rounded.
    """

    python: Callable[[float], float]
    numpy: Callable[[np.ndarray, np.ndarray], np.ndarray]
    jax: Callable[[jax.Array], jax.Array]
    answer: Callable[[np.ndarray], np.ndarray]
    flops: float | None = None
    exact: bool = False


def _numpy_sigmoid(x: np.ndarray, out: np.ndarray) -> np.ndarray:
    np.negative(x, out=out)
    np.exp(out, out=out)
    np.add(out, 1, out=out)
    return np.divide(1, out, out=out)


def _numpy_gelu(x: np.ndarray, out: np.ndarray) -> np.ndarray:
    np.multiply(x, x, out=out)
    np.multiply(out, CUBE, out=out)
    np.add(out, 1, out=out)
    np.multiply(out, x, out=out)
    np.multiply(out, SCALE, out=out)
    np.tanh(out, out=out)
    np.add(out, 1, out=out)
    np.multiply(out, x, out=out)
    return np.multiply(out, 0.5, out=out)


ACTIVATIONS = {
    "relu": Activation(
        python=lambda x: x if x > 0 else 0.0,
        numpy=lambda x, out: np.maximum(x, 0, out=out),
        jax=jax.nn.relu,
        answer=lambda x: np.where(x > 0, x, 0),
        flops=1,
        exact=True,
    ),
    "sigmoid": Activation(
        python=lambda x: 1 / (1 + math.exp(-x)), numpy=_numpy_sigmoid, jax=jax.nn.sigmoid, answer=special.expit
    ),
    "gelu": Activation(
        python=lambda x: 0.5 * x * (1 + math.tanh(SCALE * (x + CUBE * x * x * x))),
        numpy=_numpy_gelu,
        jax=lambda x: jax.nn.gelu(x, approximate=True),
        # 1 + tanh(y) = 2 / (1 + exp(-2 y)): an error common to all implementations would show.
        answer=lambda x: x * special.expit(2 * SCALE * (x + CUBE * x**3)),
    ),
    "tanh": Activation(
        python=math.tanh, numpy=np.tanh, jax=jax.numpy.tanh, answer=lambda x: 1 - 2 / (1 + np.exp(2 * x))
    ),
}


def activation_cases(op: str, dtype: str, elements: int, impls: tuple[str, ...]) -> Iterator[KernelWorkload]:
    """The implementations of one function at one size. Python's numbers are double precision for any `dtype`."""
    activation = ACTIVATIONS[op]
    prepares: dict[str, Callable[..., Callable[[], object]]] = {
        "python": _in_a_loop(activation.python),
        "numpy": in_place(activation.numpy),
    }
    for impl in impls:
        if impl == "python" and elements > PYTHON_MAX:
            continue
        yield KernelWorkload(
            op=op,
            dtype=dtype,
            impl=impl,
            elements=elements,
            flops=None if activation.flops is None else activation.flops * elements,
            bytes_moved=None if impl == "python" else 2.0 * elements * itemsize(dtype),
            arguments=(Array((elements,), dtype),),
            function=activation.jax if impl == "jit" else None,
            prepare=prepares.get(impl),
            answer=activation.answer,
            tolerance=0.0 if activation.exact else ULPS * epsilon(dtype),
            elementwise=True,
            host=impl != "jit",
            in_flight_bytes=2 * 40 * elements if impl == "python" else 0,  # two lists of pointers to 32-byte numbers
        )


def _in_a_loop(function: Callable[[float], float]) -> Callable[[np.ndarray], Callable[[], list[float]]]:
    def prepare(x: np.ndarray) -> Callable[[], list[float]]:
        values = x.tolist()
        return lambda: [function(value) for value in values]

    return prepare


# (function of jax.numpy, its operands ...) -> its result
Do = Callable[..., jax.Array]  # (operation, operands ...) -> its result


def _chain(do: Do, x: jax.Array) -> jax.Array:
    """Eight operations that read and write one array: without fusion, each passes over memory."""
    x = do(jnp.multiply, x, 1.5)
    x = do(jnp.add, x, 0.5)
    x = do(jnp.maximum, x, -1.0)
    x = do(jnp.square, x)
    x = do(jnp.subtract, x, 2.0)
    x = do(jnp.abs, x)
    x = do(jnp.minimum, x, 3.0)
    return do(jnp.multiply, x, 0.25)


def _chain_answer(x: np.ndarray) -> np.ndarray:
    return 0.25 * np.minimum(np.abs(np.clip(1.5 * x + 0.5, -1, None) ** 2 - 2), 3)


def _block(do: Do, x: jax.Array, bias: jax.Array) -> jax.Array:
    """Bias, GELU and softmax, one operation at a time."""
    x = do(jnp.add, x, bias)
    inner = do(jnp.multiply, x, x)
    inner = do(jnp.multiply, inner, x)
    inner = do(jnp.multiply, inner, CUBE)
    inner = do(jnp.add, inner, x)
    inner = do(jnp.multiply, inner, SCALE)
    inner = do(jnp.tanh, inner)
    inner = do(jnp.add, inner, 1.0)
    x = do(jnp.multiply, x, inner)
    x = do(jnp.multiply, x, 0.5)
    x = do(jnp.subtract, x, do(partial(jnp.max, axis=-1, keepdims=True), x))  # a softmax that cannot overflow
    x = do(jnp.exp, x)
    return do(jnp.divide, x, do(partial(jnp.sum, axis=-1, keepdims=True), x))


def _block_answer(x: np.ndarray, bias: np.ndarray) -> np.ndarray:
    x = x + bias
    return special.softmax(x * special.expit(2 * SCALE * (x + CUBE * x**3)), axis=-1)


@dataclass(frozen=True, kw_only=True)
class FusionKernel:
    """A sequence of operations.

    passes: full-size arrays read and written if every operation stores its result; a repeated operand counts once.
    row_passes: the same count for columns of one number per row.
    flops: operations per element; None if some are elementary functions.
    """

    function: Callable[..., jax.Array]
    answer: Callable[..., np.ndarray]
    passes: int
    row_passes: int = 0
    flops: float | None = None


FUSION_KERNELS = {
    "chain": FusionKernel(function=_chain, answer=_chain_answer, passes=8 * 2, flops=8),
    # 13 operations read and write one array each, 3 of them read a second, and each of the 2 reductions reads one.
    "block": FusionKernel(function=_block, answer=_block_answer, passes=13 * 2 + 3 + 2, row_passes=4),
}


def fusion_arguments(op: str, dtype: str, elements: int) -> tuple[Array, ...]:
    """The arguments of a kernel. `block` has full rows only: at least one, shorter than 1,000 for fewer elements."""
    if op == "chain":
        return (Array((elements,), dtype),)
    columns = min(COLUMNS, elements)  # so that the sizes of `chain` are sizes of `block` too
    return Array((elements // columns, columns), dtype), Array((columns,), dtype)


def fusion_cases(op: str, dtype: str, elements: int, impls: tuple[str, ...]) -> Iterator[KernelWorkload]:
    """One kernel of about `elements` numbers in each implementation."""
    kernel, arrays_in = FUSION_KERNELS[op], fusion_arguments(op, dtype, elements)
    elements = math.prod(arrays_in[0].shape)
    for impl in impls:
        yield KernelWorkload(
            op=op,
            dtype=dtype,
            impl=impl,
            shape="x".join(map(str, arrays_in[0].shape)) if len(arrays_in[0].shape) > 1 else "",
            elements=elements,
            flops=None if kernel.flops is None else kernel.flops * elements,
            bytes_moved=float(itemsize(dtype) * _numbers_moved(kernel, arrays_in, stored=impl != "fused")),
            arguments=arrays_in,
            function=_compiled(kernel.function, impl) if impl != "op_by_op" else None,
            prepare=(lambda *arrays: lambda: kernel.function(direct, *arrays)) if impl == "op_by_op" else None,
            answer=kernel.answer,
            tolerance=ULPS * epsilon(dtype),
            elementwise=op == "chain",
            in_flight_bytes=2 * arrays_in[0].nbytes if impl != "fused" else 0,
        )


def _numbers_moved(kernel: FusionKernel, arrays_in: tuple[Array, ...], *, stored: bool) -> int:
    """Count of numbers read and written. Fused: arguments and result once, since a row of `block` stays in cache."""
    full, others = math.prod(arrays_in[0].shape), sum(math.prod(a.shape) for a in arrays_in[1:])
    if not stored:
        return 2 * full + others
    return kernel.passes * full + others + kernel.row_passes * arrays_in[0].shape[0]


def direct(function: Callable[P, T], *operands: P.args, **named: P.kwargs) -> T:
    """Runs an operation without a barrier."""
    return function(*operands, **named)


def _with_barriers(function: Callable[..., jax.Array], *operands: jax.Array | float) -> jax.Array:
    """Runs an operation with its array operands and its result in memory. Scalars are compiled in."""
    indices = [i for i, operand in enumerate(operands) if isinstance(operand, jax.Array)]

    def operation(*arrays: jax.Array) -> jax.Array:
        filled = list(operands)
        for index, array in zip(indices, arrays, strict=True):
            filled[index] = array
        return function(*filled)

    return fenced(operation)(*[operands[i] for i in indices])


def _compiled(function: Callable[..., jax.Array], impl: str) -> Callable[..., jax.Array]:
    """The kernel with or without barriers between its operations."""
    # "fused" is behind a fence too, or XLA would fuse the kernel with the step around it.
    do = _with_barriers if impl == "barriers" else direct
    return fenced(lambda *arrays: function(do, *arrays))


STREAM = KernelGrid(tuple(STREAM_KERNELS), DTYPES, ("jit", "numpy"), stream_cases)
ACTIVATION = KernelGrid(tuple(ACTIVATIONS), DTYPES, ("python", "numpy", "jit"), activation_cases)
FUSION = KernelGrid(tuple(FUSION_KERNELS), DTYPES, ("op_by_op", "barriers", "fused"), fusion_cases)
