# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Trainings of a forest, k-means and regression: the same results as scikit-learn, and the same bits after a stop."""

from __future__ import annotations

import io
import os
import signal

import jax
import numpy as np
import pytest
from rich.console import Console
from thin import thin
from train_cases import before_step, toy_config, toy_session
from workload_cases import experiment_workload

from jaxbench import parallel
from jaxbench.errors import UserError
from jaxbench.parallel.program import create_state, gradients, update
from jaxbench.training.train import train

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
