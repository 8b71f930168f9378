# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A mixture of experts in place of a block's perceptron: each position is routed to one expert.

Fedus et al., "Switch Transformers", arXiv:2101.03961: a position goes to the expert with the largest router
probability, and the output of the expert is multiplied by that probability. Positions beyond the capacity of an expert
are dropped (the residual stream remains), and a loss term balances the load. The capacity is per sequence, as for the
groups of Lepikhin et al., "GShard", arXiv:2006.16668, so dropping does not depend on the sharding of the batch.

Axes: B examples, T positions, D width, F hidden width, E experts (after the exchange, those of a device), C capacity.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from jaxbench.workloads import sharding_context

CAPACITY_FACTOR = 1.25  # Switch's default: total capacity of all experts / positions of the sequence
BALANCE = 0.01  # weight of the balance loss, Switch's alpha


def capacity(context: int, experts: int) -> int:
    """The number of positions of one sequence of length `context` that one expert takes."""
    return math.ceil(CAPACITY_FACTOR * context / experts)


class Routing(nnx.Variable):
    """(share of positions dropped, balance loss) of the latest call, float32 (2,)."""


class Mixture(nnx.Module):
    """(B, T, D) to (B, T, D)."""

    def __init__(
        self, *, width: int, hidden: int, experts: int, capacity: int, deviations: tuple[float, float], rngs: nnx.Rngs
    ):
        """deviations: of the first and the second product's initial kernels."""
        self.capacity, self.experts = capacity, experts
        draw = jax.random.normal
        self.router = nnx.Param(deviations[0] * draw(rngs.params(), (width, experts)))
        self.up_kernel = nnx.Param(deviations[0] * draw(rngs.params(), (experts, width, hidden)))
        self.up_bias = nnx.Param(jnp.zeros((experts, hidden)))
        self.down_kernel = nnx.Param(deviations[1] * draw(rngs.params(), (experts, hidden, width)))
        self.down_bias = nnx.Param(jnp.zeros((experts, width)))
        self.routing = Routing(jnp.zeros(2))

    def __call__(self, x_BTD: jax.Array) -> jax.Array:
        # float32 also for a model in bfloat16: a rounded probability could change the chosen expert.
        probability_BTE = jax.nn.softmax((x_BTD @ self.router[...]).astype(jnp.float32))
        slot_BTEC, share, balance = routed(probability_BTE, self.capacity)
        self.routing[...] = jnp.stack([1 - share, balance])
        # Positions are moved to slots by a product with zeros and ones, so no shape depends on the routing.
        slot_BTEC = slot_BTEC.astype(x_BTD.dtype)
        inputs_BECD = _exchanged(jnp.einsum("btec,btd->becd", slot_BTEC, x_BTD), outward=True)
        hidden = jnp.einsum("becd,edf->becf", inputs_BECD, self.up_kernel[...]) + self.up_bias[...][:, None]
        outputs = jnp.einsum("becf,efd->becd", jax.nn.gelu(hidden, approximate=True), self.down_kernel[...])
        outputs_BECD = _exchanged(outputs + self.down_bias[...][:, None], outward=False)
        # The choice itself has no gradient: the prediction's loss trains the router through this factor.
        probability_BT1 = jnp.max(probability_BTE, -1, keepdims=True).astype(x_BTD.dtype)
        return probability_BT1 * jnp.einsum("btec,becd->btd", slot_BTEC, outputs_BECD)


def routed(probability_BTE: jax.Array, capacity: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(1 where a position has a slot of an expert, (B, T, E, C); share of positions with a slot; balance loss).

    Slots are assigned in the order of positions. The balance loss is E times a sum over experts: the share of positions
    routed to the expert times its mean probability. It is 1 if all experts are used equally (Switch, equation 4), and
    is averaged over B.
    """
    experts = probability_BTE.shape[-1]
    chosen_BTE = jax.nn.one_hot(jnp.argmax(probability_BTE, -1), experts)
    before_BTE = jnp.cumsum(chosen_BTE, 1) - chosen_BTE  # earlier positions with the same expert
    slot_BT = jnp.sum(before_BTE * chosen_BTE, -1).astype(jnp.int32)
    slot_BTEC = chosen_BTE[..., None] * jax.nn.one_hot(slot_BT, capacity)[:, :, None]  # no slot beyond the capacity
    balance = experts * jnp.mean(jnp.sum(jnp.mean(chosen_BTE, 1) * jnp.mean(probability_BTE, 1), -1))
    return slot_BTEC, jnp.mean(jnp.sum(slot_BTEC, (2, 3))), balance


def _exchanged(x_BECD: jax.Array, *, outward: bool) -> jax.Array:
    """Sends inputs to their experts, (B, E, C, D) to (B of all devices, E of this device, C, D), or outputs back."""
    axis = sharding_context.current().expert
    if axis is None:
        return x_BECD
    return jax.lax.all_to_all(x_BECD, axis, *((1, 0) if outward else (0, 1)), tiled=True)


def balance_loss(model_state: Any) -> tuple[jax.Array, dict[str, jax.Array]]:
    """(term of the loss, {"dropped": share of positions dropped}) of the latest call of a model with mixtures."""
    leaves = [leaf for path, leaf in jax.tree.leaves_with_path(model_state) if "routing" in jax.tree_util.keystr(path)]
    dropped, balance = jnp.mean(jnp.stack(leaves), 0)
    return BALANCE * len(leaves) * balance, {"dropped": dropped}
