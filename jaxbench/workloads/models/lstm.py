# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A classifier of byte strings: embedding, one LSTM layer, the mean of its states, logits.

Hochreiter and Schmidhuber, Neural Computation 9(8), 1997, with the forget gate of Gers et al., 2000. What the inputs
give to the gates does not depend on the state, so it is one product before the loop. Byte 0 fills up short strings and
has no part in the mean.

Axes: P devices, B examples of each, T positions, D embedding width, H state width, G = 4 H gates.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from ml_collections import ConfigDict

from jaxbench.workloads.flops import dense
from jaxbench.workloads.models.per_device import by_device, copies, join, rows, split

VOCAB = 256


class LSTM(nnx.Module):
    """(B, T, D) to the states (B, T, H), from a state of zeros. The order of gates is input, forget, cell, output."""

    def __init__(self, inputs: int, width: int, rngs: nnx.Rngs):
        self.width = width
        self.inputs = nnx.Linear(inputs, 4 * width, bias_init=_open_forget_gates, rngs=rngs)
        initial = nnx.initializers.orthogonal(column_axis=-1)
        self.recurrent = nnx.Param(initial(rngs.params(), (width, 4 * width), jnp.float32))

    def __call__(self, x_BTD: jax.Array) -> jax.Array:
        gates_TPBG = self._input_gates(x_BTD)
        kernel_PHG = copies(self.recurrent[...], gates_TPBG[0])

        def step(
            carry: tuple[jax.Array, jax.Array], gates_PBG: jax.Array
        ) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
            state_PBH, cell_PBH = carry
            i, f, g, o = jnp.split(gates_PBG + by_device(jnp.matmul, state_PBH, kernel_PHG), 4, axis=-1)
            cell_PBH = jax.nn.sigmoid(f) * cell_PBH + jax.nn.sigmoid(i) * jnp.tanh(g)
            state_PBH = jax.nn.sigmoid(o) * jnp.tanh(cell_PBH)
            return (state_PBH, cell_PBH), state_PBH

        zeros_PBH = jnp.zeros_like(gates_TPBG[0, ..., : self.width])
        _, states_TPBH = jax.lax.scan(step, (zeros_PBH, zeros_PBH), gates_TPBG)
        return join(jnp.moveaxis(states_TPBH, 0, 2))

    def _input_gates(self, x_BTD: jax.Array) -> jax.Array:
        """What the inputs add to the gates, (T, P, B, G).

        Time goes to the front in `x_BTD`, the smaller array, and the product is one of two plain matrices: on XLA's
        CPU the step took 0.7 of the time that it took with the product first.
        """
        x_PTBD = jnp.moveaxis(split(x_BTD), 2, 1)
        gates = self.inputs(x_PTBD.reshape(-1, x_PTBD.shape[-1]))
        return jnp.moveaxis(gates.reshape(*x_PTBD.shape[:-1], -1), 1, 0)


def _open_forget_gates(key: jax.Array, shape: tuple[int, ...], dtype: Any, **_: Any) -> jax.Array:
    """1 for the forget gates, so that a state lasts at first (Jozefowicz et al., ICML 2015), and 0 for the others."""
    width = shape[0] // 4
    return jnp.zeros(shape, dtype).at[width : 2 * width].set(1)


class Classifier(nnx.Module):
    """Bytes (B, T), filled up with 0, to logits (B, classes)."""

    def __init__(self, config: ConfigDict, rngs: nnx.Rngs):
        """config: has `embedding`, `width` and `classes`."""
        self.embedding = nnx.Param(0.1 * jax.random.normal(rngs.params(), (VOCAB, config.embedding)))
        self.lstm = LSTM(config.embedding, config.width, rngs)
        self.logits = nnx.Linear(config.width, config.classes, rngs=rngs)

    def __call__(self, tokens_BT: jax.Array) -> jax.Array:
        states_BTH = self.lstm(rows(self.embedding[...], tokens_BT))
        real_BT1 = (tokens_BT > 0)[..., None]
        total_BH = jnp.sum(jnp.where(real_BT1, states_BTH, 0), axis=1, dtype=jnp.float32)
        mean_BH = total_BH / jnp.maximum(jnp.sum(real_BT1, axis=1), 1)
        return self.logits(mean_BH.astype(states_BTH.dtype))


def layer_flops(config: ConfigDict) -> list[float]:
    """Forward FLOPs of each product, one example: inputs, states, logits. The lookup is none."""
    gates = 4 * config.width
    steps = [config.length * dense(config.embedding, gates), config.length * dense(config.width, gates)]
    return [*steps, dense(config.width, config.classes)]
