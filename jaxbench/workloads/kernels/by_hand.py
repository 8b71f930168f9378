# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Forward and backward pass of small models, written by hand in NumPy and (the smallest) one value at a time in Python.

Each takes parameters, inputs and labels, and returns the gradient of the mean cross-entropy with respect to each
parameter. The formulas follow from the chain rule. The LSTM is that of Hochreiter and Schmidhuber 1997 with a forget
gate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

import jax
import numpy as np
from scipy import special

Arrays = tuple[np.ndarray, ...]
Array = TypeVar("Array", np.ndarray, jax.Array)
Rows = list[list[float]]
Matrix = list[list[float]]
KERNEL, STRIDE = 5, 2  # the convolution's
NODES, COLUMNS, BINS, L2 = 8, 28, 256, 1.0  # a level of a boosted tree, for a table like Higgs


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a @ b


def mlp(w1: np.ndarray, b1: np.ndarray, w2: np.ndarray, b2: np.ndarray, x: np.ndarray, label: np.ndarray) -> Arrays:
    """x (rows, inputs), one hidden layer. Gradients of w1, b1, w2, b2."""
    # tanh in all models here: the gradient of a ReLU jumps at 0, so the result of a device that rounds in another way
    # would be correct and yet far off.
    hidden = np.tanh(x @ w1 + b1)
    error = _error(hidden @ w2 + b2, label)
    back = (error @ w2.T) * (1 - hidden**2)
    return x.T @ back, back.sum(0), hidden.T @ error, error.sum(0)


