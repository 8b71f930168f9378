# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Every kernel of every experiment computes the right result, in every CPU format; and a wrong value is detected."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from kernel_cases import SEED, kernels, one_of_each, run
from thin import thin

from jaxbench.measure.runnable import count_wrong
from jaxbench.workloads.kernels import matmul

CASES = one_of_each()


def leaves(result: Any) -> list[np.ndarray]:
    """The arrays of a result; a list of Python numbers is one."""
    return [np.asarray(x) for x in ([result] if isinstance(result, list) else jax.tree.leaves(result))]


def spoiled(result: Any) -> Any:
    """The result with its first value off by 1."""
    if isinstance(result, list):
        return [result[0] + 1, *result[1:]]
    first, *rest = map(np.array, leaves(result))
    first.flat[0] += 1
    return jax.tree.unflatten(jax.tree.structure(result), [first, *rest])


@pytest.mark.parametrize("label", thin([*CASES], [*CASES][::2]))
def test_results_are_right_and_a_wrong_one_is_seen(label: str) -> None:
    case = CASES[label]
    ran = run(case)
    assert (ran.wrong, ran.looped_wrong) == (0, 0)
    assert count_wrong(case, spoiled(ran.result), SEED) >= 1
    if case.impl != "python":  # Python numbers have double precision
        assert str(leaves(ran.result)[0].dtype) == matmul.RESULT.get(case.dtype, case.dtype)
        held = sum(a.nbytes for a in case.arguments) + sum(x.nbytes for x in leaves(ran.result))
        assert held <= case.resident_bytes


@pytest.mark.parametrize("shape", ["tall", "batched"])
@pytest.mark.parametrize("impl", ["jit", "numpy"])
def test_other_shapes_of_products_are_right(shape: str, impl: str) -> None:
    (case,) = kernels("matmul", shapes=shape, sizes="128", dtypes="float32", impls=impl)
    assert run(case).wrong == 0


@pytest.mark.parametrize("experiment", ["activation", "stream", "fusion"])
def test_one_element_is_a_size(experiment: str) -> None:
    for case in kernels(experiment, sizes="1"):
        assert run(case).wrong == 0, case.key


def test_integer_products_are_exact() -> None:
    (case,) = kernels("matmul", shapes="square", sizes="64", dtypes="int8")
    a, b = np.random.default_rng(0).integers(-1000, 1000, (2, 64, 64))
    right = a @ b
    assert case.wrong is not None and case.wrong(right, (a, b)) == 0
    right[5, 5] += 1
    assert case.wrong(right, (a, b)) == 1


@pytest.mark.parametrize("lie", ["Q = A, R = 1", "L not lower", "singular values not sorted", "not-a-number"])
def test_factors_that_multiply_to_the_matrix_must_be_of_the_right_kind(lie: str) -> None:
    n = 8
    a = np.random.default_rng(0).standard_normal((n, n))
    symmetric = a @ a.T + n * np.eye(n)
    turned = np.linalg.qr(a)[0]
    u, s, vt = np.linalg.svd(a)
    op, matrix, factors = {
        "Q = A, R = 1": ("qr", a, (a, np.eye(n))),
        "L not lower": ("cholesky", symmetric, (np.linalg.cholesky(symmetric) @ turned,)),
        "singular values not sorted": ("svd", a, (u[:, ::-1], s[::-1], vt[::-1])),
        "not-a-number": ("qr", a, tuple(np.linalg.qr(a * np.nan))),
    }[lie]
    (case,) = kernels("linalg", ops=op, sizes=str(n), dtypes="float64", impls="jit")
    assert case.wrong is not None and case.wrong(factors, (matrix,)) > 0
    right = {"qr": lambda: np.linalg.qr(a), "cholesky": lambda: (np.linalg.cholesky(symmetric),)}.get(
        op, lambda: (u, s, vt)
    )
    assert case.wrong(tuple(right()), (matrix,)) == 0
