# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Activation functions of n numbers in a Python loop, NumPy and XLA, to find the crossovers in speed.

GELU is its tanh form, 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) (Hendrycks and Gimpel 2016), in all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from scipy import special

from jaxbench.workloads.cases import ULPS, Array, KernelWorkload, epsilon, in_place, itemsize

IMPLS = ("python", "numpy", "jit")
DTYPES = ("float32", "float64")
PYTHON_MAX = 10**4  # elements, for which a call takes about a millisecond
SCALE, CUBE = math.sqrt(2 / math.pi), 0.044715


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
        answer=lambda x: x * special.expit(2 * SCALE * (x + CUBE * x**3)),
    ),
    "tanh": Activation(
        python=math.tanh, numpy=np.tanh, jax=jax.numpy.tanh, answer=lambda x: 1 - 2 / (1 + np.exp(2 * x))
    ),
}
OPS = tuple(ACTIVATIONS)


def cases(op: str, dtype: str, elements: int, impls: tuple[str, ...] = IMPLS) -> Iterator[KernelWorkload]:
    """The implementations of one function at one size. Python's numbers are double precision for any `dtype`."""
    activation = ACTIVATIONS[op]
    prepares: dict[str, Any] = {"python": _in_a_loop(activation.python), "numpy": in_place(activation.numpy)}
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
