# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Counts the examples of a batch that contribute to the gradient of a loss.

A loss can be a mean over all examples while its gradient is that of a part: a `stop_gradient` or a mask skips the
backward pass of the others. So each example in turn is replaced by another one, and the gradient is compared bit by
bit. A gradient that stays the same has no contribution from that example.

An example may lack a gradient for a good reason: its weight is 0, its hinge loss is 0, its ratio is clipped. That
depends on its values, and on those of its partner in a pair. So the same positions are looked at in other batches. If
no example of any batch has a gradient there, the position decides.

The same program shows whether the gradient of the batch is a mean of the gradients of its halves. The values of a loss
do not show it where a `stop_gradient` hides what weighs the examples, such as advantages normalized over the batch.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench.core.trees import ArrayTree, entries
from jaxbench.core.workload import Batch, HostBatch, TrainWorkload
from jaxbench.workloads import sharding_context

SEEDS = 8  # random keys: with one, half of the examples may be dropped
CHANCE = 1e-3  # the probability that `without_effect` returns a position which lacks an effect only by chance
MOST_BATCHES = 100  # to prove that; if more are needed, it returns no position
SUMS = 8  # numbers that describe a gradient
APART = 1e-2  # a larger relative difference of two gradients is more than rounding in float32


@dataclass(frozen=True, kw_only=True)
class Gradient:
    """What a comparison needs of a gradient, so that large ones need not leave the device.

    bits: a checksum. sums: (SUMS,), of its numbers with random signs. norm: L2.
    """

    bits: int
    sums: np.ndarray
    norm: float


@dataclass(frozen=True, kw_only=True)
class ExampleGradients:
    """The result of `find`, as indices of the batch.

    examples: how many were replaced one by one. without: those that do not change the gradient. never: those of
    `without` where no example changes it.
    """

    examples: int
    without: tuple[int, ...]
    never: tuple[int, ...]


Look = Callable[[HostBatch, int], Gradient]


