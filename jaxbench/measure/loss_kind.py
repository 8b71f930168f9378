# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What kind of mean a loss is, found by evaluating it on a few examples, together and in halves.

    a mean over examples         the mean of equal parts' losses is the loss of the whole
    a weighted mean              it is not, but the loss returns total and weight, which can be added up
    a hidden weighted mean       it is with weights that depend on the examples alone: sum / sum in one number
    across examples              an example's loss depends on the others: contrastive losses, batch normalisation
    a sum                        the losses of parts add up

Random draws would hide it, so for this question every row of an array is drawn alike, by a generator of our own, and
parameters are moved off their initial values, at which many models say the same of every example.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.random import define_prng_impl

from jaxbench.measure import needed
from jaxbench.measure.passport import example_flops
from jaxbench.parallel.draws import PARTS
from jaxbench.parallel.program import jit_once
from jaxbench.workloads import sharding_context, weighted
from jaxbench.workloads.base import KEY, Batch, PyTree, TrainWorkload

EXAMPLES = 4
SAME = 1e-4  # relative: a float32 loss summed in another order is some 1e-6 away, another loss some percent
MOVED = 0.1  # by how much of its own root mean square a parameter is moved

MEAN, WEIGHTED, HIDDEN, ACROSS, SUM, PARTLY, NO_NUMBER, UNTRIED = (
    *("a mean over examples", "a weighted mean", "a hidden weighted mean", "across examples"),
    *("a sum over examples", "a loss of some examples", "not a number", "not looked for"),
)


@dataclass(frozen=True, kw_only=True)
class LossKind:
    """name: one of the above. gathers: it asks for the other parts' examples itself (`workloads.examples`, statistics
    of the global batch), so that it is right in parts too. ignored: examples of EXAMPLES that it does not look at.
    """

    name: str
    gathers: bool = False
    ignored: tuple[int, ...] = ()

    @property
    def in_parts(self) -> bool:
        """Whether parts one after the other, each alone, give the same: what one device may do to save memory."""
        return self.name in (MEAN, WEIGHTED)

    @property
    def said(self) -> str:
        return f"{self.name}, gathered" if self.gathers else self.name


def flops(workload: TrainWorkload) -> float:
    """What `find` takes, of a loss that is a mean: twice EXAMPLES forward passes, for three batches."""
    return 6 * EXAMPLES * example_flops(workload) / 3


def find(workload: TrainWorkload, *, device: jax.Device) -> LossKind:
    """Evaluates the loss on EXAMPLES examples a few times, forward only."""
    params_of, draw = jit_once(partial(_parameters, workload)), jit_once(workload.synthetic, static_argnums=1)
    with jax.default_device(device), jax.default_matmul_precision("highest"):
        params, model_state = params_of()
        batch, more, padded = _batches(workload, jax.device_get(draw(jax.random.PRNGKey(1), 2 * EXAMPLES)))
        evaluate = jit_once(lambda params, batch: _values(workload, params, model_state, batch))

        def values(batch: Batch) -> list[Values]:
            return jax.device_get([evaluate(p, batch) for p in params])

        first = jax.device_get([evaluate(params[0], each) for each in (batch, more, padded)])
        if not np.all(np.isfinite([found.whole for found in first])):
            return LossKind(name=NO_NUMBER)
        asks = needed.asks_others(workload)
        if all(_same(found.whole, found.together) for found in first):
            return LossKind(name=ACROSS if asks else WEIGHTED if _weighted_loss(workload) else MEAN, gathers=asks)
        kind = _otherwise([values(more), values(padded)], asks)
        if kind.name != ACROSS:
            return kind
        unseen = _ignored(lambda batch: [float(found.whole) for found in values(batch)], batch, more)
    return LossKind(name=PARTLY, ignored=unseen) if unseen else kind


def _ignored(losses: Callable[[Batch], list[float]], batch: Batch, more: Batch) -> tuple[int, ...]:
    """The examples in whose place any of `more` gives the very same losses. Any, for labels may happen to be equal."""
    whole = losses(batch)

    def same(i: int, j: int) -> bool:
        other: dict[str, Any] = {
            name: np.concatenate([x[:i], more[name][j : j + 1], x[i + 1 :]]) for name, x in batch.items()
        }
        return losses(other) == whole

    return tuple(i for i in range(EXAMPLES) if all(same(i, j) for j in range(EXAMPLES)))


def _parameters(workload: TrainWorkload) -> tuple[list[PyTree], PyTree]:
    """(two sets of parameters, the model's state)."""
    params, model_state = workload.init(jax.random.PRNGKey(0))
    return [_moved(params, seed) for seed in (1, 2)], model_state


