# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Classifies a loss by how it averages over examples: evaluates it on a batch, all together and in two halves.

    a mean over examples         the mean over equal parts equals the loss of the whole batch
    a weighted mean              it does not, but the loss returns its total and weight, which add up over parts
    a weighted mean of parts     the weights do not add up, for example a number of positives that is at least 1
    a hidden weighted mean       weights that depend only on the examples, but the loss returns one number, sum / sum
    across examples              an example's loss depends on the others: contrastive losses, batch normalization
    a gradient across examples   the loss is a mean, but its gradient is not: weights from the batch, a clipped backward
    a sum                        the losses of parts add up
    a fixed number of examples   the model cannot take half of the batch

Random numbers would hide the answer, so the loss is evaluated with numbers that are the same for every row of an array.
Parameters are perturbed, because with their initial values many models predict the same for every example.

The batch has as many examples as that of the config, because a loss of the 16 hardest examples is a mean for fewer. If
that takes too long, it has fewer (`affordable`), and the result says how many.

The same evaluations show whether the states of the parts combine to the state of the whole batch, and which fields of
an example the loss depends on. `example_gradients` shows which examples have a gradient.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from jaxbench import discovery
from jaxbench.core import weighted
from jaxbench.core.trees import ArrayTree
from jaxbench.core.weighted import WeightedMean
from jaxbench.core.workload import KEY, Batch, HostBatch, Mean, TrainWorkload, random_key
from jaxbench.errors import UserError, of_kind, quoted
from jaxbench.measure import example_gradients, expected_communication
from jaxbench.measure.compile_report import example_flops
from jaxbench.measure.expected_communication import asks_others
from jaxbench.measure.reference import StateMaker, state_maker
from jaxbench.parallel.step import jit_initial, jit_once
from jaxbench.workloads import inspection, jaxprs, sharding_context
from jaxbench.workloads.jaxprs import aval_of, equations
from jaxbench.workloads.levers import not_frozen
from jaxbench.workloads.rng_keys import PARTS, map_parts, together

T = TypeVar("T")
Draw = Callable[[jax.Array, int], Batch]  # (key, number of examples) -> a batch

# The fewest examples. Two in each half: with one, statistics over a half, such as batch normalization's, would be
# degenerate.
EXAMPLES = 4
# The most FLOPs of the evaluations, and of the gradients of single examples, with more examples than the fewest: a
# second or two on a CPU.
AFFORDABLE = {"cpu": 4e9}
AFFORDABLE_ELSEWHERE = 4e11
AFFORDABLE_BYTES = 2**27  # of the batch that is drawn
# The rounding error of a loss, relative: float32 sums in another order differ by about 1e-6. Two correct values differ
# by at most SAME times the rounding error of the loss. A different formula differs by percents.
ROUNDING, SAME = 2.5e-5, 4
MOVED = 0.1  # perturbation of a parameter, as a share of its root mean square
# A weak dependence on the other examples shows only if parameters change much: by FAR, in FURTHER more sets.
FAR, FURTHER = 1.0, 4
UNSURE = 0.21  # the largest error of a half's weight that still tells something

MEAN, WEIGHTED, UNEVEN, HIDDEN, ACROSS, BACKWARD, FIXED, SUM, PARTLY, CONSTANT, NO_NUMBER, UNTRIED = (
    *("a mean over examples", "a weighted mean", "a weighted mean of parts", "a hidden weighted mean"),
    *("across examples", "a gradient across examples", "a loss of a fixed number of examples"),
    *("a sum over examples", "a loss of some examples", "independent of the batch", "not a number", "not looked for"),
)


