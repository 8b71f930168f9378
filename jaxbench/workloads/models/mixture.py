# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A mixture of experts in place of a block's perceptron: each position is worked on by the one expert it is routed to.

Fedus et al., "Switch Transformers", arXiv:2101.03961: the expert with the largest router probability, its output times
that probability, a capacity of each expert beyond which positions are dropped (they keep the residual stream only), and
a loss that asks for equal use. Capacity holds for each sequence by itself, as for the groups of Lepikhin et al.,
"GShard", arXiv:2006.16668; so what is dropped does not depend on how a batch lies on devices.

Axes: B examples, T positions, D width, F hidden width, E experts (those of a device after the exchange), C capacity.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from jaxbench.workloads import sharding_context

CAPACITY_FACTOR = 1.25  # Switch's default: places of all experts, in positions of the sequence
BALANCE = 0.01  # weight of the balance loss, Switch's alpha


def capacity(context: int, experts: int) -> int:
    """How many positions of one sequence, of `context` in all, one expert takes."""
    return math.ceil(CAPACITY_FACTOR * context / experts)


class Routing(nnx.Variable):
    """(share of positions dropped, balance loss) of the newest call: two float32 numbers."""


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
        chance_BTE = jax.nn.softmax((x_BTD @ self.router[...]).astype(jnp.float32))
        place_BTEC, share, balance = routed(chance_BTE, self.capacity)
        self.routing[...] = jnp.stack([1 - share, balance])
        place_BTEC = place_BTEC.astype(x_BTD.dtype)
        given_BECD = _exchanged(jnp.einsum("btec,btd->becd", place_BTEC, x_BTD), outward=True)
        hidden = jnp.einsum("becd,edf->becf", given_BECD, self.up_kernel[...]) + self.up_bias[...][:, None]
        made = jnp.einsum("becf,efd->becd", jax.nn.gelu(hidden, approximate=True), self.down_kernel[...])
        made_BECD = _exchanged(made + self.down_bias[...][:, None], outward=False)
        chosen_BT1 = jnp.max(chance_BTE, -1, keepdims=True).astype(x_BTD.dtype)
        return chosen_BT1 * jnp.einsum("btec,becd->btd", place_BTEC, made_BECD)


def routed(chance_BTE: jax.Array, capacity: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(1 where a position has a place of an expert, (B, T, E, C); the share of positions that have one; balance loss).

    Places are given in the order of positions. The balance loss is E times the sum over experts of the share of
    positions routed to it times its mean probability: 1 when all are used alike (Switch, equation 4), mean over B.
    """
    experts = chance_BTE.shape[-1]
    chosen_BTE = jax.nn.one_hot(jnp.argmax(chance_BTE, -1), experts)
    before_BTE = jnp.cumsum(chosen_BTE, 1) - chosen_BTE  # how many came earlier
    at_BT = jnp.sum(before_BTE * chosen_BTE, -1).astype(jnp.int32)
    place_BTEC = chosen_BTE[..., None] * jax.nn.one_hot(at_BT, capacity)[:, :, None]  # no place beyond the capacity
    balance = experts * jnp.mean(jnp.sum(jnp.mean(chosen_BTE, 1) * jnp.mean(chance_BTE, 1), -1))
    return place_BTEC, jnp.mean(jnp.sum(place_BTEC, (2, 3))), balance


def _exchanged(x_BECD: jax.Array, *, outward: bool) -> jax.Array:
    """To the devices of the experts, (B, E, C, D) to (B of all, E of a device, C, D); or back."""
    axis = sharding_context.current().expert
    if axis is None:
        return x_BECD
    return jax.lax.all_to_all(x_BECD, axis, *((1, 0) if outward else (0, 1)), tiled=True)


def judged(model_state: Any) -> tuple[jax.Array, dict[str, jax.Array]]:
    """What a model with mixtures adds to its loss, and says of its newest call: "dropped", the share of positions."""
    found = [leaf for path, leaf in jax.tree.leaves_with_path(model_state) if "routing" in jax.tree_util.keystr(path)]
    dropped, balance = jnp.mean(jnp.stack(found), 0)
    return BALANCE * len(found) * balance, {"dropped": dropped}
