# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Sums over rows: strategies agree with one device and send only the sums, and each model is right.

Boosted trees are compared with a plain reference that reads every row, and with LightGBM if it is installed.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import experiment_cases
import jax
import numpy as np
import pytest
from thin import thin
from workload_cases import KEY, experiment_workload

from benchmarks import sums_growing
from jaxbench import levers, parallel
from jaxbench.commands import new
from jaxbench.errors import Unsupported, UserError
from jaxbench.measure import arm
from jaxbench.parallel.step import create_state, gradients, update
from jaxbench.workloads import Field, from_sums, sharding_context
from jaxbench.workloads.sums import adapt, forest, kmeans, regression, trees

ROWS, DEPTH = 300, 3
SETTINGS = trees.TreeSettings(columns=4, depth=DEPTH, l2=1 / ROWS, min_hessian=2 / ROWS)


def table(rows=ROWS, seed=0, columns=4):
    """Few bins, so that rows share them, and classes that depend on two columns."""
    random = np.random.default_rng(seed)
    bins = random.integers(0, 16, (rows, columns))
    odds = (bins[:, 0] > 7) ^ (bins[:, 1] > 4)
    return np.column_stack([bins, odds ^ (random.random(rows) < 0.2)]).astype(np.uint8)


def grown(settings, bins, g, h, level=0):
    """The value of each row in one tree, by recursion over its rows; sums, l2 and min_hessian are not per row here."""
    rows = len(bins)
    smallest, penalty = settings.min_hessian * ROWS, settings.l2 * ROWS
    best = None
    for column in range(bins.shape[1]):
        for cut in range(15):
            left = bins[:, column] <= cut
            if min(h[left].sum(), h[~left].sum()) < smallest - 1e-9:
                continue
            gain = sum(g[side].sum() ** 2 / (h[side].sum() + penalty) for side in (left, ~left))
            gain -= g.sum() ** 2 / (h.sum() + penalty)
            if gain > (best[0] + 1e-9 if best else 1e-12):
                best = gain, left
    if best is None or level == settings.depth:
        return np.full(rows, -settings.rate * g.sum() / (h.sum() + penalty))
    values = np.empty(rows)
    for side in (best[1], ~best[1]):
        values[side] = grown(settings, bins[side], g[side], h[side], level + 1)
    return values


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
    assert record.compile_report.expected_gradient_bytes == 4 * numbers
    assert collectives.ok and collectives.value == numbers


def test_ridge_is_the_answer_of_the_normal_equations():
    rows = np.asarray(adapt.higgs_like(jax.random.PRNGKey(3), 500))
    workload = regression.ridge("r", columns=28, l2=0.1, draw=adapt.higgs_like)
    params, losses = stepped(workload, rows, 2)
    x, y = np.hstack([rows[:, :-1], np.ones((500, 1))]).astype(np.float64), rows[:, -1]
    penalty = np.diag([*[0.1 * 500] * 28, 0.0])
    right = np.linalg.solve(x.T @ x + penalty, x.T @ y)
    np.testing.assert_allclose(params["state"]["weights"], right, atol=1e-5)
    np.testing.assert_allclose(losses[1], np.mean((x @ right - y) ** 2), rtol=1e-5)


def test_logistic_regression_finds_where_the_gradient_is_zero():
    rows = np.asarray(adapt.higgs_like(jax.random.PRNGKey(3), 500))
    workload = regression.logistic("r", columns=28, l2=0.01, draw=adapt.higgs_like)
    weights = np.float64(stepped(workload, rows, 30)[0]["weights"])
    x, y = np.hstack([rows[:, :-1], np.ones((500, 1))]).astype(np.float64), rows[:, -1]
    gradient = x.T @ (1 / (1 + np.exp(-x @ weights)) - y) / 500 + 0.01 * weights * (np.arange(29) < 28)
    assert np.max(np.abs(gradient)) < 1e-4