@dataclass(frozen=True, kw_only=True)
class LossKind:
    """The result of `find`.

    name: one of the constants above. gathers: the loss gathers the examples of the other parts itself
    (`sharding_context.gathered`, statistics of the global batch), so it is correct in parts too unless its name says
    no. examples: how many it was evaluated on. ignored: the indices of the examples that it does not use. unread: the
    fields of an example that do not change it. state: the paths of the model's state for which the states of the parts
    do not combine to that of the whole batch (`rng_keys.together`). single: how many examples were replaced one by one
    to see whether they have a gradient; 0: none. without: how many of these have none. never: the indices where no
    example has one.
    """

    name: str
    gathers: bool = False
    examples: int = EXAMPLES
    ignored: tuple[int, ...] = ()
    unread: tuple[str, ...] = ()
    state: tuple[str, ...] = ()
    single: int = 0
    without: int = 0
    never: tuple[int, ...] = ()

    @property
    def in_parts(self) -> bool:
        """Whether computing the parts separately gives the same loss, which saves memory on one device."""
        return self.name in (MEAN, WEIGHTED)

    @property
    def label(self) -> str:
        unread = f"; it does not depend on {quoted(self.unread, len(self.unread))}" if self.unread else ""
        # An example that lacks a gradient for its values may have one with those that replaced them.
        least = "at least " if self.without > len(self.never) else ""
        without = f"; {least}{self.without} of {self.single} examples have no gradient" if self.without else ""
        return f"{self.name}{', gathered' if self.gathers else ''}{unread}{without}"

    @property
    def described(self) -> str:
        """`label`, and how many examples were tried."""
        if self.name == UNTRIED:
            return self.label
        state = f"; not a mean over examples: the state {quoted(self.state, len(self.state))}" if self.state else ""
        single = f", {self.single} of them one by one" if self.single and self.single != self.examples else ""
        return f"{self.label}{state}; tried with {self.examples} examples{single}"

    @classmethod
    def of(cls, label: str) -> LossKind:
        """Reads a `label` or `described` back, as far as it says what the LossKind was."""
        name = label.split("; ")[0]
        without = re.search(r"; (?:at least )?(\d+) of (\d+) examples have no gradient", label)
        tried = re.search(r"; tried with (\d+) examples(?:, (\d+) of them one by one)?", label)

        def names(after: str) -> tuple[str, ...]:
            found = re.search(rf"; {after} ('.*?')(?:; |$)", label)
            return tuple(found[1][1:-1].split("', '")) if found else ()

        return cls(
            unread=names("it does not depend on"),
            state=names("not a mean over examples: the state"),
            name=name.removesuffix(", gathered"),
            gathers=name.endswith(", gathered"),
            examples=int(tried[1]) if tried else EXAMPLES,
            single=int(without[2]) if without else int(tried[2] or tried[1]) if tried else 0,
            without=int(without[1]) if without else 0,
        )


def flops(workload: TrainWorkload, examples: int = EXAMPLES) -> float:
    """FLOPs of `find` for a loss that is a mean: 2 x `examples` forward passes for each of three batches and each
    field.

    A loss of another kind costs more.
    """
    return 2 * (3 + len(workload.example)) * examples * example_flops(workload) / 3


def affordable(workload: TrainWorkload, batch: int, platform: str) -> int:
    """How many examples of a batch of `batch` can be evaluated in a few seconds: even, and at least EXAMPLES.

    A model that cannot take just any number of examples gets all of them.
    """
    if workload.least > 1:
        return batch
    limit = AFFORDABLE.get(platform, AFFORDABLE_ELSEWHERE)
    each = flops(workload, 1)
    size = sum(math.prod(field.shape) * jnp.dtype(field.dtype).itemsize for field in workload.example.values())

    def fits(examples: int) -> bool:
        return examples * each <= limit and 2 * examples * size <= AFFORDABLE_BYTES

    return _halved(batch, fits)


def _halved(examples: int, fits: Callable[[int], bool]) -> int:
    """`examples`, halved until they fit: even, and at least EXAMPLES."""
    examples -= examples % 2
    while examples > EXAMPLES and not fits(examples):
        examples = examples // 4 * 2
    return max(examples, EXAMPLES)


