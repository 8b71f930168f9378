# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The jobs of `sums_peers`: each in jaxbench and in other libraries, with the same settings and rows.

A way is made from the training rows, and prepared (compiled, its bins built) outside the timed region. Calling it
trains the model and returns its answer for other rows: margins, a class or a center's inertia, depending on the job.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import sums_growing
from jaxbench import parallel
from jaxbench.core.workload import TrainWorkload
from jaxbench.workloads.sums import adapt, forest, kmeans, regression, trees

DEPTH, RATE, L2, MIN_HESSIAN = 6, 0.1, 1.0, 1.0  # of boosted trees
TREES, TRIED, MIN_ROWS = 16, 5, 1e-3  # of a forest
CLUSTERS, ITERATIONS = 64, 20  # of k-means
PENALTY = 1e-3  # of regressions, per row
LBFGS_STEPS = 30

Answer = Callable[[np.ndarray], float]  # rows with their class -> accuracy, or inertia per row
Train = Callable[[], Answer]


@dataclasses.dataclass(frozen=True)
class Job:
    """answer: the name of the answer. goal: the largest allowed distance between jaxbench's answer and any other:
    relative for an inertia, a difference for an accuracy. ways: by name; `package`: the dependency of the others."""

    answer: str
    goal: float
    ways: dict[str, Callable[[np.ndarray, int], Train]]


def accuracy(margins: Callable[[np.ndarray], np.ndarray]) -> Answer:
    return lambda rows: float(np.mean((np.asarray(margins(rows[:, :-1])) > 0) == (rows[:, -1] > 0)))


def binned(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    cuts = trees.edges(rows[:, :-1])
    return np.column_stack([trees.binned(rows[:, :-1], cuts), rows[:, -1].astype(np.uint8)]), cuts


def settings(rows: int) -> trees.TreeSettings:
    return trees.TreeSettings(
        columns=adapt.COLUMNS, depth=DEPTH, rate=RATE, l2=L2 / rows, min_hessian=MIN_HESSIAN / rows
    )


def boosted(rows: np.ndarray, count: int) -> Train:
    of, (table, cuts) = settings(len(rows)), binned(rows)
    grow = sums_growing.grower(of, table, len(jax.devices()))
    grow(1)  # compiles

    def train() -> Answer:
        grown = grow(count)
        return accuracy(lambda columns: sums_growing.margins(of, grown, trees.binned(columns, cuts)))

    return train


def lightgbm(rows: np.ndarray, count: int) -> Train:
    import lightgbm as package

    options = {
        "objective": "binary", "max_depth": DEPTH, "num_leaves": 2**DEPTH, "learning_rate": RATE, "lambda_l2": L2,
        "min_sum_hessian_in_leaf": MIN_HESSIAN, "min_data_in_leaf": 1, "max_bin": trees.BINS - 1, "verbose": -1,
        "boost_from_average": False,
    }  # fmt: skip
    data = package.Dataset(rows[:, :-1].copy(), rows[:, -1].copy(), params=options).construct()

    def train() -> Answer:
        model = package.train(options, data, count)
        return accuracy(lambda columns: np.asarray(model.predict(columns, raw_score=True)))

    return train


def xgboost(rows: np.ndarray, count: int) -> Train:
    import xgboost as package

    options = {
        "objective": "binary:logistic", "max_depth": DEPTH, "eta": RATE, "lambda": L2, "min_child_weight": MIN_HESSIAN,
        "max_bin": trees.BINS, "tree_method": "hist", "base_score": 0.5,
    }  # fmt: skip
    data = package.QuantileDMatrix(rows[:, :-1], rows[:, -1], max_bin=trees.BINS)

    def train() -> Answer:
        model = package.train(options, data, count)
        return accuracy(lambda columns: np.asarray(model.predict(package.DMatrix(columns), output_margin=True)))

    return train


def stepped(workload: TrainWorkload, batch: dict[str, Any], steps: int) -> Callable[[], Any]:
    """Trains by the measured step: `shard_map` over all devices. Returns the parameters after a number of steps."""
    program = parallel.build("shard_map", workload, jax.devices())
    with jax.set_mesh(program.mesh):
        placed = program.put(batch)
        step = program.step.lower(program.init(jax.random.PRNGKey(0)), placed).compile()

    def train() -> Any:
        with jax.set_mesh(program.mesh):
            state = program.init(jax.random.PRNGKey(0))
            for _ in range(steps):
                state, _ = jax.block_until_ready(step(state, placed))
            return jax.device_get(program.export(state).params)

    train()
    return train


def our_forest(rows: np.ndarray, count: int) -> Train:
    workload = forest.workload("forest", count=TREES, depth=DEPTH, tried=TRIED, min_rows=MIN_ROWS)
    of, (table, cuts) = forest.settings(columns=adapt.COLUMNS, depth=DEPTH, min_rows=MIN_ROWS), binned(rows)
    drawn = np.asarray(forest.counts(jax.random.PRNGKey(1), len(rows), TREES))
    fit = stepped(workload, {"row": table, "drawn": drawn}, DEPTH)

    def train() -> Answer:
        state = fit()["state"]
        return accuracy(lambda columns: forest.predicted(of, state, trees.binned(columns, cuts)) - 0.5)

    return train


def their_forest(rows: np.ndarray, count: int) -> Train:
    from sklearn.ensemble import RandomForestClassifier

    least = max(1, int(MIN_ROWS * len(rows)))
    options = {"max_depth": DEPTH, "max_features": TRIED, "min_samples_leaf": least, "n_jobs": -1}
    model = RandomForestClassifier(TREES, **options)

    def train() -> Answer:
        fitted = model.fit(rows[:, :-1], rows[:, -1])
        return accuracy(lambda columns: fitted.predict_proba(columns)[:, 1] - 0.5)

    return train


def our_regression(kind: Callable[..., TrainWorkload], steps: int, middle: float) -> Callable[[np.ndarray, int], Train]:
    """middle: the smallest prediction of class 1."""

    def way(rows: np.ndarray, count: int) -> Train:
        workload = kind("regression", columns=adapt.COLUMNS, l2=PENALTY, draw=adapt.higgs_like)
        fit = stepped(workload, {"row": rows}, steps)

        def train() -> Answer:
            params = fit()
            weights = np.asarray(params.get("state", params)["weights"])
            return accuracy(lambda columns: columns @ weights[:-1] + weights[-1] - middle)

        return train

    return way


def their_ridge(rows: np.ndarray, count: int) -> Train:
    from sklearn.linear_model import Ridge

    model = Ridge(PENALTY * len(rows))

    def train() -> Answer:
        fitted = model.fit(rows[:, :-1], rows[:, -1])
        return accuracy(lambda columns: fitted.predict(columns) - 0.5)

    return train


def their_logistic(rows: np.ndarray, count: int) -> Train:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=1 / (PENALTY * len(rows)))

    def train() -> Answer:
        fitted = model.fit(rows[:, :-1], rows[:, -1])
        return accuracy(fitted.decision_function)

    return train