def test_scikit_learn_finds_the_same():
    cluster, linear = (pytest.importorskip(f"sklearn.{room}") for room in ("cluster", "linear_model"))
    rows = np.asarray(adapt.higgs_like(jax.random.PRNGKey(3), 500))
    ridge = linear.Ridge(alpha=0.1 * 500).fit(rows[:, :-1], rows[:, -1])
    params, _ = stepped(regression.ridge("r", columns=28, l2=0.1, draw=adapt.higgs_like), rows)
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
    assert record.compile_report.expected_gradient_bytes == 4 * (32 + 32)


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
    program = parallel.build("jit_auto", dataclasses.replace(workload, micro_batches=2), jax.devices()[:2])
    with program.context():  # its micro-batches are split in a typed `shard_map`
        jax.eval_shape(program.step, jax.eval_shape(program.init, KEY), workload.batch_avals(8))


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
        ([[1.0], [2.0]], [1, 1], "have 1 classes: give rows of at least two"),
        (np.zeros((0, 3)), [], "have 0 classes"),
    ],
)
def test_a_bad_table_is_refused_in_one_sentence(columns, target, words):
    columns = np.array(columns, dtype=object) if isinstance(columns, list) else columns
    with pytest.raises(UserError, match=words):
        adapt.checked(columns, np.asarray(target))


def derivatives(loss, margin, target):
    if loss == "squared":
        return margin - target, np.ones_like(margin)
    odds = 1 / (1 + np.exp(-margin))
    return odds - target, odds * (1 - odds)


@pytest.mark.parametrize("loss", trees.LOSSES)
def test_trees_are_those_of_a_plain_reference(loss):
    settings = trees.TreeSettings(columns=4, depth=DEPTH, l2=1 / ROWS, min_hessian=2 / ROWS, rate=0.3, loss=loss)
    rows = table()
    bins, target = rows[:, :-1], rows[:, -1].astype(float)
    ours, margin = sums_growing.fit(settings, rows, 4), np.zeros(ROWS)
    for count in range(1, 5):
        margin = margin + grown(settings, bins, *derivatives(loss, margin, target))
        np.testing.assert_allclose(sums_growing.margins(settings, ours[:count], bins), margin, atol=2e-5)


def test_trees_do_not_depend_on_the_devices_nor_on_the_parts_of_the_rows():
    settings = trees.TreeSettings(columns=4, depth=DEPTH, l2=1 / ROWS, min_hessian=2 / ROWS)
    rows = table()  # 300 rows do not divide over 8 devices
    one, eight = (sums_growing.grower(settings, rows, devices)(2) for devices in (1, 8))
    for name in ("column", "bin", "value"):
        np.testing.assert_allclose(eight[1][name], one[1][name], atol=1e-6)
    batch = {"row": rows, "margin": np.zeros(ROWS, np.float32)}
    whole = trees.local(settings, trees.init(settings), batch)
    with sharding_context.over(parts=3):
        parts = trees.local(settings, trees.init(settings), batch)
    np.testing.assert_allclose(parts["first"], whole["first"], atol=1e-5)


def test_the_derivatives_are_those_of_the_loss():
    margin, target = np.linspace(-3, 3, 7), np.array([0, 1, 0, 1, 1, 0, 1.0])
    for loss in trees.LOSSES:
        value = lambda m, loss=loss: trees.derivatives(loss, m, target)[0].sum()  # noqa: E731
        _, first, second = trees.derivatives(loss, margin, target)
        np.testing.assert_allclose(first, jax.grad(value)(margin), rtol=1e-5)
        np.testing.assert_allclose(second, jax.jvp(jax.grad(value), (margin,), (np.ones(7),))[1], rtol=1e-4)


def test_a_node_without_a_gain_keeps_its_rows_together():
    rows = table()
    rows[:, -1] = 1  # one class: each split gains almost nothing, and min_hessian forbids the rest
    settings = trees.TreeSettings(columns=4, depth=DEPTH, l2=1 / ROWS, min_hessian=1.0)
    (tree,) = sums_growing.fit(settings, rows, 1)
    assert np.all(np.asarray(tree["column"]) == -1)
    values = sums_growing.margins(settings, [tree], rows[:, :-1])
    assert np.ptp(values) == 0 and values[0] > 0


