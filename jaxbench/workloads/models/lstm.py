# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A classifier of byte strings: embedding, one LSTM layer, the mean of its states, logits.

Hochreiter and Schmidhuber, Neural Computation 9(8), 1997, with the forget gate of Gers et al., 2000. The contribution
of the inputs to the gates does not depend on the state, so it is one product before the loop. Byte 0 pads short strings
and does not count in the mean.

Axes: P devices, B examples of each, T positions, D embedding width, H state width, G = 4 H gates.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx
from jax.typing import DTypeLike
from ml_collections import ConfigDict

from jaxbench.errors import present
from jaxbench.workloads.flops import dense
from jaxbench.workloads.models.sharded_layers import by_device, copies, join, rows, split

VOCAB = 256  # bytes
Gates = tuple[jax.Array, jax.Array, jax.Array, jax.Array]  # input, forget, cell and output
Residuals = tuple[jax.Array, jax.Array, Gates, jax.Array]  # states, cells, gates, kernel


class LSTM(nnx.Module):
    """(B, T, D) to the states (B, T, H), from a zero state. The order of gates is input, forget, cell, output."""

    def __init__(self, inputs: int, width: int, rngs: nnx.Rngs):
        self.width = width
        self.inputs = nnx.Linear(inputs, 4 * width, bias_init=_open_forget_gates, rngs=rngs)
        initial = nnx.initializers.orthogonal(column_axis=-1)
        self.recurrent = nnx.Param(initial(rngs.params(), (width, 4 * width), jnp.float32))

    def __call__(self, x_BTD: jax.Array) -> jax.Array:
        inputs_TPBG = self._products(x_BTD)
        bias_P1G = copies(present(self.inputs.bias)[...][None], inputs_TPBG[0])
        states_TPBH = _states(inputs_TPBG, bias_P1G, copies(self.recurrent[...], inputs_TPBG[0]))
        return join(jnp.moveaxis(states_TPBH, 0, 2))

    def _products(self, x_BTD: jax.Array) -> jax.Array:
        """The contribution of the inputs to the gates, (T, P, B, G), without the bias."""
        # `x_BTD`, the smaller array, is transposed before the product, so that this is a product of two plain matrices.
        # On XLA's CPU backend the step took 0.7 of the time that it took with the product first. The loop adds the
        # bias, to values that are in the cache.
        x_PTBD = jnp.moveaxis(split(x_BTD), 2, 1)
        products = x_PTBD.reshape(-1, x_PTBD.shape[-1]) @ self.inputs.kernel[...]
        return jnp.moveaxis(products.reshape(*x_PTBD.shape[:-1], -1), 1, 0)


@jax.custom_vjp
def _states(inputs_TPBG: jax.Array, bias_P1G: jax.Array, kernel_PHG: jax.Array) -> jax.Array:
    """The states (T, P, B, H) from the contribution of the inputs to the gates, their bias and the recurrent matrix.

    There is no forward mode.
    """
    # The backward pass is written out, because the differentiated loop would update the gradient of the matrix at each
    # position. Here the loop yields only the gradients of the gates, and one product over all positions follows.
    return _forward(inputs_TPBG, bias_P1G, kernel_PHG)[0]


def _forward(inputs_TPBG: jax.Array, bias_P1G: jax.Array, kernel_PHG: jax.Array) -> tuple[jax.Array, Residuals]:
    """The states of all time steps, and what the backward pass needs."""

    # The gates are stored too: a backward pass that computes them again would repeat the loop's products.
    def step(
        carry: tuple[jax.Array, jax.Array], inputs_PBG: jax.Array
    ) -> tuple[tuple[jax.Array, jax.Array], tuple[jax.Array, jax.Array, Gates]]:
        state_PBH, cell_PBH = carry
        gates_PBG = inputs_PBG + bias_P1G + by_device(jnp.matmul, state_PBH, kernel_PHG)
        i, f, g, o = jnp.split(gates_PBG, 4, axis=-1)
        i, f, g, o = _sigmoid(i), _sigmoid(f), jnp.tanh(g), _sigmoid(o)
        cell_PBH = f * cell_PBH + i * g
        state_PBH = o * jnp.tanh(cell_PBH)
        return (state_PBH, cell_PBH), (state_PBH, cell_PBH, (i, f, g, o))

    zeros_PBH = jnp.zeros_like(inputs_TPBG[0, ..., : kernel_PHG.shape[1]])
    _, (states_TPBH, cells_TPBH, gates) = jax.lax.scan(step, (zeros_PBH, zeros_PBH), inputs_TPBG)
    return states_TPBH, (states_TPBH, cells_TPBH, gates, kernel_PHG)