def look_at(
    workload: TrainWorkload, model_state: ArrayTree, params: ArrayTree, batch: Batch, key: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The fields of a Gradient, to be compiled."""

    def loss(reduced: ArrayTree) -> jax.Array:
        whole = {**entries(params), workload.sent: reduced} if workload.sent else reduced
        # As in two parts, so that the statistics of a half are those of its own examples.
        with sharding_context.over(parts=2):
            return workload.mean_loss(whole, model_state, batch, key)[0]

    gradient = jax.tree.leaves(jax.grad(loss)(workload.reduced(params)))
    # As one array, which takes a large model more memory, but makes a smaller program for many small arrays.
    flat = jnp.concatenate([x.astype(jnp.float32).reshape(-1) for x in gradient])
    flat = jnp.where(flat == 0, 0, flat)  # -0 is 0
    positions = jnp.arange(flat.size, dtype=jnp.uint32)
    # Odd factors, so that equal numbers at two positions do not cancel.
    checksum = jnp.sum(jax.lax.bitcast_convert_type(flat, jnp.uint32) * (2 * positions + 1), dtype=jnp.uint32)
    # Knuth's multiplicative hash: its high bits are signs that look random.
    mixed = positions * jnp.uint32(2654435761)

    def signed(bit: jax.Array) -> jax.Array:
        return jnp.sum(jnp.where((mixed >> bit) & 1 == 1, flat, -flat))

    # One after the other: all together would take SUMS times the memory.
    sums = jax.lax.map(signed, 31 - jnp.arange(SUMS, dtype=jnp.uint32))
    return checksum, sums, jnp.linalg.norm(flat)


def find(
    look: Look, batch: HostBatch, others: HostBatch, *, unread: Sequence[str] = (), uses_key: bool = False
) -> ExampleGradients:
    """Replaces each example of `batch` by one of `others` (host arrays), and looks at the gradient.

    look: (batch, seed of its random key) -> its gradient; called about as often as there are examples. unread: the
    fields that change neither the loss nor its gradient. uses_key: the loss draws random numbers, which may drop some.
    """
    positions = range(len(next(iter(batch.values()))))
    read = [name for name in batch if name not in unread]
    seeds = range(SEEDS if uses_key else 1)
    first = functools.cache(lambda seed: look(batch, seed).bits)

    def changes(fields: list[str], position: int) -> bool:
        """Whether two other examples change the gradient. One of them may be equal, or lack a gradient too."""
        donors = [position, (position + len(positions) // 2) % len(positions)] if fields else []
        return any(
            look(_replaced(batch, others, fields, [position], [donor]), seed).bits != first(seed)
            for seed in seeds
            for donor in donors
        )

    # Labels, weights and other single numbers stay: an example that its label excludes must not get another label, and
    # the weight of one example would change the gradient of all.
    without = [*positions]
    for fields in ([name for name in read if batch[name].ndim > 1], read):
        without = [position for position in without if not changes(fields, position)]
        if len(without) < len(positions):
            break
    # If no example has a gradient, `first_step` and the check of the parameters say so.
    some = 0 < len(without) < len(positions)
    never = without_effect(lambda *given: look(*given).bits, batch, others, fields, without) if some else []
    return ExampleGradients(examples=len(positions), without=tuple(without), never=tuple(never))


def mean_of_halves(look: Look, batch: HostBatch, *, share: float | None, rounding: float) -> bool:
    """Whether the gradient of a batch is a mean of the gradients of its halves, to within rounding.

    share: the weight of the first half; None: any. rounding: relative, of the loss. The gradient of a half is that of a
    batch that has it twice, so that one program computes all three.
    """
    half = len(next(iter(batch.values()))) // 2
    twice = ({name: np.concatenate([x[at]] * 2) for name, x in batch.items()} for at in (np.s_[:half], np.s_[half:]))
    whole, first, second = (look(each, 0) for each in (batch, *twice))
    difference, limit = first.sums - second.sums, APART + 4 * rounding
    if share is None:  # the one with the smallest distance
        square = float(difference @ difference)
        share = float((whole.sums - second.sums) @ difference) / square if square else 0.5
    distance = np.linalg.norm(whole.sums - second.sums - share * difference)
    # The square of a sum with random signs is about that of the norm. A mean that cancels is rounded like its parts.
    return bool(distance <= limit * np.sqrt(SUMS) * max(whole.norm, first.norm, second.norm))


def without_effect(
    bits: Callable[[HostBatch, int], Hashable],
    batch: HostBatch,
    others: HostBatch,
    fields: Sequence[str],
    without: Sequence[int],
) -> list[int]:
    """The positions of `without` where no example changes a result, in as many other batches as a proof takes.

    A share q of the examples has no effect here. If that were due to their values, or to those of their partners in a
    pair, a position would have none in r batches with a probability of q^r.

    bits: (batch, seed of its random key) -> the result. fields: those that are replaced.
    """
    examples = len(next(iter(batch.values())))
    needed = math.ceil(math.log(CHANCE / examples) / math.log(len(without) / examples))
    if needed > MOST_BATCHES:
        return []
    random = np.random.default_rng(0)
    never = [*without]
    for seed in range(needed):
        mixed = random.permutation(2 * examples)
        both = {name: np.concatenate([batch[name], others[name]])[mixed] for name in batch}
        first, second = ({name: x[half] for name, x in both.items()} for half in (np.s_[:examples], np.s_[examples:]))
        base = bits(first, seed)  # another random key each time: a position may be chosen at random in each step
        if bits(_replaced(first, second, fields, never, never), seed) == base:
            continue
        never = [at for at in never if bits(_replaced(first, second, fields, [at], [at]), seed) == base]
        if not never:
            break
    return never


def _replaced(
    batch: HostBatch, others: HostBatch, fields: Sequence[str], positions: list[int], donors: list[int]
) -> HostBatch:
    """The batch with some fields of the examples `positions` from the examples `donors` of another batch."""
    found = dict(batch)
    for name in fields:
        found[name] = np.array(batch[name])
        found[name][positions] = others[name][donors]
    return found