def test_bins_hold_equally_many_rows_and_new_rows_fall_into_them():
    columns = np.random.default_rng(0).standard_normal((5120, 2))
    cuts = trees.edges(columns)
    counts = np.bincount(trees.binned(columns, cuts)[:, 0], minlength=trees.BINS)
    assert counts.min() >= 19 and counts.max() <= 21
    assert trees.binned(np.array([[-9.0, 9.0]]), cuts).tolist() == [[0, 255]]


@pytest.mark.parametrize("strategy", ["shard_map", pytest.param("jit_explicit", marks=pytest.mark.full)])
def test_devices_send_the_histograms_alone(strategy):
    config = experiment_cases.composed("gbdt", batch=64, strategy=strategy, scaling="strong", explain="off")
    config.mesh.devices = "2"
    (record,) = experiment_cases.measure("gbdt", config)
    numbers = 2 * 2 ** (3 - 1) * adapt.COLUMNS * trees.BINS
    assert record.compile_report.expected_gradient_bytes == 4 * numbers
    (collectives,) = [check for check in record.checks if check.name == "collectives"]
    assert collectives.ok and collectives.value == numbers


def test_wrong_settings_are_one_sentence():
    with pytest.raises(UserError, match="--config.model.loss=hinge is unknown: use logistic or squared"):
        trees.TreeSettings(columns=4, loss="hinge")
    with pytest.raises(UserError, match="--config.model.depth=40 is not a depth of 1 to 10"):
        trees.TreeSettings(columns=4, depth=40)


@pytest.mark.full
def test_as_accurate_as_lightgbm():
    lightgbm = pytest.importorskip("lightgbm")
    from benchmarks import sums_peers, sums_ways

    ours, theirs = (sums_peers.accuracy(fit, rows=8000, trees=20) for fit in (sums_ways.boosted, sums_ways.lightgbm))
    assert lightgbm and abs(ours - theirs) <= 0.005


@pytest.mark.full
def test_a_forest_of_unlike_trees_is_better_than_one_and_as_good_as_scikit_learns():
    ensemble = pytest.importorskip("sklearn.ensemble")
    raw, other = (np.asarray(adapt.higgs_like(jax.random.PRNGKey(seed), rows)) for seed, rows in ((0, 4000), (1, 8000)))
    cuts = trees.edges(raw[:, :-1])
    rows = np.column_stack([trees.binned(raw[:, :-1], cuts), raw[:, -1].astype(np.uint8)])
    bins, truth = trees.binned(other[:, :-1], cuts), other[:, -1] > 0
    of = forest.settings(columns=adapt.COLUMNS, depth=6, min_rows=1e-3)
    grown = sums_growing.fit_forest(of, rows, count=24, tried=5)
    (one, *_), all_ = (jax.tree.map(lambda leaf: leaf[:1], grown),), grown
    accuracy = [np.mean((forest.predicted(of, each, bins) > 0.5) == truth) for each in (one, all_)]
    theirs = ensemble.RandomForestClassifier(24, max_depth=6, max_features=5, min_samples_leaf=4, random_state=0)
    theirs = theirs.fit(raw[:, :-1], raw[:, -1]).score(other[:, :-1], other[:, -1])
    assert accuracy[1] > accuracy[0] + 0.01 and abs(accuracy[1] - theirs) < 0.02


def test_each_node_of_a_forest_chooses_among_its_own_columns():
    of = forest.settings(columns=adapt.COLUMNS, depth=3, min_rows=1e-3)
    rows = np.asarray(trees.drawn(jax.random.PRNGKey(0), 500))
    roots = np.asarray(sums_growing.fit_forest(of, rows, count=24, tried=1)["column"])[:, 0]
    assert len(set(roots)) > 8 and roots.min() >= 0
    counted = np.asarray(forest.counts(jax.random.PRNGKey(0), 4000, 3))
    assert abs(counted.mean() - 1) < 0.05 and abs(counted.var() - 1) < 0.1


def trained(of: trees.Ensemble, rows: np.ndarray, steps: int) -> dict:
    """The state after a number of steps on the whole table."""

    @jax.jit
    def step(state):
        sums = trees.ensemble_local(of, state, {"row": rows})
        return trees.ensemble_update(of, state, {name: sums[name] / len(rows) for name in ("first", "second")})

    state = trees.init_ensemble(of.tree, of.rounds, of.outputs)
    for _ in range(steps):
        state = step(state)
    return state


