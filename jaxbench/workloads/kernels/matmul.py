# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Matrix products of several shapes, and the benefit of tiling.

FLOPs are 2 m n k for each product; bytes count each matrix once. bfloat16 and float16 accumulate as the backend chooses
and return their own format. int8 returns int32, and the 8-bit floats return bfloat16.

"untiled" computes one row of the result at a time, so every row streams all of B through the caches. "tiled"
uses square blocks that stay in a core's second-level cache. Both do the same multiplications.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench.catalog import published
from jaxbench.workloads.cases import Array, KernelWorkload, epsilon, itemsize

IMPLS = ("jit", "numpy", "numpy-untiled", "numpy-tiled", "jit-untiled", "jit-tiled")
DTYPES = ("float32", "bfloat16", "float16", "float64", "int8", "float8_e4m3fn", "float8_e5m2")
SHAPES = ("square", "tall", "batched")
RESULT = {"int8": "int32", "float8_e4m3fn": "bfloat16", "float8_e5m2": "bfloat16"}  # other formats: their own

BLOCK = 128  # side of a tile: three of them are 192 KiB in float32
TILED_SIDES = range(256, 1025, BLOCK)  # for tiling: B is a quarter of a 1 MiB cache, up to four times it
CHECKED_ROWS = 256  # evenly spaced rows of a result: checking all of 16384^3 would take longer than measuring

SEARCH_SIDES = (512, 1024, 2048)
SEARCH_LARGE_SIDES = (2048, 4096, 8192, 16384)  # too much work for a CPU, except 2048^3, which is also above


