# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Which examples of a batch have a gradient: some lack one by their place in the batch, and some by their values."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from thin import thin

from jaxbench.errors import UserError
from jaxbench.measure import loss_kind
from jaxbench.measure.loss_kind import HIDDEN, MEAN, WEIGHTED, LossKind
from jaxbench.measure.proof import numbers, require_loss
from jaxbench.workloads import Field, TrainWorkload, WeightedMean, inspection

N = 32
stop = jax.lax.stop_gradient


def workload(loss, **example) -> TrainWorkload:
    """loss: (predictions (n,), batch, key) -> a number."""

    def of(params, state, batch, key):
        y = jnp.tanh(batch["x"] @ params["v"]) @ params["w"]
        return loss(y, batch, key), (state, {})

    def init(key):
        a, b = jax.random.split(key)
        return {"v": jax.random.normal(a, (6, 5)), "w": jax.random.normal(b, (5,))}, {}

    fields = {"x": Field((6,)), "y": Field((), jnp.int32, classes=4), **example}
    return TrainWorkload(name="mine", init=init, loss=of, optimizer=optax.sgd(0.1), example=fields)


def found(loss, examples: int = N, **example) -> LossKind:
    mine = inspection.with_least(workload(loss, **example), examples)  # pairs need two
    return loss_kind.find(mine, device=jax.devices()[0], examples=examples)


def squares(y, batch):
    return (y - batch["y"]) ** 2


def half(y, batch, key):
    n = len(y) // 2
    return jnp.mean(jnp.concatenate([squares(y, batch)[:n], stop(squares(y, batch))[n:]]))


def alternate(y, batch, key):
    return jnp.mean(jnp.where(jnp.arange(len(y)) % 2 == 0, squares(y, batch), stop(squares(y, batch))))


def logged(y, batch, key):
    """The gradient of the first quarter by a mask; the rest of the loss is only for the log."""
    each, mask = squares(y, batch), jnp.arange(len(y)) < len(y) // 4
    return jnp.mean(each * mask) + stop(jnp.mean(each * ~mask))


def strided(y, batch, key):
    """It never looks at every second example, which a comparison of halves cannot see."""
    return jnp.mean(squares(y, batch)[::2])


def all_but_last(y, batch, key):
    return jnp.mean(jnp.concatenate([squares(y, batch)[:-1], stop(squares(y, batch))[-1:]]))


BY_PLACE = {
    "half": (half, 16, "17 to 32"),
    "alternate": (alternate, 16, "2, 4, 6, 8, 10 and 11 more"),
    "logged": (logged, 24, "9 to 32"),
    "strided": (strided, 16, "2, 4, 6, 8, 10 and 11 more"),
    "all but last": (all_but_last, 1, "32"),
}


@pytest.mark.parametrize("name", BY_PLACE)
def test_places_without_a_gradient_are_refused_with_their_number(name: str) -> None:
    loss, count, said = BY_PLACE[name]
    kind = found(loss)
    assert (kind.name, kind.single, kind.without, len(kind.never)) == (MEAN, N, count, count)
    assert f"; {count} of {N} examples have no gradient" in kind.label
    with pytest.raises(UserError, match=f"^{count} of {N} examples have no gradient: .* as number {said} of the batch"):
        require_loss(workload(loss), kind)


def test_a_weighted_mean_is_refused_for_its_places_too() -> None:
    def loss(y, batch, key):
        weight = batch["y"] > 0
        each = jnp.where(jnp.arange(len(y)) < len(y) // 2, squares(y, batch), stop(squares(y, batch)))
        return WeightedMean(jnp.sum(each * weight), jnp.sum(weight))

    kind = found(loss)
    assert (kind.name, kind.never) == (WEIGHTED, tuple(range(16, 32)))
    with pytest.raises(UserError, match="16 of 32 examples have no gradient"):
        require_loss(workload(loss), kind)


def weighted(y, batch, key):
    return WeightedMean(jnp.sum(squares(y, batch) * batch["m"]), jnp.sum(batch["m"]))


def clipped(y, batch, key):
    """PPO: a clipped ratio has a loss and no gradient."""
    ratio = jnp.exp(y - batch["m"])
    return -jnp.mean(jnp.minimum(ratio, jnp.clip(ratio, 0.8, 1.2)) * batch["m"])


BY_VALUE = {
    "hinge": lambda y, b, key: jnp.mean(jax.nn.relu(0.5 - y)),
    "pairs": lambda y, b, key: jnp.mean(jax.nn.relu(0.5 - y.reshape(-1, 2)[:, 0] + y.reshape(-1, 2)[:, 1])),
    "parity": lambda y, b, key: jnp.mean(jnp.where(b["y"] % 2 == 0, squares(y, b), stop(squares(y, b)))),
    "padded": weighted,
    "ratio": clipped,
    "rare": lambda y, b, key: jnp.mean(jax.nn.relu(y - 2.5)),
}


@pytest.mark.parametrize("name", BY_VALUE)
def test_examples_without_a_gradient_for_their_values_are_counted_and_not_refused(name: str) -> None:
    mask = Field((), draw=lambda key, n: jax.random.bernoulli(key, 0.3, (n,)).astype(jnp.float32))
    mine = {"m": mask} if name in ("padded", "ratio") else {}
    kind = found(BY_VALUE[name], **mine)
    assert kind.name in (MEAN, WEIGHTED) and kind.without and not kind.never
    assert f"; at least {kind.without} of {N} examples have no gradient" in kind.label
    assert LossKind.of(kind.described).without == kind.without and LossKind.of(kind.described).single == N
    require_loss(workload(BY_VALUE[name], **mine), kind)


def test_all_examples_of_an_ordinary_loss_have_a_gradient_also_with_random_draws() -> None:
    for draw in thin([False, True], 2):

        def loss(y, batch, key, draw=draw):
            kept = jnp.mean(jax.random.bernoulli(key, 0.5, (*y.shape, 4)), 1) if draw else 1
            return jnp.mean((y * kept - batch["y"]) ** 2)

        kind = found(loss)
        assert (kind.label, kind.without, kind.single) == (MEAN, 0, N)


def test_labels_alone_say_which_examples_a_hidden_weight_leaves_out() -> None:
    def positives(y, batch, key):
        weight = (batch["y"] == 0).astype(jnp.float32)
        return jnp.sum(squares(y, batch) * weight) / jnp.maximum(jnp.sum(weight), 1)

    kind = found(positives)
    drawn = workload(positives).synthetic(jax.random.PRNGKey(1), 2 * N)["y"][:N]
    assert (kind.name, kind.without) == (HIDDEN, int(np.sum(np.asarray(drawn) != 0)))


def test_how_many_were_looked_at_is_said_where_not_all_were() -> None:
    few = LossKind(name=MEAN, examples=64, single=16)
    assert few.described == f"{MEAN}; tried with 64 examples, 16 of them one by one"
    assert LossKind.of(few.described) == few


def test_runs_of_numbers_are_shortened() -> None:
    assert numbers([0, 1, 4, 6, 7, 8]) == "1, 2, 5, 7 to 9"
    assert numbers(range(0, 20, 2)) == "1, 3, 5, 7, 9 and 5 more"