def test_on_the_whole_table_its_trees_are_those_of_the_measured_step() -> None:
    of, rows = trees.Ensemble(tree=SETTINGS, rounds=3), table()
    state = trained(of, rows, 3 * DEPTH + 2)  # two levels more than fit
    expected = sums_growing.margins(SETTINGS, sums_growing.fit(SETTINGS, rows, 3), rows[:, :-1])
    found = trees.ensemble_margins(of, state["grown"], rows[:, :-1].astype(np.int32))
    np.testing.assert_allclose(found[:, 0], expected, atol=2e-5)
    assert float(state["count"]) == 3


def test_several_classes_are_those_of_a_plain_reference() -> None:
    rows = table()
    rows[:, -1] += rows[:, 2] > 11  # three classes
    bins, is_class = rows[:, :-1], np.eye(3)[rows[:, -1]]
    of, margin = trees.Ensemble(tree=SETTINGS, rounds=2, classes=3), np.zeros((ROWS, 3))
    for _ in range(2):
        share = np.exp(margin) / np.exp(margin).sum(axis=1, keepdims=True)
        each = [grown(SETTINGS, bins, (share - is_class)[:, k], (share * (1 - share))[:, k]) for k in range(3)]
        margin = margin + np.stack(each, axis=1)
    found = trees.ensemble_margins(of, trained(of, rows, 2 * DEPTH)["grown"], bins.astype(np.int32))
    np.testing.assert_allclose(found, margin, atol=2e-5)


@pytest.mark.parametrize(
    "name", [*adapt.CARRIED[:1], *(pytest.param(n, marks=pytest.mark.full) for n in adapt.CARRIED[1:])]
)
def test_it_learns_a_table_of_scikit_learns(name: str) -> None:
    changes = {"model.trees": 10, "model.table": name, "model.depth": 3, "model.rate": 0.3}
    workload = experiment_workload("gbdt", **changes)
    data = workload.data()
    state = create_state(workload, jax.random.PRNGKey(0))

    @jax.jit
    def step(state):
        grads, model_state, _ = gradients(workload, state, data.train)
        return update(workload, state, grads, model_state)

    for _ in range(10 * 3):
        state = step(state)
    metrics = workload.evaluate(state.params, state.model_state, data.test)
    assert float(metrics["accuracy"]) > 0.88 and set(data.train) == {"row"}
    rows = len(data.train["row"]) + len(data.test["row"])
    assert rows == {"breast_cancer": 569, "digits": 1797, "iris": 150, "wine": 178}[name]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b,class\n1,2,0\n3,4,1\n", None),
        ("a,b,class\n1,two,0\n3,4,1\n", "the column b has text"),
        ("a,b,class\n1,,0\n3,4,1\n", "the column b has no finite number in 1 of 2 rows"),
        ("a,b,class\n1,2,1\n3,4,1\n", "have 1 classes: give rows of at least two"),
        ("a,b,class\n", "have 0 classes"),
        ("", "cannot be read as a table"),
    ],
)
def test_a_csv_of_ones_own(tmp_path: Path, text: str, words: str | None) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(text)
    if words is None:
        found = adapt.load(adapt.DRAWN, str(path))
        assert found.name == "mine.csv" and found.classes == 2 and found.rows.tolist() == [[1, 2, 0], [3, 4, 1]]
        return
    with pytest.raises(UserError, match=words):
        adapt.load(adapt.DRAWN, str(path))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model.table": "iris"}, "a table is for a whole training"),
        ({"model.trees": 5, "model.table": "irsi"}, "did you mean 'iris'"),
        ({"model.trees": 5, "model.loss": "squared"}, "--config.model.loss=squared is not for training"),
        ({"model.trees": 5, "data.path": "mine.npz"}, "mine.npz is not a table"),
    ],
)
def test_wrong_settings_of_a_training_are_one_sentence(changes: dict, words: str) -> None:
    with pytest.raises(UserError, match=words):
        experiment_workload("gbdt", **changes)
