# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The four kernels of STREAM (McCalpin 1995), which measure the bandwidth of each level of memory.

    copy  a = b          2 arrays
    scale a = s b        2 arrays, 1 operation per element
    add   a = b + c      3 arrays, 1
    triad a = b + s c    3 arrays, 2

Bytes are counted as in STREAM: each array once, without the reads of the cache before an array is overwritten. NumPy
needs two passes for triad and moves more bytes than this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import jax
import numpy as np

from jaxbench.workloads.cases import Array, KernelWorkload, epsilon, in_place, itemsize

IMPLS = ("jit", "numpy")
DTYPES = ("float32", "float64")
SCALAR = 3.0  # as in STREAM


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """One of the four kernels. `arrays`: the number read and written. `flops`: operations per element; None: none.

    numpy: (arguments ..., out) -> out. answer: the same in double precision.
    one: its second argument is a 1 that the compiler does not know.
    roundings: the largest number of roundings of one value.
    """

    arrays: int
    flops: float | None
    jax: Callable[..., jax.Array]
    numpy: Callable[..., np.ndarray]
    answer: Callable[..., np.ndarray]
    one: bool = False
    roundings: float = 0.0


def _numpy_copy(b: np.ndarray, one: np.ndarray, out: np.ndarray) -> np.ndarray:
    np.copyto(out, b)
    return out


def _numpy_triad(c: np.ndarray, b: np.ndarray, out: np.ndarray) -> np.ndarray:
    np.multiply(c, SCALAR, out=out)
    return np.add(b, out, out=out)


KERNELS = {
    # A plain copy compiles to two copies (the argument stays live) or to none, so this is a product.
    "copy": Kernel(
        arrays=2, flops=None, jax=lambda b, one: b * one, numpy=_numpy_copy, answer=lambda b, one: b, one=True
    ),
    "scale": Kernel(
        arrays=2,
        flops=1,
        jax=lambda b: SCALAR * b,
        numpy=lambda b, out: np.multiply(b, SCALAR, out=out),
        answer=lambda b: SCALAR * b,
        roundings=1,
    ),
    "add": Kernel(
        arrays=3,
        flops=1,
        jax=lambda b, c: b + c,
        numpy=np.add,
        answer=lambda b, c: b + c,
        roundings=1,
    ),
    # c comes first because the first argument changes from step to step, so s c is never loop-invariant.
    "triad": Kernel(
        arrays=3,
        flops=2,
        jax=lambda c, b: b + SCALAR * c,
        numpy=_numpy_triad,
        answer=lambda c, b: b + SCALAR * c,
        roundings=2,
    ),
}
OPS = tuple(KERNELS)


def cases(op: str, dtype: str, elements: int, impls: tuple[str, ...] = IMPLS) -> Iterator[KernelWorkload]:
    """One kernel over arrays of `elements` numbers each."""
    kernel, array = KERNELS[op], Array((elements,), dtype)
    rest = (Array((1,), dtype, draw=_ones),) if kernel.one else (array,) * (kernel.arrays - 2)
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
            answer=kernel.answer,
            tolerance=kernel.roundings * epsilon(dtype),
            elementwise=True,
            host=impl == "numpy",
        )


def _ones(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return np.ones(shape)
