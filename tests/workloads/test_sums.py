# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Sums over rows: strategies agree with one device and send only the sums, and each model is right."""

from __future__ import annotations

import dataclasses

import experiment_cases
import jax
import numpy as np
import pytest
from thin import thin

from jaxbench import levers
from jaxbench.commands import new
from jaxbench.errors import Unsupported, UserError
from jaxbench.parallel.program import create_state, gradients, update
from jaxbench.runner import arm
from jaxbench.workloads import Field, from_sums
from jaxbench.workloads.sums import kmeans, regression, tables

STRATEGIES = ("jit_auto", "jit_explicit", "shard_map", "pmap")


def stepped(workload, rows, steps=1):
    """The parameters after some steps on one device."""
    state = create_state(workload, jax.random.PRNGKey(0))

    @jax.jit
    def step(state, batch):
        grads, model_state, metrics = gradients(workload, state, batch)
        return update(workload, state, grads, model_state), metrics

    losses = []
    for _ in range(steps):
        state, metrics = step(state, {"row": rows})
        losses.append(float(metrics["loss"]))
    return jax.device_get(state.params), losses


@pytest.mark.parametrize(
    ("name", "strategy"), thin([(n, s) for n in ("kmeans", "regression") for s in STRATEGIES], keep=[
        ("kmeans", "jit_explicit"), ("regression", "shard_map")])
)  # fmt: skip
def test_strategies_agree_and_send_the_sums_alone(name, strategy):
    config = experiment_cases.composed(name, batch=64, strategy=strategy, scaling="strong", explain="off")
    config.mesh.devices = "2"
    (record,) = experiment_cases.measure(name, config)
    numbers = {"kmeans": 8 * 4 + 8, "regression": 29 * 29 + 29}[name]
    (collectives,) = [check for check in record.checks if check.name == "collectives"]
    assert record.passport.expected_gradient_bytes == 4 * numbers
    assert collectives.ok and collectives.value == numbers


def test_ridge_is_the_answer_of_the_normal_equations():
    rows = np.asarray(tables.higgs_like(jax.random.PRNGKey(3), 500))
    workload = regression.ridge("r", columns=28, l2=0.1, draw=tables.higgs_like)
    params, losses = stepped(workload, rows, 2)
    x, y = np.hstack([rows[:, :-1], np.ones((500, 1))]).astype(np.float64), rows[:, -1]
    penalty = np.diag([*[0.1 * 500] * 28, 0.0])
    right = np.linalg.solve(x.T @ x + penalty, x.T @ y)
    np.testing.assert_allclose(params["state"]["weights"], right, atol=1e-5)
    np.testing.assert_allclose(losses[1], np.mean((x @ right - y) ** 2), rtol=1e-5)


def test_logistic_regression_finds_where_the_gradient_is_zero():
    rows = np.asarray(tables.higgs_like(jax.random.PRNGKey(3), 500))
    workload = regression.logistic("r", columns=28, l2=0.01, draw=tables.higgs_like)
    weights = np.float64(stepped(workload, rows, 30)[0]["weights"])
    x, y = np.hstack([rows[:, :-1], np.ones((500, 1))]).astype(np.float64), rows[:, -1]
    gradient = x.T @ (1 / (1 + np.exp(-x @ weights)) - y) / 500 + 0.01 * weights * (np.arange(29) < 28)
    assert np.max(np.abs(gradient)) < 1e-4


def test_scikit_learn_finds_the_same():
    cluster, linear = (pytest.importorskip(f"sklearn.{room}") for room in ("cluster", "linear_model"))
    rows = np.asarray(tables.higgs_like(jax.random.PRNGKey(3), 500))
    ridge = linear.Ridge(alpha=0.1 * 500).fit(rows[:, :-1], rows[:, -1])
    params, _ = stepped(regression.ridge("r", columns=28, l2=0.1, draw=tables.higgs_like), rows)
    np.testing.assert_allclose(params["state"]["weights"], [*ridge.coef_, ridge.intercept_], atol=1e-5)
    rows = np.asarray(kmeans.drawn(jax.random.PRNGKey(1), 300, clusters=5, columns=3))
    workload = kmeans.workload("k", clusters=5, columns=3)
    first, (made, _) = rows[:5], workload.init(jax.random.PRNGKey(0))  # only theirs moves a center without rows
    workload = dataclasses.replace(workload, init=lambda key: ({**made, "state": {"centers": first}}, {}))
    theirs = cluster.KMeans(5, init=first, n_init=1, algorithm="lloyd", tol=0).fit(rows)
    params, losses = stepped(workload, rows, theirs.n_iter_ + 1)
    np.testing.assert_allclose(losses[-1], theirs.inertia_ / 300, rtol=1e-4)
    np.testing.assert_allclose(params["state"]["centers"], theirs.cluster_centers_, atol=1e-4)