def _backward(residuals: Residuals, d_states_TPBH: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Gradients of the inputs, the bias and the kernel, in a loop backwards in time."""
    states_TPBH, cells_TPBH, gates, kernel_PHG = residuals
    transposed_PGH = jnp.swapaxes(kernel_PHG, 1, 2)  # once, outside the loop

    def step(
        carry: tuple[jax.Array, jax.Array], at: tuple[jax.Array, Gates, jax.Array, jax.Array]
    ) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        d_state_PBH, d_cell_PBH = carry
        above_PBH, (i, f, g, o), cell_PBH, before_PBH = at
        d_state_PBH = d_state_PBH + above_PBH
        squashed_PBH = jnp.tanh(cell_PBH)
        d_cell_PBH = d_cell_PBH + d_state_PBH * o * (1 - squashed_PBH**2)
        by_gate = (
            d_cell_PBH * g * i * (1 - i),
            d_cell_PBH * before_PBH * f * (1 - f),
            d_cell_PBH * i * (1 - g**2),
            d_state_PBH * squashed_PBH * o * (1 - o),
        )
        d_gates_PBG = jnp.concatenate(by_gate, axis=-1)
        return (by_device(jnp.matmul, d_gates_PBG, transposed_PGH), d_cell_PBH * f), d_gates_PBG

    zeros_PBH = jnp.zeros_like(d_states_TPBH[0])
    at = (d_states_TPBH, gates, cells_TPBH, _shifted(cells_TPBH))
    _, d_gates_TPBG = jax.lax.scan(step, (zeros_PBH, zeros_PBH), at, reverse=True)
    rows = [jnp.moveaxis(x, 1, 0) for x in (_shifted(states_TPBH), d_gates_TPBG)]
    rows = [x.reshape(x.shape[0], -1, x.shape[-1]) for x in rows]
    d_bias_P1G = jnp.sum(rows[1], axis=1, keepdims=True)
    return d_gates_TPBG, d_bias_P1G, by_device(lambda state, gate: state.T @ gate, *rows)


_states.defvjp(_forward, _backward)


def _sigmoid(x: jax.Array) -> jax.Array:
    # As a tanh, which XLA's CPU backend computes by a polynomial.
    return 0.5 + 0.5 * jnp.tanh(0.5 * x)


def _shifted(x_T: jax.Array) -> jax.Array:
    """`x_T` shifted by one position, with zeros at the first."""
    return jnp.concatenate([jnp.zeros_like(x_T[:1]), x_T[:-1]])


def _open_forget_gates(key: jax.Array, shape: tuple[int, ...], dtype: DTypeLike, **_: object) -> jax.Array:
    """The initial bias: 1 for the forget gates, so a state lasts at first (Jozefowicz et al., ICML 2015)."""
    width = shape[0] // 4
    return jnp.zeros(shape, dtype).at[width : 2 * width].set(1)


class Classifier(nnx.Module):
    """Bytes (B, T), padded with 0, to logits (B, classes)."""

    def __init__(self, config: ConfigDict, rngs: nnx.Rngs):
        """config: has `embedding`, `width` and `classes`."""
        self.embedding = nnx.Param(0.1 * jax.random.normal(rngs.params(), (VOCAB, config.embedding)))
        self.lstm = LSTM(config.embedding, config.width, rngs)
        self.logits = nnx.Linear(config.width, config.classes, rngs=rngs)

    def __call__(self, tokens_BT: jax.Array) -> jax.Array:
        states_BTH = self.lstm(rows(self.embedding[...], tokens_BT))
        real_BT1 = (tokens_BT > 0)[..., None]  # a text of padding alone divides by 1
        total_BH = jnp.sum(jnp.where(real_BT1, states_BTH, 0), axis=1, dtype=jnp.float32)
        mean_BH = total_BH / jnp.maximum(jnp.sum(real_BT1, axis=1), 1)
        return self.logits(mean_BH.astype(states_BTH.dtype))


def layer_flops(config: ConfigDict) -> list[float]:
    """Forward FLOPs of each product, one example: inputs, states, logits; not the lookup."""
    gates = 4 * config.width
    steps = [config.length * dense(config.embedding, gates), config.length * dense(config.width, gates)]
    return [*steps, dense(config.width, config.classes)]