@dataclass(frozen=True)
class Shape:
    """`batch` products of an (m, k) by a (k, n) matrix."""

    m: int
    n: int
    k: int
    batch: int = 1

    @property
    def label(self) -> str:
        """ "MxNxK", "BxMxNxK"."""
        sides = (self.m, self.n, self.k)
        return "x".join(map(str, sides if self.batch == 1 else (self.batch, *sides)))

    @property
    def operations(self) -> float:
        return 2.0 * self.batch * self.m * self.n * self.k

    @property
    def side(self) -> int:
        """The side of the square product with the same number of FLOPs."""
        return round((self.operations / 2) ** (1 / 3))

    @property
    def square(self) -> bool:
        return self.batch == 1 and self.m == self.n == self.k

    def arrays(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """The shapes of A, B and the result."""
        lead = (self.batch,) if self.batch > 1 else ()
        return (*lead, self.m, self.k), (*lead, self.k, self.n), (*lead, self.m, self.n)


def shape(name: str, side: int) -> Shape:
    """A shape with as many FLOPs as the square product of this side. name: one of SHAPES.

    "tall" and "batched" have 64 times the work of a product of a quarter of the side: as one long product, and as 64
    small ones.
    """
    small = max(1, side // 4)
    if name == "tall":
        return Shape(64 * small, small, small)
    return Shape(small, small, small, batch=64) if name == "batched" else Shape(side, side, side)


def search(sides: tuple[int, ...] = ()) -> tuple[Shape, ...]:
    """The grid of shapes on which to search for the fastest product: all combinations of three `sides`.

    Without `sides`: a grid for CPUs, a grid for accelerators, and the winners of published searches.
    """
    if sides:
        return tuple(Shape(*three) for three in product(sides, repeat=3))
    cpu = [Shape(*three) for three in product(SEARCH_SIDES, repeat=3)]
    accelerator = [Shape(*three) for three in product(SEARCH_LARGE_SIDES, repeat=3)]
    published_best = [Shape(*map(int, text.split("x"))) for text in published.read("mamf_bf16").frame["best_MxNxK"]]
    return tuple(dict.fromkeys([*cpu, *accelerator, *published_best]))


def cases(shape: Shape, dtype: str, impls: tuple[str, ...] = IMPLS) -> Iterator[KernelWorkload]:
    """One product in one format, by each implementation that supports it.

    NumPy lacks short floats, and the tiled products are float32.
    """
    a, b, c = shape.arrays()
    result = RESULT.get(dtype, dtype)
    sizes = itemsize(dtype) * (math.prod(a) + math.prod(b)), itemsize(result) * math.prod(c)
    compiled = {"jit": _product, "jit-untiled": _by_rows, "jit-tiled": _by_blocks}
    host = {"numpy": _numpy, "numpy-untiled": _numpy_by_rows, "numpy-tiled": _numpy_by_blocks}
    for impl in impls:
        if not _supports(impl, shape, dtype):
            continue
        tolerance = _tolerance(shape.k, dtype, impl)
        yield KernelWorkload(
            op="matmul",
            dtype=dtype,
            impl=impl,
            shape=shape.label,
            elements=shape.side,
            flops=shape.operations,
            bytes_moved=float(sum(sizes)),
            arguments=(Array(a, dtype), Array(b, dtype)),
            function=partial(compiled[impl], result=result) if impl in compiled else None,
            prepare=host.get(impl),
            wrong=partial(wrong_rows, tolerance=tolerance),
            host=impl in host,
            cpu_only=impl.endswith("tiled"),
            result_bytes=sizes[1],
        )


def _supports(impl: str, shape: Shape, dtype: str) -> bool:
    """Whether an implementation computes this shape and format."""
    if impl.endswith("tiled"):
        return dtype == "float32" and shape.square and shape.m in TILED_SIDES
    return impl == "jit" or dtype in ("float32", "float64")


def _tolerance(k: int, dtype: str, impl: str) -> float:
    """The tolerance relative to the largest value of the result, which for normal factors is about 5 sqrt(k)."""
    if dtype == "int8":  # integers are exact
        return 0.0
    # k roundings of a sum that grows like sqrt(k) leave a relative error like sqrt(k) epsilon. Formats shorter than
    # float32 accumulate in a longer format, so only the rounding of the result counts.
    summed = math.sqrt(k) * epsilon("float64" if dtype == "float64" else "float32")
    if dtype == "float32" and impl.startswith("jit"):
        # Accelerators round float32 factors to TF32 or bfloat16 by default, an error of up to 2^-8 per product.
        # (Omitting a single product from each sum of 16384 still makes every twentieth value wrong.)
        return 2**-8
    return max(summed, epsilon(RESULT.get(dtype, dtype)))


def wrong_rows(result: np.ndarray, factors: tuple[np.ndarray, ...], tolerance: float) -> int:
    """Counts the wrong values in up to CHECKED_ROWS evenly spaced rows of A B."""
    a, b = (x.reshape(-1, *x.shape[-2:]) for x in factors)
    batch, m, _ = a.shape
    rows = np.unique(np.linspace(0, m - 1, max(1, CHECKED_ROWS // batch)).round().astype(int))
    expected = a[:, rows] @ b
    actual = np.asarray(result).reshape(batch, m, -1)[:, rows].astype(np.float64)
    return int(np.sum(~(np.abs(actual - expected) <= tolerance * np.max(np.abs(expected)))))


def _product(a: jax.Array, b: jax.Array, *, result: str) -> jax.Array:
    return jnp.matmul(a, b, preferred_element_type=result)


def _by_rows(a: jax.Array, b: jax.Array, *, result: str) -> jax.Array:  # a loop: XLA would do all rows at once
    def row(i: jax.Array, c: jax.Array) -> jax.Array:
        return c.at[i].set(a[i] @ b)

    return jax.lax.fori_loop(0, a.shape[0], row, jnp.zeros((a.shape[0], b.shape[1]), result))


def _by_blocks(a: jax.Array, b: jax.Array, *, result: str) -> jax.Array:
    sides = a.shape[0] // BLOCK, b.shape[1] // BLOCK, a.shape[1] // BLOCK

    def block(step: jax.Array, c: jax.Array) -> jax.Array:
        i, j, k = (BLOCK * place for place in jnp.unravel_index(step, sides))  # k fastest: one result tile at a time
        part = _cut(a, i, k) @ _cut(b, k, j)
        return jax.lax.dynamic_update_slice(c, _cut(c, i, j) + part, (i, j))

    return jax.lax.fori_loop(0, math.prod(sides), block, jnp.zeros((a.shape[0], b.shape[1]), result))


def _cut(matrix: jax.Array, row: jax.Array, column: jax.Array) -> jax.Array:
    """The block of a matrix that starts at (row, column)."""
    return jax.lax.dynamic_slice(matrix, (row, column), (BLOCK, BLOCK))


def _numpy(a: np.ndarray, b: np.ndarray) -> Callable[[], np.ndarray]:
    """NumPy's product into a preallocated result."""
    out = np.empty((*a.shape[:-1], b.shape[-1]), a.dtype)
    return lambda: np.matmul(a, b, out=out)


def _numpy_by_rows(a: np.ndarray, b: np.ndarray) -> Callable[[], np.ndarray]:
    out = np.empty((a.shape[0], b.shape[1]), a.dtype)
    rows = list(zip(a, out, strict=True))

    def untiled() -> np.ndarray:
        for row, into in rows:
            np.matmul(row, b, out=into)
        return out

    return untiled


def _numpy_by_blocks(a: np.ndarray, b: np.ndarray) -> Callable[[], np.ndarray]:
    out, part = np.empty((a.shape[0], b.shape[1]), a.dtype), np.empty((BLOCK, BLOCK), a.dtype)
    starts = [range(0, side, BLOCK) for side in (a.shape[0], b.shape[1], a.shape[1])]

    def cut(matrix: np.ndarray, row: int, column: int) -> np.ndarray:
        return matrix[row : row + BLOCK, column : column + BLOCK]

    # Ordered so that each tile of the result is completed before the next.
    blocks = [(cut(a, i, k), cut(b, k, j), cut(out, i, j), k == 0) for i, j, k in product(*starts)]

    def tiled() -> np.ndarray:
        for left, right, into, first in blocks:
            if first:
                np.matmul(left, right, out=into)
            else:
                np.add(into, np.matmul(left, right, out=part), out=into)
        return out

    return tiled
