# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A whole training of boosted trees: those of the measured step, a plain reference of several classes, real tables."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest
from tree_cases import DEPTH, ROWS, SETTINGS, grown, table
from workload_cases import experiment_workload

from benchmarks import sums_growing
from jaxbench.errors import UserError
from jaxbench.parallel.program import create_state, gradients, update
from jaxbench.workloads.sums import boosting, tables


def trained(of: boosting.Ensemble, rows: np.ndarray, steps: int) -> dict:
    """The state after so many steps on the whole table."""

    @jax.jit
    def step(state):
        sums = boosting.local(of, state, {"row": rows})
        return boosting.update(of, state, {name: sums[name] / len(rows) for name in ("first", "second")})

    state = boosting.init(of.tree, of.rounds, of.outputs)
    for _ in range(steps):
        state = step(state)
    return state


def test_on_the_whole_table_its_trees_are_those_of_the_measured_step() -> None:
    of, rows = boosting.Ensemble(tree=SETTINGS, rounds=3), table()
    state = trained(of, rows, 3 * DEPTH + 2)  # two levels more than there is room for
    expected = sums_growing.margins(SETTINGS, sums_growing.fit(SETTINGS, rows, 3), rows[:, :-1])
    found = boosting.margins(of, state["grown"], rows[:, :-1].astype(np.int32))
    np.testing.assert_allclose(found[:, 0], expected, atol=2e-5)
    assert float(state["count"]) == 3


def test_several_classes_are_those_of_a_plain_reference() -> None:
    rows = table()
    rows[:, -1] += rows[:, 2] > 11  # three classes
    bins, is_class = rows[:, :-1], np.eye(3)[rows[:, -1]]
    of, margin = boosting.Ensemble(tree=SETTINGS, rounds=2, classes=3), np.zeros((ROWS, 3))
    for _ in range(2):
        share = np.exp(margin) / np.exp(margin).sum(axis=1, keepdims=True)
        each = [grown(SETTINGS, bins, (share - is_class)[:, k], (share * (1 - share))[:, k]) for k in range(3)]
        margin = margin + np.stack(each, axis=1)
    found = boosting.margins(of, trained(of, rows, 2 * DEPTH)["grown"], bins.astype(np.int32))
    np.testing.assert_allclose(found, margin, atol=2e-5)


@pytest.mark.parametrize(
    "name", [*tables.CARRIED[:1], *(pytest.param(n, marks=pytest.mark.full) for n in tables.CARRIED[1:])]
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
        ("a,b,class\n1,2,1\n3,4,1\n", "one class only, 1:"),
        ("a,b,class\n", "has no rows"),
        ("class\n1\n", "has 1 column"),
        ("", "cannot be read as a table"),
    ],
)
def test_a_csv_of_ones_own(tmp_path: Path, text: str, words: str | None) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(text)
    if words is None:
        found = tables.load(tables.DRAWN, str(path))
        assert found.name == "mine.csv" and found.classes == 2 and found.rows.tolist() == [[1, 2, 0], [3, 4, 1]]
        return
    with pytest.raises(UserError, match=words):
        tables.load(tables.DRAWN, str(path))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model.table": "iris"}, "a table is for a whole training"),
        ({"model.trees": 5, "model.table": "irsi"}, "did you mean 'iris'"),
        ({"model.trees": 5000}, "--config.model.trees=5000 is not a number of 1 to 1000"),
        ({"model.trees": 5, "model.loss": "squared"}, "--config.model.loss=squared is not for training"),
        ({"model.trees": 5, "data.path": "mine.npz"}, "mine.npz is not a table"),
    ],
)
def test_wrong_settings_are_one_sentence(changes: dict, words: str) -> None:
    with pytest.raises(UserError, match=words):
        experiment_workload("gbdt", **changes)
