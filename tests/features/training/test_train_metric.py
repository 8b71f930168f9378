# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Training to a target of any metric of the test set, and the gradient noise scale of a quadratic, where it is known.

Trainings of a forest, k-means and regression find what scikit-learn finds, and end with the same bits after a stop.
"""

from __future__ import annotations

import dataclasses
import io
import json
import math
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from doorway import ROOT, command, environment, jaxbench
from rich.console import Console
from thin import thin
from train_cases import BATCH, EXAMPLES, before_step, toy_config, toy_session, train_toy
from workload_cases import experiment_workload

from jaxbench import parallel
from jaxbench.errors import Diverged, UserError
from jaxbench.features.training import trainings
from jaxbench.features.training.metrics import NoiseMeter, unbiased
from jaxbench.features.training.plan import Plan
from jaxbench.features.training.train import train
from jaxbench.parallel.step import create_state, gradients, update
from jaxbench.workloads import Field, TrainWorkload

SMALL = {"layers": 1, "width": 16, "heads": 2, "context": 16}
LANGUAGE = (
    *("train", "gpt", "--config.mesh.devices=1", "--config.train.metric=loss", "--config.train.target=4.2"),
    *(f"--config.model.{name}={value}" for name, value in SMALL.items()),
    *("--config.train.batch=256", "--config.train.epochs=1", "--config.train.checkpoint_every=5"),
    "--config.train.evaluate_every=10",
)


def rows(folder: Path) -> list[dict[str, float]]:
    """The learning curve, without times."""
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [{name: x for name, x in json.loads(line).items() if not name.endswith("_s")} for line in lines]


ENDS = [("0.3", 0, "target 0.3 reached: test loss 0."), ("1e-9", 1, "target 1e-09 not reached: test loss")]


@pytest.mark.parametrize(("target", "code", "said"), thin(ENDS, 1))
def test_a_regression_trains_to_a_loss(tmp_path: Path, target: str, code: int, said: str) -> None:
    words = ("train", "regression", "--config.mesh.devices=1", "--config.train.metric=loss", "--config.train.epochs=2")
    done = jaxbench(*words, f"--config.train.target={target}", f"--workdir={tmp_path}")
    assert done.returncode == code and said in done.stdout, done.stdout + done.stderr
    assert f"until a test loss of {float(target)}" in done.stdout and len(rows(tmp_path)) <= 2


@pytest.mark.full
def test_a_language_model_trains_to_a_loss_and_a_kill_changes_no_bit(tmp_path: Path) -> None:
    whole = jaxbench(*LANGUAGE, f"--workdir={tmp_path / 'whole'}")
    assert whole.returncode == 0, whole.stderr
    assert rows(tmp_path / "whole")[-1]["test_loss"] <= 4.2 < rows(tmp_path / "whole")[-2]["test_loss"]

    folder = tmp_path / "killed"
    with subprocess.Popen(
        command(*LANGUAGE, f"--workdir={folder}"), cwd=ROOT, env=environment(), stdout=subprocess.DEVNULL
    ) as process:
        limit = time.monotonic() + 120
        while not (folder / "metrics.jsonl").exists() or not (folder / "metrics.jsonl").read_text():
            assert process.poll() is None and time.monotonic() < limit
            time.sleep(0.01)
        process.kill()
    again = jaxbench(*LANGUAGE, f"--workdir={folder}")
    assert again.returncode == 0, again.stderr
    (expected,) = re.findall("params_sha256: .*", whole.stdout)
    assert expected in again.stdout and rows(folder) == rows(tmp_path / "whole")


@pytest.mark.parametrize(
    ("changes", "reached"),
    [
        ({"metric": "loss", "target": 100.0}, True),
        ({"metric": "loss", "target": 1e-9}, False),
        ({"metric": "loss", "target": 1e-9, "mode": "max"}, True),
        ({"metric": "accuracy", "target": 0.01}, True),
        ({"metric": "accuracy", "target": 1.0, "mode": "min"}, True),
    ],
)
def test_the_mode_says_which_side_of_the_target_is_reached(changes, reached: bool, tmp_path: Path) -> None:
    result = train_toy(tmp_path, devices=1, epochs=1, **changes)
    assert result.reached == reached
    assert (trainings.read_curve(tmp_path).at_target() is not None) == reached


def test_an_unknown_metric_is_named_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"'mae' among the metrics .* \(or train to another: --config.train.metric="):
        train_toy(tmp_path, devices=1, epochs=1, metric="mae")


def test_a_training_goes_on_to_a_harder_target_only(tmp_path: Path) -> None:
    train_toy(tmp_path, devices=1, epochs=1, metric="loss", target=1.0)
    with pytest.raises(UserError, match=r"train.target was 1.0 and is now 2.0, but may only fall"):
        train_toy(tmp_path, devices=1, epochs=1, metric="loss", target=2.0)
    assert train_toy(tmp_path, devices=1, epochs=1, metric="loss", target=0.001).step >= 1
    with pytest.raises(UserError, match=r"train.metric was 'loss' and is now 'accuracy'"):
        train_toy(tmp_path, devices=1, epochs=1, metric="accuracy", target=0.001)


FOREST = {"model.table": "breast_cancer", "model.count": 8, "model.rounds": 2, "model.depth": 3}
KMEANS = {"model.table": "digits", "model.clusters": 10}
LOGISTIC = {"model.table": "breast_cancer", "model.kind": "logistic"}
RIDGE = {"model.table": "breast_cancer"}


def steps(workload, count):
    """The state after a number of steps over all rows, on one device."""
    data = workload.data() if callable(workload.data) else workload.data
    state = create_state(workload, jax.random.PRNGKey(0))

    @jax.jit
    def step(state):
        grads, model_state, _ = gradients(workload, state, data.train)
        return update(workload, state, grads, model_state)

    for _ in range(count):
        state = step(state)
    return state, data


@pytest.mark.parametrize(
    ("name", "changes", "batch"),
    thin([("forest", FOREST, 448), ("kmeans", KMEANS, 1792), ("regression", LOGISTIC, 448)], 1),
)
def test_a_stopped_training_continues_to_the_same_bits(tmp_path, name, changes, batch):
    workload = experiment_workload(name, **changes)
    program = parallel.build("shard_map", workload, jax.devices()[:2])

    def trained(folder, wrap=lambda program: program):
        return train(
            workload,
            lambda _: wrap(program),
            config=toy_config(devices=2, strategy="shard_map", batch=batch, epochs=4, checkpoint_every=1),
            folder=tmp_path / folder,
            console=Console(file=io.StringIO(), width=200),
            session=toy_session(devices=2, strategy="shard_map"),
        )

    whole = trained("whole")
    stopped = trained("stopped", lambda own: before_step(own, 2, lambda: os.kill(os.getpid(), signal.SIGTERM)))
    assert (stopped.step, stopped.finished) == (2, False)
    again = trained("stopped")
    assert again.finished and again.params_sha256 == whole.params_sha256 != stopped.params_sha256


def test_a_forest_is_as_good_as_scikit_learns():
    ensemble = pytest.importorskip("sklearn.ensemble")
    workload = experiment_workload("forest", **FOREST)
    state, data = steps(workload, 2 * 3 + 1)  # a step more than it has levels
    again, _ = steps(workload, 2 * 3)
    grown = jax.tree.map(np.asarray, state.params["state"]["grown"])
    jax.tree.map(np.testing.assert_array_equal, grown, jax.tree.map(np.asarray, again.params["state"]["grown"]))
    assert np.any(grown["column"][0] != grown["column"][1])  # another bootstrap
    theirs = ensemble.RandomForestClassifier(16, max_depth=3, max_features=5, random_state=0)
    theirs.fit(data.train["row"][:, :-1], data.train["row"][:, -1])
    accuracy = theirs.score(data.test["row"][:, :-1], data.test["row"][:, -1])
    assert workload.evaluate(state.params, {}, data.test)["accuracy"] > accuracy - 0.02


def test_kmeans_comes_within_a_hundredth_of_scikit_learns_inertia():
    cluster = pytest.importorskip("sklearn.cluster")
    workload = experiment_workload("kmeans", **KMEANS)
    state, data = steps(workload, 40)
    found = workload.evaluate(state.params, {}, data.test)
    rows = data.train["row"]
    theirs = cluster.KMeans(10, n_init=10, random_state=0).fit(rows).inertia_
    assert float(found["loss"]) * len(rows) < 1.01 * theirs
    total = ((rows - rows.mean(axis=0)) ** 2).sum()
    assert float(found["accuracy"]) == pytest.approx(1 - float(found["loss"]) * len(rows) / total, abs=1e-4)


@pytest.mark.parametrize(("changes", "count"), [(RIDGE, 2), (LOGISTIC, 80)])
def test_regression_finds_the_weights_of_scikit_learn(changes, count):
    linear = pytest.importorskip("sklearn.linear_model")
    workload = experiment_workload("regression", **changes)
    state, data = steps(workload, count)
    x, y = data.train["row"][:, :-1], data.train["row"][:, -1]
    penalty = 1e-3 * len(x)
    kind = linear.Ridge(penalty) if changes is RIDGE else linear.LogisticRegression(C=1 / penalty, tol=1e-6)
    theirs = kind.fit(x, y)
    ours = np.asarray((state.params["state"] if changes is RIDGE else state.params)["weights"])
    np.testing.assert_allclose(ours[:-1], theirs.coef_.reshape(-1), atol=2e-3)
    assert ours[-1] == pytest.approx(float(np.ravel(theirs.intercept_)[0]), abs=2e-3)


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("forest", {"model.table": "digits"}, "digits has 10 classes, and a forest's"),
        ("forest", {"model.table": "breast_cancer", "model.tried": 31}, "model.tried=31 is not a number of 1 to 30"),
        ("forest", {"model.table": "breast_cancer", "model.rounds": 0}, "model.rounds=0 is not a number of 1 to 1000"),
        ("kmeans", {"model.table": "digits", "model.clusters": 2000}, "clusters=2000 is not a number of 1 to 1797"),
        ("regression", {"model.table": "iris"}, "iris has 3 classes, and this regression is of two"),
    ],
)
def test_wrong_settings_are_one_sentence(name, changes, words):
    with pytest.raises(UserError, match=words):
        experiment_workload(name, **changes)


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