def mlp_logits(w1: np.ndarray, b1: np.ndarray, w2: np.ndarray, b2: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.tanh(x @ w1 + b1) @ w2 + b2


def cnn(kernel: np.ndarray, w: np.ndarray, x: np.ndarray, label: np.ndarray) -> Arrays:
    """x (rows, side, side); a convolution without padding, and a dense layer. Gradients of kernel and w.

    kernel (KERNEL * KERNEL, channels): a convolution is the product of the image's patches with it.
    """
    patches = _patches(x)  # kept for the backward pass, where the gradient of the kernel is a product with them
    hidden = np.tanh(patches @ kernel)
    flat = hidden.reshape(len(x), -1)
    error = _error(flat @ w, label)
    back = (error @ w.T).reshape(hidden.shape) * (1 - hidden**2)
    return patches.T @ back, flat.T @ error


def cnn_logits(kernel: np.ndarray, w: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.tanh(_patches(x) @ kernel).reshape(len(x), -1) @ w


def _patches(x: np.ndarray) -> np.ndarray:
    """The patches of images: (rows, side, side) -> (rows x positions, KERNEL * KERNEL)."""
    windows = np.lib.stride_tricks.sliding_window_view(x, (KERNEL, KERNEL), axis=(1, 2))[:, ::STRIDE, ::STRIDE]
    return windows.reshape(-1, KERNEL * KERNEL)


def lstm(
    embedding: np.ndarray,
    wx: np.ndarray,
    wh: np.ndarray,
    b: np.ndarray,
    w: np.ndarray,
    tokens: np.ndarray,
    label: np.ndarray,
) -> Arrays:
    """tokens (rows, positions); the last output is classified. Gates: input, forget, cell, output, in columns of wx."""
    length, x = tokens.shape[1], embedding[tokens]
    h, kept = _read(x, wx, wh, b)
    error = _error(h @ w, label)
    dw, dh, dc = h.T @ error, error @ w.T, np.zeros_like(h)
    dwx, dwh, db, dx = np.zeros_like(wx), np.zeros_like(wh), np.zeros_like(b), np.empty_like(x)
    for t in reversed(range(length)):
        h, before, i, f, g, o, squashed = kept[t]
        dc = dc + dh * o * (1 - squashed**2)
        di, df = dc * g * i * (1 - i), dc * before * f * (1 - f)
        dg, do = dc * i * (1 - g**2), dh * squashed * o * (1 - o)
        back = np.concatenate([di, df, dg, do], axis=1)
        dwx += x[:, t].T @ back
        dwh += h.T @ back
        db += back.sum(0)
        dx[:, t], dh, dc = back @ wx.T, back @ wh.T, dc * f
    dembedding = np.zeros_like(embedding)
    np.add.at(dembedding, tokens, dx)  # `+=` would add a token that occurs twice only once
    return dembedding, dwx, dwh, db, dw


def lstm_logits(
    embedding: np.ndarray, wx: np.ndarray, wh: np.ndarray, b: np.ndarray, w: np.ndarray, tokens: np.ndarray
) -> np.ndarray:
    return _read(embedding[tokens], wx, wh, b)[0] @ w


def _read(x: np.ndarray, wx: np.ndarray, wh: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, list[Arrays]]:
    """The last output, and the residuals of each position for the backward pass. x: (rows, positions, embedding)."""
    width = wh.shape[0]
    h = c = np.zeros((len(x), width), wx.dtype)
    kept: list[Arrays] = []
    for t in range(x.shape[1]):
        gates = x[:, t] @ wx + h @ wh + b
        i, f, o = (special.expit(gates[:, k * width : (k + 1) * width]) for k in (0, 1, 3))
        g = np.tanh(gates[:, 2 * width : 3 * width])
        before, c = c, f * c + i * g
        squashed = np.tanh(c)
        kept.append((h, before, i, f, g, o, squashed))
        h = o * squashed
    return h, kept


def level(first: np.ndarray, second: np.ndarray, bins: np.ndarray, node: np.ndarray) -> np.ndarray:
    """The best gain of a split, by node and column (NODES, COLUMNS), from sums by node, column and bin.

    first, second: derivatives of the loss of each row, (rows,). bins: (rows, COLUMNS). node: (rows,), numbered in the
    whole tree, so the nodes of this level are NODES .. 2 NODES - 1. The gain is that of Chen and Guestrin 2016,
    equation 7, without its factor 1/2.
    """
    cell = (((node[:, None] - NODES) * COLUMNS + np.arange(COLUMNS)) * BINS + bins).ravel()
    sums = (
        np.bincount(cell, np.repeat(each, COLUMNS), NODES * COLUMNS * BINS).reshape(NODES, COLUMNS, BINS)
        for each in (first, second)
    )
    return np.asarray(best_gains(*sums), first.dtype)


def best_gains(first: Array, second: Array) -> Array:
    """The best gain of a split, (NODES, COLUMNS), from the sums (NODES, COLUMNS, BINS) of both derivatives.

    The arrays may be those of NumPy or of JAX.
    """
    left, weight = first.cumsum(2), second.cumsum(2)  # a split after each bin
    total, whole = left[..., -1:], weight[..., -1:]
    gains = left**2 / (weight + L2) + (total - left) ** 2 / (whole - weight + L2) - total**2 / (whole + L2)
    return gains.max(2)


def _error(logits: np.ndarray, label: np.ndarray) -> np.ndarray:
    """The gradient of the mean cross-entropy with respect to the logits."""
    error = special.softmax(logits, axis=1)
    error[np.arange(len(label)), label] -= 1
    return np.asarray(error / len(label), logits.dtype)


def python_product(a: np.ndarray, b: np.ndarray) -> Callable[[], np.ndarray]:
    """One multiplication at a time, on Python's own numbers (double precision)."""
    rows, columns = a.tolist(), b.T.tolist()  # outside the timed region: numbers of NumPy are slower than Python's
    return lambda: np.asarray(_times(rows, columns))


def python_mlp(*arguments: np.ndarray) -> Callable[[], tuple[np.ndarray, ...]]:
    """`mlp`, one multiplication at a time. The same order of results."""
    w1, b1, w2, b2, x, label = (argument.tolist() for argument in arguments)

    def gradients() -> tuple[Rows, list[float], Rows, list[float]]:
        columns1, columns2 = _turned(w1), _turned(w2)
        hidden = [[math.tanh(v + b) for v, b in zip(row, b1, strict=True)] for row in _times(x, columns1)]
        logits = [[v + b for v, b in zip(row, b2, strict=True)] for row in _times(hidden, columns2)]
        error = [_python_error(row, which, len(label)) for row, which in zip(logits, label, strict=True)]
        back = [
            [v * (1 - h * h) for v, h in zip(row, of, strict=True)]
            for row, of in zip(_times(error, w2), hidden, strict=True)
        ]
        columns_back, columns_error = _turned(back), _turned(error)
        return (
            _times(_turned(x), columns_back),
            [sum(column) for column in columns_back],
            _times(_turned(hidden), columns_error),
            [sum(column) for column in columns_error],
        )

    return lambda: tuple(map(np.asarray, gradients()))


def _turned(rows: Matrix) -> Matrix:
    """The transposed matrix."""
    return [list(column) for column in zip(*rows, strict=True)]


def _times(rows: Matrix, columns: Matrix) -> Matrix:
    """The product of rows (m, k) and a matrix given by its columns (n, k)."""
    return [[sum(a * b for a, b in zip(row, column, strict=True)) for column in columns] for row in rows]


def _python_error(logits: list[float], label: int, rows: int) -> list[float]:
    largest = max(logits)  # `exp` cannot overflow below it
    powers = [math.exp(v - largest) for v in logits]
    total = sum(powers)
    return [(p / total - (which == label)) / rows for which, p in enumerate(powers)]