def inertia(centers_KC: np.ndarray) -> Answer:
    """The squared distance to the nearest center, per row."""

    def of(rows: np.ndarray) -> float:
        sums = kmeans.local({"centers": jnp.asarray(centers_KC)}, {"row": jnp.asarray(rows[:, :-1])})
        return float(sums["loss"]) / len(rows)

    return of


def our_kmeans(rows: np.ndarray, count: int) -> Train:
    first = kmeans.spread_out(rows[:, :-1], CLUSTERS, 0)
    workload = kmeans.workload("kmeans", clusters=CLUSTERS, columns=adapt.COLUMNS)
    with_centers = dataclasses.replace(workload, init=lambda key: _with_centers(workload, key, first))
    fit = stepped(with_centers, {"row": rows[:, :-1]}, ITERATIONS)
    return lambda: inertia(fit()["state"]["centers"])


def _with_centers(workload: TrainWorkload, key: jax.Array, first: np.ndarray) -> Any:
    params, model_state = workload.init(key)
    return {**params, "state": {"centers": jnp.asarray(first)}}, model_state


def their_kmeans(rows: np.ndarray, count: int) -> Train:
    from sklearn.cluster import KMeans

    first, columns = kmeans.spread_out(rows[:, :-1], CLUSTERS, 0), rows[:, :-1].copy()
    model = KMeans(CLUSTERS, init=first, n_init=1, max_iter=ITERATIONS, tol=0.0, algorithm="lloyd")
    return lambda: inertia(model.fit(columns).cluster_centers_)


JOBS = {
    "gbdt": Job("accuracy", 0.005, {"jaxbench": boosted, "lightgbm": lightgbm, "xgboost": xgboost}),
    "forest": Job("accuracy", 0.02, {"jaxbench": our_forest, "sklearn": their_forest}),
    "ridge": Job("accuracy", 0.001, {"jaxbench": our_regression(regression.ridge, 1, 0.5), "sklearn": their_ridge}),
    "logistic": Job(
        "accuracy",
        0.001,
        {"jaxbench": our_regression(regression.logistic, LBFGS_STEPS, 0.0), "sklearn": their_logistic},
    ),
    "kmeans": Job("inertia", 0.01, {"jaxbench": our_kmeans, "sklearn": their_kmeans}),
}
