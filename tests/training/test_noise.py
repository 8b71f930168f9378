# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The known gradient noise scale of a quadratic; and evaluations between epochs, repeated after a kill."""

from __future__ import annotations

import dataclasses
import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from train_cases import BATCH, EXAMPLES, before_step, train_toy

from jaxbench.errors import Diverged, UserError
from jaxbench.training.metrics import NoiseMeter, unbiased
from jaxbench.training.plan import Plan
from jaxbench.workloads import Field, TrainWorkload

DIMENSIONS = 10


def quadratic() -> TrainWorkload:
    """The loss of an example x is |p - x|^2 / 2, so its gradient is p - x."""

    def loss(params, model_state, batch, key):
        return jnp.mean(jnp.sum((params - batch["x"]) ** 2, -1)) / 2, (model_state, {})

    return TrainWorkload(
        name="quadratic",
        init=lambda key: (jnp.zeros(DIMENSIONS), {}),
        loss=loss,
        optimizer=optax.sgd(0.1),
        example={"x": Field((DIMENSIONS,))},
    )


def meter(noise_examples: int, x: np.ndarray, params: jax.Array) -> NoiseMeter:
    known = {"epochs": 1, "target": 0.9, "checkpoint_every": 0, "keep": 1, "tensorboard": False}
    plan = Plan(seed=5, batch=8, examples=len(x), noise_examples=noise_examples, **known)
    device = jax.devices()[0]
    return NoiseMeter(quadratic(), {"x": x}, plan=plan, params=params, model_state={}, device=device)


def test_the_noise_scale_of_a_quadratic_is_the_one_that_is_known():
    """Over 300 draws the averages of |G|^2 and tr(Sigma) agree with the values of these examples within chance."""
    x = np.random.default_rng(1).normal(scale=2.0, size=(50, DIMENSIONS)).astype(np.float32)
    params = jnp.full(DIMENSIONS, 0.5)
    measure = meter(32, x, params)
    found = [measure(params, {}, step=step) for step in range(300)]
    for name, known in (
        ("gradient_square", float(np.sum((0.5 - x.mean(0)) ** 2))),
        ("noise_trace", float(np.sum(x.var(0)))),
    ):
        values = np.array([each[name] for each in found])
        assert abs(values.mean() - known) < 4 * values.std() / math.sqrt(len(values))
        assert values.std() / math.sqrt(len(values)) < 0.1 * known  # otherwise the line above proves nothing
    assert measure(params, {}, step=7) == found[7]


def test_two_norms_without_noise_and_with_nothing_else():
    assert unbiased(3.0, 3.0, small_batch=4, large_batch=32) == pytest.approx((3, 0))
    assert unbiased(80 / 4, 80 / 32, small_batch=4, large_batch=32) == pytest.approx((0, 80))


def test_examples_that_do_not_divide_are_one_sentence():
    with pytest.raises(UserError, match=r"train.noise_examples=20 must divide into 8 parts: use 64"):
        meter(20, np.zeros((50, DIMENSIONS), np.float32), jnp.zeros(DIMENSIONS))


def rows_of(folder):
    """The rows without times."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in row.items() if not name.endswith("_s")} for row in rows]


def crash() -> None:
    raise RuntimeError("crashed")


def test_evaluations_between_epochs_are_repeated_after_a_crash_with_the_same_rows(tmp_path):
    asked = {"evaluate_every": 3, "noise_examples": 16, "checkpoint_every": 0, "epochs": 2}
    whole = train_toy(tmp_path / "whole", **asked)
    with pytest.raises(RuntimeError, match="crashed"):  # after evaluations at 3, 6, 9 and 12, with a checkpoint at 8
        train_toy(tmp_path / "crashed", wrap=lambda program: before_step(program, 14, crash), **asked)
    assert len(rows_of(tmp_path / "crashed")) == 4
    again = train_toy(tmp_path / "crashed", **asked)
    assert again.params_sha256 == whole.params_sha256
    rows = rows_of(tmp_path / "crashed")
    assert rows == rows_of(tmp_path / "whole")
    assert [row["step"] for row in rows] == [3, 6, 9, 12, 15, 2 * (EXAMPLES // BATCH)]
    assert ["noise_trace" in row for row in rows] == [True, True, False, True, False, True]


def test_a_loss_that_is_not_finite_names_its_step(tmp_path):
    with pytest.raises(Diverged, match="the loss became nan") as caught:
        train_toy(tmp_path, wrap=poisoned, epochs=1)
    assert caught.value.step == 4


def poisoned(program):
    """The program with NaN in its fourth batch; the first batch that it places is for compilation."""
    calls = 0

    def put(batch):
        nonlocal calls
        calls += 1
        bad = {name: array * np.nan if name == "x" else array for name, array in batch.items()}
        return program.put(bad if calls == 5 else batch)

    return dataclasses.replace(program, put=put)
