# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The benefit of fusion: the same arithmetic op by op, as one program with barriers, and as one fused program.

    chain  8 element-wise operations of one operand
    block  y = x + bias, GELU (tanh form), softmax over rows of 1,000

Each is written once; the function that runs an operation is an argument. "op_by_op" calls `jax.numpy` eagerly: one
program for each operation, with every intermediate result in memory. "barriers" is one program in which every operation
stores its result. "fused" leaves fusion to the compiler.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from jaxbench.workloads.cases import ULPS, Array, KernelWorkload, epsilon, itemsize
from jaxbench.workloads.fusion_fence import fenced
from jaxbench.workloads.kernels.activation import CUBE, SCALE

IMPLS = ("op_by_op", "barriers", "fused")
DTYPES = ("float32", "float64")
COLUMNS = 1000

# (function of jax.numpy, its operands ...) -> its result
Do = Callable[..., Any]


def _chain(do: Do, x: Any) -> Any:
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


def _block(do: Do, x: Any, bias: Any) -> Any:
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
    x = do(jnp.subtract, x, do(_row_max, x))
    x = do(jnp.exp, x)
    return do(jnp.divide, x, do(_row_sum, x))


def _row_max(x: jax.Array) -> jax.Array:
    return jnp.max(x, axis=-1, keepdims=True)


def _row_sum(x: jax.Array) -> jax.Array:
    return jnp.sum(x, axis=-1, keepdims=True)


def _block_answer(x: np.ndarray, bias: np.ndarray) -> np.ndarray:
    x = x + bias
    return special.softmax(x * special.expit(2 * SCALE * (x + CUBE * x**3)), axis=-1)


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """A sequence of operations.

    passes: full-size arrays read and written if every operation stores its result; a repeated operand counts once.
    row_passes: the same count for columns of one number per row.
    flops: operations per element; None if some are elementary functions.
    """

    function: Callable[..., Any]
    answer: Callable[..., np.ndarray]
    passes: int
    row_passes: int = 0
    flops: float | None = None


KERNELS = {
    "chain": Kernel(function=_chain, answer=_chain_answer, passes=8 * 2, flops=8),
    # 13 operations read and write one array each, 3 of them read a second, and each of the 2 reductions reads one.
    "block": Kernel(function=_block, answer=_block_answer, passes=13 * 2 + 3 + 2, row_passes=4),
}
OPS = tuple(KERNELS)


def arguments(op: str, dtype: str, elements: int) -> tuple[Array, ...]:
    """The arguments of a kernel. `block` has full rows only: at least one, shorter than 1,000 for fewer elements."""
    if op == "chain":
        return (Array((elements,), dtype),)
    columns = min(COLUMNS, elements)
    return Array((elements // columns, columns), dtype), Array((columns,), dtype)


def cases(op: str, dtype: str, elements: int, impls: tuple[str, ...] = IMPLS) -> Iterator[KernelWorkload]:
    """One kernel of about `elements` numbers in each implementation."""
    kernel, arrays_in = KERNELS[op], arguments(op, dtype, elements)
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
            prepare=_eager(kernel.function) if impl == "op_by_op" else None,
            answer=kernel.answer,
            tolerance=ULPS * epsilon(dtype),
            elementwise=op == "chain",
            in_flight_bytes=2 * arrays_in[0].nbytes if impl != "fused" else 0,
        )


def _numbers_moved(kernel: Kernel, arrays_in: tuple[Array, ...], *, stored: bool) -> int:
    """Count of numbers read and written. Fused: arguments and result once, since a row of `block` stays in cache."""
    full, others = math.prod(arrays_in[0].shape), sum(math.prod(a.shape) for a in arrays_in[1:])
    if not stored:
        return 2 * full + others
    return kernel.passes * full + others + kernel.row_passes * arrays_in[0].shape[0]


def direct(function: Callable[..., Any], *operands: Any) -> Any:
    """Runs an operation without a barrier."""
    return function(*operands)


def _with_barriers(function: Callable[..., Any], *operands: Any) -> Any:
    """Runs an operation with its array operands and its result in memory. Scalars are compiled in."""
    places = [i for i, operand in enumerate(operands) if isinstance(operand, jax.Array)]

    def operation(*arrays: jax.Array) -> Any:
        filled = list(operands)
        for place, array in zip(places, arrays, strict=True):
            filled[place] = array
        return function(*filled)

    return fenced(operation)(*[operands[i] for i in places])


def _compiled(function: Callable[..., Any], impl: str) -> Callable[..., Any]:
    do = _with_barriers if impl == "barriers" else direct
    return fenced(lambda *arrays: function(do, *arrays))


def _eager(function: Callable[..., Any]) -> Callable[..., Callable[[], Any]]:
    def prepare(*arrays: jax.Array) -> Callable[[], Any]:
        return lambda: function(direct, *arrays)

    return prepare