def _batches(workload: TrainWorkload, drawn: Batch) -> tuple[Batch, Batch, Batch]:
    """Of twice EXAMPLES drawn, host arrays: some, others, and those as if padded.

    The others are in the order of their labels, if they have one each: halves of few labels would often be alike.
    """
    batch = {name: x[:EXAMPLES] for name, x in drawn.items()}
    labels = [name for name, field in workload.example.items() if not field.shape and np.issubdtype(field.dtype, int)]
    order = np.argsort(drawn[labels[0]], kind="stable") if labels else np.arange(2 * EXAMPLES)
    more = {name: x[np.roll(order, EXAMPLES // 2)[:EXAMPLES]] for name, x in drawn.items()}
    return batch, more, _ending_in_zeros(more)


class Values(NamedTuple):
    """Losses of all examples, of each half (which can ask for the other), and of the halves together."""

    whole: Any
    halves: Any
    together: Any


def _values(workload: TrainWorkload, params: PyTree, model_state: PyTree, batch: Batch) -> Values:
    key = jax.random.wrap_key_data(jnp.zeros(2, jnp.uint32), impl=_ALIKE)

    def of_half(half: Batch) -> Any:
        with sharding_context.over(axis=PARTS):
            return weighted.float_weights(workload.loss(params, model_state, half, key)[0])

    with sharding_context.over(parts=2):
        whole = weighted.value(workload.loss(params, model_state, batch, key)[0])
    halves = jax.tree.map(lambda x: x.reshape(2, -1, *x.shape[1:]), batch)
    each = jax.vmap(of_half, axis_name=PARTS)(halves)
    together = weighted.value(jax.tree.map(lambda x: jnp.mean(x, 0), each))
    return Values(whole, jax.vmap(weighted.value)(each), together)


def _otherwise(found: list[list[Values]], asks: bool) -> LossKind:
    """Of a loss that is not the mean of its halves'. found: by batch, for two sets of parameters each."""
    if all(_same(values.whole, np.sum(values.halves)) for pair in found for values in pair):
        return LossKind(name=SUM)
    shares = [[_share(values) for values in pair] for pair in found]
    hidden = all(-0.01 <= one <= 1.01 and abs(one - other) < 0.01 for one, other in shares)
    return LossKind(name=HIDDEN if hidden and not asks else ACROSS)


def _share(values: Values) -> float:
    """The weight of the first half that makes the whole of the halves."""
    first, second = map(float, values.halves)
    return (float(values.whole) - second) / (first - second) if first != second else np.nan


def _same(a: Any, b: Any) -> bool:
    return bool(abs(a - b) <= SAME * max(abs(a), abs(b), 1e-6))


def _weighted_loss(workload: TrainWorkload) -> bool:
    params, model_state = jax.eval_shape(workload.init, KEY)
    loss, _ = jax.eval_shape(workload.loss, params, model_state, workload.batch_avals(EXAMPLES), KEY)
    return weighted.is_weighted(loss)


def _moved(params: PyTree, seed: int) -> PyTree:
    """Each number by another amount. Not drawn: the generators are slow where they are compiled unoptimised."""

    def move(x: jax.Array) -> jax.Array:
        size = MOVED * jnp.sqrt(jnp.mean(jnp.square(x.astype(jnp.float32)))) + MOVED * MOVED
        wave = jnp.cos((seed + 0.7) * jnp.arange(x.size, dtype=jnp.float32)).reshape(x.shape)
        return (x + size * wave).astype(x.dtype)

    return jax.tree.map(move, params)


def _ending_in_zeros(batch: Batch) -> Batch:
    """As if padded: example i of n has zeros from (i + 1) / (n + 1) of its first dimension on."""

    def cut(x: Any) -> Any:
        if x.ndim < 2:
            return x
        kept = np.maximum((np.arange(EXAMPLES) + 1) * x.shape[1] // (EXAMPLES + 1), 1)
        real = np.arange(x.shape[1]) < kept[:, None]
        return np.where(real.reshape(*real.shape, *[1] * (x.ndim - 2)), x, np.zeros((), x.dtype))

    return {name: cut(x) for name, x in batch.items()}


def _alike_bits(key: jax.Array, width: int, shape: tuple[int, ...]) -> jax.Array:
    """The same for every index of the first dimension."""
    plain = jax.random.wrap_key_data(key, impl="threefry2x32")
    return jnp.broadcast_to(jax.random.bits(plain, shape[1:], f"uint{width}"), shape)


def _split(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """All equal: a key for each example must not tell examples apart."""
    return jnp.broadcast_to(key, (*shape, 2))


def _seed(seed: jax.Array) -> jax.Array:
    return jnp.zeros(2, jnp.uint32).at[1].set(seed.astype(jnp.uint32))


def _fold_in(key: jax.Array, number: int) -> jax.Array:
    plain = jax.random.wrap_key_data(key, impl="threefry2x32")
    return jax.random.key_data(jax.random.fold_in(plain, number))


_ALIKE = define_prng_impl(
    key_shape=(2,),
    seed=_seed,
    split=_split,
    random_bits=_alike_bits,
    fold_in=_fold_in,
    name="rows_alike",
    tag="alike",
)
