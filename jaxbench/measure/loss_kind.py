# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What kind of mean a loss is, found by evaluating it on a few examples: all together, and in two halves.

    a mean over examples         the mean over equal parts equals the loss of the whole batch
    a weighted mean              it does not, but the loss returns its total and weight, which add up over parts
    a hidden weighted mean       weights that depend only on the examples, but the loss returns one number, sum / sum
    across examples              an example's loss depends on the others: contrastive losses, batch normalization
    a sum                        the losses of parts add up

Random draws would hide the answer, so a special generator draws the same numbers for every row of an array. Parameters
are perturbed, because at their initial values many models predict the same for every example.
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
SAME = 1e-4  # relative: another order of summation changes a float32 loss by about 1e-6, another formula by percents
MOVED = 0.1  # perturbation of a parameter, as a share of its root mean square

MEAN, WEIGHTED, HIDDEN, ACROSS, SUM, PARTLY, NO_NUMBER, UNTRIED = (
    *("a mean over examples", "a weighted mean", "a hidden weighted mean", "across examples"),
    *("a sum over examples", "a loss of some examples", "not a number", "not looked for"),
)


@dataclass(frozen=True, kw_only=True)
class LossKind:
    """name: one of the constants above. gathers: the loss gathers the other parts' examples itself
    (`workloads.examples`, statistics of the global batch), so it is correct in parts too. ignored: the indices of
    examples, of EXAMPLES, that it does not use.
    """

    name: str
    gathers: bool = False
    ignored: tuple[int, ...] = ()

    @property
    def in_parts(self) -> bool:
        """Whether computing the parts separately gives the same loss, which saves memory on one device."""
        return self.name in (MEAN, WEIGHTED)

    @property
    def label(self) -> str:
        return f"{self.name}, gathered" if self.gathers else self.name

    @classmethod
    def of(cls, label: str) -> LossKind:
        """The kind with this `label`; not for a loss of some examples, which nothing accepts."""
        return cls(name=label.removesuffix(", gathered"), gathers=label.endswith(", gathered"))


def flops(workload: TrainWorkload) -> float:
    """The cost of `find` for a loss that is a mean: 2 x EXAMPLES forward passes for each of three batches."""
    return 6 * EXAMPLES * example_flops(workload) / 3


def find(workload: TrainWorkload, *, device: jax.Device) -> LossKind:
    """Evaluates the loss on EXAMPLES examples a few times, forward only."""
    params_of, draw = jit_once(partial(_parameters, workload)), jit_once(workload.synthetic, static_argnums=1)
    with jax.default_device(device), jax.default_matmul_precision("highest"):
        params, model_state = params_of()
        batch, more, padded = _batches(workload, jax.device_get(draw(jax.random.PRNGKey(1), 2 * EXAMPLES)))
        evaluate = jit_once(lambda params, batch: _values(workload, params, model_state, batch))

        def evaluated(batch: Batch) -> list[Values]:
            return jax.device_get([evaluate(p, batch) for p in params])

        first = jax.device_get([evaluate(params[0], each) for each in (batch, more, padded)])
        if not np.all(np.isfinite([values.whole for values in first])):
            return LossKind(name=NO_NUMBER)
        gathers = needed.asks_others(workload)
        if all(_same(values.whole, values.together) for values in first):
            return LossKind(name=ACROSS if gathers else WEIGHTED if _weighted_loss(workload) else MEAN, gathers=gathers)
        kind = _otherwise([evaluated(more), evaluated(padded)], gathers)
        if kind.name != ACROSS:
            return kind
        ignored = _ignored(lambda batch: [float(values.whole) for values in evaluated(batch)], batch, more)
    return LossKind(name=PARTLY, ignored=ignored) if ignored else kind


def _ignored(losses: Callable[[Batch], list[float]], batch: Batch, more: Batch) -> tuple[int, ...]:
    """The examples that every one of `more` can replace without changing any loss (one may have the same label)."""
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
    """Three batches from 2 x EXAMPLES drawn examples (host arrays): some; others; the others as if padded.

    The others are sorted by label if each has one: otherwise two halves with few labels would often look the same.
    """
    batch = {name: x[:EXAMPLES] for name, x in drawn.items()}
    labels = [name for name, field in workload.example.items() if not field.shape and np.issubdtype(field.dtype, int)]
    order = np.argsort(drawn[labels[0]], kind="stable") if labels else np.arange(2 * EXAMPLES)
    more = {name: x[np.roll(order, EXAMPLES // 2)[:EXAMPLES]] for name, x in drawn.items()}
    return batch, more, _ending_in_zeros(more)


class Values(NamedTuple):
    """The losses of all examples, of each half (which can gather from the other), and of the halves together."""

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


def _otherwise(by_batch: list[list[Values]], gathers: bool) -> LossKind:
    """The kind of a loss that is not the mean of its halves. by_batch: values for two sets of parameters each."""
    if all(_same(values.whole, np.sum(values.halves)) for pair in by_batch for values in pair):
        return LossKind(name=SUM)
    shares = [[_share(values) for values in pair] for pair in by_batch]
    # Weights that depend only on the examples are between 0 and 1, and do not change with the parameters.
    hidden = all(-0.01 <= one <= 1.01 and abs(one - other) < 0.01 for one, other in shares)
    return LossKind(name=HIDDEN if hidden and not gathers else ACROSS)


def _share(values: Values) -> float:
    """The weight of the first half with which the halves average to the whole; NaN for equal halves."""
    first, second = map(float, values.halves)
    return (float(values.whole) - second) / (first - second) if first != second else np.nan


def _same(a: Any, b: Any) -> bool:
    return bool(abs(a - b) <= SAME * max(abs(a), abs(b), 1e-6))


def _weighted_loss(workload: TrainWorkload) -> bool:
    params, model_state = jax.eval_shape(workload.init, KEY)
    loss, _ = jax.eval_shape(workload.loss, params, model_state, workload.batch_avals(EXAMPLES), KEY)
    return weighted.is_weighted(loss)


def _moved(params: PyTree, seed: int) -> PyTree:
    """Perturbs each number by its own amount: a cosine, because unoptimized random generators are slow."""

    def move(x: jax.Array) -> jax.Array:
        size = MOVED * jnp.sqrt(jnp.mean(jnp.square(x.astype(jnp.float32)))) + MOVED * MOVED
        wave = jnp.cos((seed + 0.7) * jnp.arange(x.size, dtype=jnp.float32)).reshape(x.shape)
        return (x + size * wave).astype(x.dtype)

    return jax.tree.map(move, params)


def _ending_in_zeros(batch: Batch) -> Batch:
    """Imitates padding: example i of n is zero from (i + 1) / (n + 1) of its first dimension on."""

    def cut(x: Any) -> Any:
        if x.ndim < 2:
            return x
        lengths = np.maximum((np.arange(EXAMPLES) + 1) * x.shape[1] // (EXAMPLES + 1), 1)
        real = np.arange(x.shape[1]) < lengths[:, None]
        return np.where(real.reshape(*real.shape, *[1] * (x.ndim - 2)), x, np.zeros((), x.dtype))

    return {name: cut(x) for name, x in batch.items()}


def _alike_bits(key: jax.Array, width: int, shape: tuple[int, ...]) -> jax.Array:
    """The same bits for every index of the first dimension."""
    plain = jax.random.wrap_key_data(key, impl="threefry2x32")
    return jnp.broadcast_to(jax.random.bits(plain, shape[1:], f"uint{width}"), shape)


def _split(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Equal keys: a key for each example must not distinguish the examples."""
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