def test_kmeans_is_lloyds_iteration():
    rows = np.asarray(kmeans.drawn(jax.random.PRNGKey(1), 300, clusters=5, columns=3))
    workload = kmeans.workload("k", clusters=6, columns=3)
    centers = np.asarray(create_state(workload, jax.random.PRNGKey(0)).params["state"]["centers"])
    for _ in range(3):
        distances = ((rows[:, None] - centers) ** 2).sum(2)
        loss, nearest = distances.min(1).mean(), distances.argmin(1)
        centers = np.stack([rows[nearest == k].mean(0) if (nearest == k).any() else centers[k] for k in range(6)])
    params, losses = stepped(workload, rows, 3)
    np.testing.assert_allclose(params["state"]["centers"], centers, atol=1e-5)
    np.testing.assert_allclose(losses[2], loss, rtol=1e-5)


@pytest.mark.parametrize("strategy", ["fsdp", "zero1", "tensor"])
def test_a_strategy_that_splits_the_state_is_refused(strategy):
    workload = kmeans.workload("k", clusters=6, columns=3)
    with pytest.raises(Unsupported, match="sum over rows: every device has its whole state.*use jit_auto"):
        arm.build_program(workload, strategy, jax.devices()[:2], levers.DEFAULTS)


def test_the_example_of_sums_runs(tmp_path):
    path = tmp_path / "my_sums.py"
    new.write(path, "sums")
    config = experiment_cases.composed(str(path), batch=64, strategy="shard_map", scaling="strong", explain="off")
    config.mesh.devices = "2"
    (record,) = experiment_cases.measure(str(path), config)
    assert record.passport.expected_gradient_bytes == 4 * (32 + 32)


def test_devices_reduce_only_the_sums_before_any_compiler_drops_the_rest():
    workload = kmeans.workload("k", clusters=6, columns=3)
    state = jax.eval_shape(lambda key: create_state(workload, key), jax.random.PRNGKey(0))
    grads, _, _ = jax.eval_shape(lambda state, batch: gradients(workload, state, batch), state, workload.batch_avals(4))
    assert jax.tree.map(lambda x: x.shape, grads) == {"sums": {"rows": (6, 3), "count": (6,)}}


def test_micro_batches_add_up_to_the_same_step():
    rows = np.asarray(kmeans.drawn(jax.random.PRNGKey(1), 300, clusters=5, columns=3))
    workload = kmeans.workload("k", clusters=6, columns=3)
    (whole, losses), (parts, their) = (
        stepped(dataclasses.replace(workload, micro_batches=count), rows, 2) for count in (1, 3)
    )
    np.testing.assert_allclose(parts["state"]["centers"], whole["state"]["centers"], atol=1e-5)
    np.testing.assert_allclose(their, losses, rtol=1e-5)


def test_sums_that_are_none_are_refused_in_one_sentence():
    about = {"name": "mine", "init": lambda key: {"m": jax.numpy.zeros(2)}, "example": {"row": Field((2,))}}
    with pytest.raises(UserError, match="scalar 'loss'"):
        from_sums(**about, local=lambda s, r: {"m": r["row"].sum(0)}, update=lambda s, x: s).init(jax.random.PRNGKey(0))
    sums = lambda s, r: {"m": r["row"].sum(0), "loss": r["row"].sum()}  # noqa: E731
    with pytest.raises(UserError, match=r"returns m float32 \(\), and its init returns m float32 \(2,\)"):
        stepped(from_sums(**about, local=sums, update=lambda s, x: {"m": x["m"].sum()}), np.ones((4, 2), np.float32))


@pytest.mark.parametrize(
    ("columns", "target", "words"),
    [
        ([["a", 1.0]], [1], "the column number 1 has text"),
        ([[1.0, np.nan], [1.0, 2.0]], [0, 1], "the column number 2 has no finite number in 1 of 2 rows"),
        ([[1.0], [2.0]], [1, 1], "one class only, 1:"),
        (np.zeros((0, 3)), [], "has no rows"),
        (np.zeros(3), [1, 2, 3], "shape"),
    ],
)
def test_a_bad_table_is_refused_in_one_sentence(columns, target, words):
    columns = np.array(columns, dtype=object) if isinstance(columns, list) else columns
    with pytest.raises(UserError, match=words):
        tables.checked(columns, target, classes=True)
