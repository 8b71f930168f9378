# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Boosted trees against a plain reference that looks at every row, and against LightGBM where it is installed."""

from __future__ import annotations

import experiment_cases
import jax
import numpy as np
import pytest
from tree_cases import DEPTH, ROWS, grown, table

from benchmarks import sums_growing
from jaxbench.errors import UserError
from jaxbench.workloads import sharding_context
from jaxbench.workloads.sums import forest, tables, trees


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
    rows = table()  # 300 of them do not divide over 8 devices
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
    rows[:, -1] = 1  # one class: each split gains next to nothing and min_hessian forbids what is left
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
    numbers = 2 * 2 ** (3 - 1) * tables.COLUMNS * trees.BINS
    assert record.passport.expected_gradient_bytes == 4 * numbers
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
    raw, other = (
        np.asarray(tables.higgs_like(jax.random.PRNGKey(seed), rows)) for seed, rows in ((0, 4000), (1, 8000))
    )
    cuts = trees.edges(raw[:, :-1])
    rows = np.column_stack([trees.binned(raw[:, :-1], cuts), raw[:, -1].astype(np.uint8)])
    bins, truth = trees.binned(other[:, :-1], cuts), other[:, -1] > 0
    of = forest.settings(columns=tables.COLUMNS, depth=6, min_rows=1e-3)
    grown = sums_growing.fit_forest(of, rows, count=24, tried=5)
    (one, *_), all_ = (jax.tree.map(lambda leaf: leaf[:1], grown),), grown
    accuracy = [np.mean((forest.predicted(of, each, bins) > 0.5) == truth) for each in (one, all_)]
    theirs = ensemble.RandomForestClassifier(24, max_depth=6, max_features=5, min_samples_leaf=4, random_state=0)
    theirs = theirs.fit(raw[:, :-1], raw[:, -1]).score(other[:, :-1], other[:, -1])
    assert accuracy[1] > accuracy[0] + 0.01 and abs(accuracy[1] - theirs) < 0.02


def test_each_node_of_a_forest_chooses_among_its_own_columns():
    of = forest.settings(columns=tables.COLUMNS, depth=3, min_rows=1e-3)
    rows = np.asarray(trees.drawn(jax.random.PRNGKey(0), 500))
    roots = np.asarray(sums_growing.fit_forest(of, rows, count=24, tried=1)["column"])[:, 0]
    assert len(set(roots)) > 8 and roots.min() >= 0
    counted = np.asarray(forest.counts(jax.random.PRNGKey(0), 4000, 3))
    assert abs(counted.mean() - 1) < 0.05 and abs(counted.var() - 1) < 0.1
