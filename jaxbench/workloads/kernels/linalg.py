# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Factorizations of an n x n matrix in XLA, and in NumPy or SciPy, which call LAPACK.

FLOPs are from Golub and Van Loan, Matrix Computations: LU with partial pivoting 2/3 n^3 (section 3.4), Cholesky 1/3 n^3
(4.2), Householder QR 4/3 n^3, and as much again to form Q (5.2). A singular value decomposition iterates, and its
algorithms differ by more than a factor of 2 in operations, so it has no count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg

from jaxbench.core.trees import ArrayTree
from jaxbench.workloads.cases import Array, KernelGrid, KernelWorkload, epsilon, itemsize

# LAPACK's own tests accept a factorization with a residual below 30 n epsilon, relative to the matrix.
LAPACK_RATIO = 30

Matrices = tuple[np.ndarray, ...]


@dataclass(frozen=True, kw_only=True)
class Factorisation:
    """One factorization.

    host: its library on the host ("numpy" or "scipy"), and the function.
    matrices: number of n x n matrices that must be read and written.
    residuals: (factors in double precision, matrix) -> matrices that should be zero, each relative to 1.
    """

    jax: Callable[[jax.Array], ArrayTree]
    host: tuple[str, Callable[[np.ndarray], ArrayTree]]
    flops: Callable[[int], float] | None
    matrices: int
    residuals: Callable[[Matrices, np.ndarray], Matrices]
    draw: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray] | None = None


def _lu_residuals(factors: Matrices, a: np.ndarray) -> Matrices:
    """P A = L U, from the packed factors and the row swaps."""
    packed, swaps = factors
    rows = np.arange(len(a))  # LAPACK's pivots are swaps, one after the other, and not a permutation
    for i, swap in enumerate(swaps.astype(int)):
        rows[[i, swap]] = rows[[swap, i]]
    lower, upper = np.tril(packed, -1) + np.eye(len(a)), np.triu(packed)
    return ((lower @ upper - a[rows]) / np.max(np.abs(a)),)


def _cholesky_residuals(factors: Matrices, a: np.ndarray) -> Matrices:
    (lower,) = factors  # its upper triangle must be zero, too: LAPACK itself leaves the matrix there
    return (lower @ lower.T - a) / np.max(np.abs(a)), np.triu(lower, 1)


def _qr_residuals(factors: Matrices, a: np.ndarray) -> Matrices:
    q, r = factors
    return (q @ r - a) / np.max(np.abs(a)), q.T @ q - np.eye(len(a)), np.tril(r, -1)


def _svd_residuals(factors: Matrices, a: np.ndarray) -> Matrices:
    u, s, vt = factors
    identity = np.eye(len(a))
    ordered = np.minimum(s, 0) + np.maximum(np.diff(s, append=s[-1]), 0)  # not negative, descending
    return (u * s @ vt - a) / np.max(np.abs(a)), u.T @ u - identity, vt @ vt.T - identity, ordered / s[0]


def _positive_definite(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """G G^T / n + 1: symmetric, eigenvalues between 1 and about 5."""
    g = random.standard_normal(shape)
    return g @ g.T / shape[0] + np.eye(shape[0])


FACTORISATIONS = {
    "lu": Factorisation(
        jax=jax.scipy.linalg.lu_factor,
        host=("scipy", lambda a: scipy.linalg.lu_factor(a, check_finite=False)),
        flops=lambda n: 2 / 3 * n**3,
        matrices=2,
        residuals=_lu_residuals,
    ),
    "qr": Factorisation(
        jax=lambda a: tuple(jnp.linalg.qr(a)),
        host=("numpy", lambda a: tuple(np.linalg.qr(a))),
        flops=lambda n: 8 / 3 * n**3,
        matrices=3,
        residuals=_qr_residuals,
    ),
    "cholesky": Factorisation(
        # LAPACK reads one triangle; symmetrizing the input first would be work that NumPy does not do.
        jax=lambda a: (jnp.linalg.cholesky(a, symmetrize_input=False),),
        host=("numpy", lambda a: (np.linalg.cholesky(a),)),
        flops=lambda n: 1 / 3 * n**3,
        matrices=2,
        residuals=_cholesky_residuals,
        draw=_positive_definite,
    ),
    "svd": Factorisation(
        jax=lambda a: tuple(jnp.linalg.svd(a, full_matrices=False)),
        host=("numpy", lambda a: tuple(np.linalg.svd(a, full_matrices=False))),
        flops=None,
        matrices=3,
        residuals=_svd_residuals,
    ),
}


def cases(op: str, dtype: str, n: int, impls: tuple[str, ...]) -> Iterator[KernelWorkload]:
    """One factorization of an n x n matrix, by XLA and by its library on the host."""
    factorisation = FACTORISATIONS[op]
    library, on_host = factorisation.host
    size = n * n * itemsize(dtype)
    for impl in (name for name in impls if name in ("jit", library)):
        yield KernelWorkload(
            op=op,
            dtype=dtype,
            impl=impl,
            shape=f"{n}x{n}",
            elements=n,
            flops=None if factorisation.flops is None else factorisation.flops(n),
            bytes_moved=float(factorisation.matrices * size),
            arguments=(Array((n, n), dtype, draw=factorisation.draw),),
            function=factorisation.jax if impl == "jit" else None,
            # No `out=`: NumPy and SciPy allocate their results in each call, which counts as their time.
            prepare=(lambda a: lambda: on_host(a)) if impl != "jit" else None,
            wrong=_wrong(factorisation.residuals, LAPACK_RATIO * n * epsilon(dtype)),
            host=impl != "jit",
            result_bytes=factorisation.matrices * size,
            in_flight_bytes=2 * size,
        )


def _wrong(
    residuals: Callable[[Matrices, np.ndarray], Matrices], limit: float
) -> Callable[[Any, tuple[np.ndarray, ...]], int]:
    """Counts the entries of the residuals above `limit`, NaN included."""

    def wrong(result: Any, arguments: tuple[np.ndarray, ...]) -> int:
        # The factors are not unique (signs, order of equal values), so their product is compared.
        factors = tuple(np.asarray(factor).astype(np.float64) for factor in result)
        return sum(int(np.sum(~(np.abs(r) <= limit))) for r in residuals(factors, arguments[0]))

    return wrong


LINALG = KernelGrid(tuple(FACTORISATIONS), ("float32", "float64"), ("jit", "numpy", "scipy"), cases)