class Shared(NamedTuple):
    """Compiled functions that a run has, too.

    make: the workload's `state_maker`. draw: (key, number) -> synthetic examples. size: the number with which the run
    calls `draw`; 0: it does not.
    """

    make: StateMaker
    draw: Draw
    size: int = 0

    def drawn(self, number: int, *, at_least: int) -> HostBatch:
        """`number` examples, from batches of the run's size if that is large enough."""
        size = self.size if self.size >= at_least else number
        parts = [jax.device_get(self.draw(random_key(1 + at), size)) for at in range(-(-number // size))]
        return {name: np.concatenate([part[name] for part in parts])[:number] for name in parts[0]}


def find(
    workload: TrainWorkload, *, device: jax.Device, shared: Shared | None = None, examples: int = EXAMPLES
) -> LossKind:
    """Evaluates the loss a few times, forward only, and its gradient for each of some examples.

    examples: of the batch; even, unless the model takes only this number.
    """
    shared = shared or Shared(state_maker(workload), jit_once(workload.synthetic, static_argnums=1))
    # Before the precision changes, which would compile the initial values again.
    start, drawn = shared.make(random_key(0), device), shared.drawn(2 * examples, at_least=examples)
    # In full precision, because the answer is a difference of two values that rounding must not hide.
    with jax.default_device(device), jax.default_matmul_precision("highest"):
        params = jit_initial(lambda params: [_moved(params, seed) for seed in (1, 2)])(start.params)
        model_state = start.model_state
        del start  # the optimizer's state would hold its memory
        batch, more, padded = _batches(workload, drawn)
        traced = _traced(workload, model_state, params[0], batch)
        if isinstance(traced, LossKind):
            return traced
        if traced is None:  # it fails for this half, which may be a fault: few examples show the kind
            return find(workload, device=device, shared=shared)
        values, rounding = traced
        evaluate = jit_once(values)

        def evaluated(batch: HostBatch, sets: list[ArrayTree] = params) -> list[Values]:
            return jax.device_get([evaluate(p, batch) for p in sets])

        first = jax.device_get([evaluate(params[0], each) for each in (batch, more, padded)])
        if not np.all(np.isfinite([values.whole for values in first])):
            return LossKind(name=NO_NUMBER, examples=examples)
        unread = _unread(workload, drawn, evaluate, params, model_state)
        if set(unread) == {*workload.example}:
            return LossKind(name=CONSTANT, examples=examples)
        state = tuple(path for path in first[0].state if any(not v.state[path] <= SAME * rounding for v in first))
        about: dict[str, Any] = {"gathers": asks_others(workload), "unread": unread, "state": state}
        about["examples"] = examples
        gradients, halves_agree = _gradients(
            workload,
            params[0],
            model_state,
            batch,
            more,
            unread=unread,
            gathers=about["gathers"],
            rounding=rounding,
            platform=device.platform,
        )
        about |= gradients
        # Three batches, because halves of one batch can agree by chance, for example if they have the same number of
        # tokens.
        if all(_same(values.whole, values.together, rounding) for values in first):
            if about["gathers"]:
                return LossKind(name=ACROSS, **about)
            loss, _ = jax.eval_shape(workload.loss, params[0], model_state, batch, KEY)
            if not weighted.is_weighted(loss):
                return LossKind(name=MEAN if halves_agree(0.5) else BACKWARD, **about)
            add_up = _weights_add_up(workload, params[0], model_state, [batch, more])
            return LossKind(name=(WEIGHTED if halves_agree(None) else BACKWARD) if add_up else UNEVEN, **about)
        name = _otherwise([evaluated(more), evaluated(padded)], rounding)
        if name == HIDDEN:
            far = jit_initial(lambda p: [_moved(p, seed, FAR) for seed in range(3, 3 + FURTHER)])(params[0])
            name = _otherwise([evaluated(more, params + far), evaluated(padded, params + far)], rounding)
        if name == HIDDEN and not halves_agree(None):
            name = ACROSS
        if name != ACROSS:
            return LossKind(name=name, **about)
        ignored = _ignored(lambda batch: [float(values.whole) for values in evaluated(batch)], batch, more)
    if ignored:
        return LossKind(name=PARTLY, ignored=ignored, examples=examples)
    return LossKind(name=ACROSS, **{**about, "gathers": False})


def _traced(
    workload: TrainWorkload, model_state: ArrayTree, params: ArrayTree, batch: HostBatch
) -> tuple[Callable[..., Values], float] | LossKind | None:
    """`_values` as `_alike` returns it, or the kind of a loss that cannot be evaluated on both halves; None: try fewer.

    Raises UserError for a loss that fails for another reason.
    """
    examples = len(jax.tree.leaves(batch)[0])
    try:
        with discovery.naming_lines(f"the loss of '{workload.name}'"):
            return _alike(partial(_values, workload, model_state), params, batch)
    except UserError as error:
        if isinstance(error.__cause__, NameError):  # it gathers, but has an operation that `map_parts` cannot map
            return LossKind(name=UNTRIED)
        if _takes_halves(workload, examples) or examples == EXAMPLES:
            raise
        return LossKind(name=FIXED, examples=examples) if workload.least > 1 else None


def _takes_halves(workload: TrainWorkload, examples: int) -> bool:
    """Whether the model can be traced with half of the examples."""
    avals = jax.eval_shape(workload.init, KEY)
    try:
        inspection.traced(workload, "loss", *avals, workload.batch_avals(examples // 2), KEY)
    except UserError:
        return False
    return examples % 2 == 0


def _gradients(
    workload: TrainWorkload,
    params: ArrayTree,
    model_state: ArrayTree,
    batch: HostBatch,
    others: HostBatch,
    *,
    unread: tuple[str, ...],
    gathers: bool,
    rounding: float,
    platform: str,
) -> tuple[dict[str, Any], Callable[[float | None], bool]]:
    """(the fields `single`, `without` and `never` of a LossKind; whether gradients of halves average to the whole).

    The latter takes the weight of the first half; None: any. As many examples are used as can be afforded.
    """
    examples, limit = len(jax.tree.leaves(batch)[0]), AFFORDABLE.get(platform, AFFORDABLE_ELSEWHERE)
    each = example_flops(workload)
    single = examples
    if workload.least == 1:
        single = _halved(examples, lambda count: count * (count + 1) * each <= limit)
    elif examples * (examples + 1) * each > limit:  # it takes no smaller batch
        return {}, lambda share: True
    some, more = ({name: x[:single] for name, x in given.items()} for given in (batch, others))
    # With its own draws: with equal ones, a loss that drops examples at random drops all or none.
    compiled = jit_once(partial(example_gradients.look_at, workload, model_state))

    def look(batch: HostBatch, seed: int) -> example_gradients.Gradient:
        bits, sums, norm = jax.device_get(compiled(params, batch, random_key(seed)))
        return example_gradients.Gradient(bits=int(bits), sums=sums, norm=float(norm))

    uses_key = expected_communication.uses_key(workload)
    found = example_gradients.find(look, some, more, unread=unread, uses_key=uses_key)

    def halves_agree(share: float | None) -> bool:
        # Places without a gradient already say why halves differ, and draws differ by place.
        if gathers or found.never or uses_key:
            return True
        # Two batches, because halves of one can agree by chance.
        return all(
            example_gradients.mean_of_halves(look, batch, share=share, rounding=rounding) for batch in (some, more)
        )

    return {"single": single, "without": len(found.without), "never": found.never}, halves_agree


def _weights_add_up(
    workload: TrainWorkload, params: ArrayTree, model_state: ArrayTree, batches: list[HostBatch]
) -> bool:
    """Whether the weight of a batch is the sum of the weights of its examples."""

    def weights(batch: Batch) -> tuple[jax.Array, jax.Array]:
        def of(part: Batch) -> jax.Array:
            loss, _ = workload.loss(params, model_state, part, jax.random.PRNGKey(0))
            return of_kind(WeightedMean, weighted.float_weights(loss)).weight

        def of_part(part: Batch) -> jax.Array:
            with sharding_context.over(axis=PARTS):
                return of(part)

        count = len(jax.tree.leaves(batch)[0]) if workload.least == 1 else 2
        parts = jax.tree.map(lambda x: x.reshape(count, -1, *x.shape[1:]), batch)
        return of(batch), jnp.sum(map_parts(of_part, (parts,)))

    compiled = jit_once(weights)
    pairs = [jax.device_get(compiled(batch)) for batch in batches]
    return all(_same(whole, total, ROUNDING) for whole, total in pairs)


def _unread(
    workload: TrainWorkload,
    drawn: HostBatch,
    evaluate: Callable[..., Values],
    params: list[ArrayTree],
    model_state: ArrayTree,
) -> tuple[str, ...]:
    """The fields without influence: changing their values changes neither the loss nor its gradient."""
    examples = len(next(iter(drawn.values()))) // 2
    batch = {name: x[:examples] for name, x in drawn.items()}
    others = {name: drawn[name][examples:] for name in workload.example}
    for name, field in workload.example.items():
        if field.classes and field.draw is None and np.array_equal(batch[name], others[name]):
            # Few classes are often drawn equal. The next class is legal and differs.
            others[name] = ((batch[name].astype(np.int64) + 1) % field.classes).astype(batch[name].dtype)

    def quiet(names: list[str], of: Callable[..., ArrayTree], params: list[ArrayTree]) -> list[str]:
        """The fields that do not change the result of `of`: (parameters, batch) -> arrays."""
        right = [jax.device_get(of(p, batch)) for p in params] if names else []

        def same(name: str) -> bool:
            found = [jax.device_get(of(p, {**batch, name: others[name]})) for p in params]
            return all(map(np.array_equal, jax.tree.leaves(found), jax.tree.leaves(right)))

        return [name for name in names if same(name)]

    # A field that was drawn with the same values twice, such as a mask of ones, cannot be judged.
    changed = [name for name, x in others.items() if not np.array_equal(x, batch[name])]
    # The gradient is compiled only for a field that does not change the loss.
    if names := quiet(changed, lambda p, batch: evaluate(p, batch).whole, params[:1]):

        def gradient(params: ArrayTree, batch: Batch) -> tuple[jax.Array, ArrayTree]:
            key = jax.random.PRNGKey(0)
            return jax.value_and_grad(lambda p: workload.mean_loss(p, model_state, batch, key)[0])(params)

        gradient, _ = _alike(gradient, params[0], batch)
        names = quiet(names, jit_once(gradient), params)
    return tuple(names)


def _ignored(losses: Callable[[HostBatch], list[float]], batch: HostBatch, more: HostBatch) -> tuple[int, ...]:
    """The indices of examples that any other example can replace without changing a loss."""
    whole, places = losses(batch), range(len(next(iter(batch.values()))))

    def same(i: int) -> bool:
        other = {name: np.concatenate([x[:i], more[name][i : i + 1], x[i + 1 :]]) for name, x in batch.items()}
        return losses(other) == whole

    same_here = [i for i in places if same(i)]
    if not 0 < len(same_here) < len(places):
        return ()
    # In other batches, because an easy example may replace another where only the hardest count.

    def bits(batch: HostBatch, seed: int) -> tuple[float, ...]:
        return tuple(losses(batch))

    return tuple(example_gradients.without_effect(bits, batch, more, [*batch], same_here))


def _batches(workload: TrainWorkload, drawn: HostBatch) -> tuple[HostBatch, HostBatch, HostBatch]:
    """Three batches from twice as many drawn examples (host arrays): some, others, and the others as if padded."""
    examples = len(next(iter(drawn.values()))) // 2
    batch = {name: x[:examples] for name, x in drawn.items()}
    labels = [name for name, field in workload.example.items() if not field.shape and np.issubdtype(field.dtype, int)]
    # The others are sorted by label, because two halves with few labels would often look the same.
    order = np.argsort(drawn[labels[0]], kind="stable") if labels else np.arange(2 * examples)
    more = {name: x[np.roll(order, examples // 2)[:examples]] for name, x in drawn.items()}
    return batch, more, _ending_in_zeros(more)


class Values(NamedTuple):
    """The losses of all examples, of each half (which can gather from the other half), and of the halves combined.

    state: by path, the relative difference between the combined states of the halves and the state of all examples.
    """

    whole: jax.Array
    halves: jax.Array
    together: jax.Array
    state: dict[str, jax.Array]


def _values(workload: TrainWorkload, model_state: ArrayTree, params: ArrayTree, batch: Batch) -> Values:
    """The loss and the state of the whole batch, and of its two halves."""
    key = jax.random.PRNGKey(0)

    def of_half(half: Batch) -> tuple[Mean, ArrayTree]:
        with sharding_context.over(axis=PARTS):
            loss, (state, _) = workload.loss(params, model_state, half, key)
        return weighted.float_weights(loss), not_frozen(state)

    # The model is told that it is computed in parts, so statistics of parts are taken in both computations.
    with sharding_context.over(parts=2):
        loss, (state, _) = workload.loss(params, model_state, batch, key)
    halves = jax.tree.map(lambda x: x.reshape(2, -1, *x.shape[1:]), batch)
    # A named axis, so that a loss that gathers over devices can gather from the other half, too.
    each, states = map_parts(of_half, (halves,))
    distances = jax.tree.map(lambda x, halves: _distance(x, together(halves)), not_frozen(state), states)
    by_path = {
        jax.tree_util.keystr(at, simple=True, separator="/"): x for at, x in jax.tree.leaves_with_path(distances)
    }
    mean = weighted.value(jax.tree.map(lambda x: jnp.mean(x, 0), each))
    return Values(weighted.value(loss), jax.vmap(weighted.value)(each), mean, by_path)


def _distance(a: jax.Array, b: jax.Array) -> jax.Array:
    """The largest difference, relative to the largest number. Numbers far below 1 may be rounding errors alone."""
    a, b = (jnp.asarray(x) if jnp.issubdtype(x, jnp.inexact) else jnp.asarray(x, jnp.float32) for x in (a, b))
    largest = jnp.maximum(jnp.abs(a), jnp.abs(b)).max(initial=0.01)
    return jnp.where(a == b, 0, jnp.abs(a - b)).max(initial=0) / largest  # equal infinities are no difference


def _otherwise(by_batch: list[list[Values]], rounding: float) -> str:
    """The kind of a loss that is not the mean of its halves. by_batch: for each batch, values with several sets of
    parameters. Only those of large perturbations may be no number."""
    if all(_same(values.whole, np.sum(values.halves), rounding) for sets in by_batch for values in sets):
        return SUM

    # Weights that depend only on the examples are between 0 and 1, and do not change with the parameters.
    def hidden(sets: list[Values]) -> bool:
        shares = [_share(values, rounding) for values in sets]
        # Halves that differ by little more than their rounding errors tell little, so others are asked if possible.
        telling = [each for each in shares if each[1] <= UNSURE and np.isfinite(each[0])]
        if len(telling) < 2:
            telling = [(share, min(error, UNSURE)) for share, error in shares]
        inside = all(-error <= share <= 1 + error for share, error in telling)
        pairs = itertools.combinations(telling, 2)
        return inside and all(abs(one - other) < max(error, wider) for (one, error), (other, wider) in pairs)

    return HIDDEN if all(map(hidden, by_batch)) else ACROSS


def _share(values: Values, rounding: float) -> tuple[float, float]:
    """(the weight of the first half for which the halves average to the whole, its error); NaN for equal halves."""
    first, second = map(float, values.halves)
    if first == second:
        # Equal halves average to themselves with any weight, so they tell nothing. NaN fails every comparison.
        return np.nan, np.nan
    error = rounding * max(abs(first), abs(second)) / abs(first - second)
    return (float(values.whole) - second) / (first - second), 0.001 + error


def _same(a: jax.Array, b: jax.Array, rounding: float) -> bool:
    """Whether two losses agree within rounding."""
    return bool(abs(a - b) <= SAME * rounding * max(float(abs(a)), float(abs(b)), 1e-6))


def _moved(params: ArrayTree, seed: int, share: float = MOVED) -> ArrayTree:
    """Perturbs each number by its own amount. share: of the root mean square of its array."""

    def move(x: jax.Array) -> jax.Array:
        size = share * jnp.sqrt(jnp.mean(jnp.square(x.astype(jnp.float32)))) + MOVED * MOVED
        # A cosine, because a random generator is slow in a program that is not optimized.
        wave = jnp.cos((seed + 0.7) * jnp.arange(x.size, dtype=jnp.float32)).reshape(x.shape)
        return (x + size * wave).astype(x.dtype)

    return jax.tree.map(move, params)


def _ending_in_zeros(batch: HostBatch) -> HostBatch:
    """Imitates padding: example i of n keeps the first (i + 1) / (n + 1) of its first dimension; the rest is zero."""

    def cut(x: np.ndarray) -> np.ndarray:
        if x.ndim < 2:
            return x
        lengths = np.maximum((np.arange(len(x)) + 1) * x.shape[1] // (len(x) + 1), 1)
        real = np.arange(x.shape[1]) < lengths[:, None]
        return np.where(real.reshape(*real.shape, *[1] * (x.ndim - 2)), x, np.zeros((), x.dtype))

    return {name: cut(x) for name, x in batch.items()}


def _alike(function: Callable[..., T], *arguments: object) -> tuple[Callable[..., T], float]:
    """(the function with random draws that are the same for all rows; the relative rounding error of its results).

    arguments: of the function.
    """
    closed, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
    dtypes = {aval_of(var).dtype for equation in equations(closed.jaxpr) for var in equation.outvars}
    errors = [float(jnp.finfo(dtype).eps) for dtype in dtypes if jnp.issubdtype(dtype, jnp.inexact)]
    # Types coarser than bfloat16 (float8) are scaled, and models use them in few places, so they do not set the error.
    rounding = min(max(ROUNDING, *errors), float(jnp.finfo(jnp.bfloat16).eps))

    rules = {"random_bits": _alike_bits, "random_split": _alike_split, "random_fold_in": _alike_fold_in}

    def alike(*given: object) -> T:
        # Draws are replaced in the jaxpr, so any random generator of a model or a library is covered.
        found = jaxprs.evaluate(closed.jaxpr, closed.consts, jax.tree.leaves(given), rules)
        return jax.tree.unflatten(jax.tree.structure(shapes), found)

    return alike, rounding


def _alike_bits(equation: core.JaxprEqn, given: Sequence[jax.Array]) -> list[jax.Array]:
    """The same bits for every index of the first dimension."""
    (keys,), (out,) = given, equation.outvars
    plain = jax.random.wrap_key_data(jax.random.key_data(keys).reshape(keys.size, -1)[:, :2], impl="threefry2x32")
    rows, shape = equation.params["shape"][:1], equation.params["shape"][1:]
    bits = jax.vmap(lambda key: jax.random.bits(key, shape, aval_of(out).dtype))(plain)
    return [jnp.broadcast_to(bits.reshape(*keys.shape, *[1 for _ in rows], *shape), aval_of(out).shape)]


def _alike_split(equation: core.JaxprEqn, given: Sequence[jax.Array]) -> list[jax.Array]:
    """Equal keys: a key for each example must not distinguish the examples."""
    (keys,), (out,) = given, equation.outvars
    return [jnp.broadcast_to(keys.reshape(*keys.shape, *[1] * (aval_of(out).ndim - keys.ndim)), aval_of(out).shape)]


def _alike_fold_in(equation: core.JaxprEqn, given: Sequence[jax.Array]) -> list[jax.Array]:
    """Equal keys if an array of numbers (one for each example) is folded in; the ordinary key for a single number."""
    (keys, numbers), (out,) = given, equation.outvars
    return [jnp.broadcast_to(keys, aval_of(out).shape) if numbers.ndim else equation.primitive.bind(keys, numbers)]
