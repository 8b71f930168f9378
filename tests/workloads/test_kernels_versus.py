# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The jobs of `versus`: a level of a tree against a plain loop, the start of a program, and trainings to a target."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from thin import thin

from jaxbench.measure import runnable
from jaxbench.workloads.kernels import by_hand, to_target, versus


def slow_gains(first, second, bins, node):
    """Every split of every node and column, row by row."""
    found = np.zeros((by_hand.NODES, by_hand.COLUMNS))
    for place in range(by_hand.NODES):
        inside = node == by_hand.NODES + place
        g, h = first[inside], second[inside]
        whole = g.sum() ** 2 / (h.sum() + by_hand.L2)
        for column in range(by_hand.COLUMNS):
            splits = [bins[inside, column] <= edge for edge in range(by_hand.BINS)]
            gains = [
                g[s].sum() ** 2 / (h[s].sum() + by_hand.L2) + g[~s].sum() ** 2 / (h[~s].sum() + by_hand.L2) - whole
                for s in splits
            ]
            found[place, column] = max(gains)
    return found


def test_the_best_gains_of_a_level_are_those_of_a_plain_loop() -> None:
    arrays = runnable.draw_arguments(versus.JOBS["gbdt"].arrays(40), seed=3)
    assert arrays[3].min() >= by_hand.NODES and arrays[3].max() < 2 * by_hand.NODES and (arrays[1] > 0).all()
    right = slow_gains(*(array.astype(float if array.dtype == np.float32 else int) for array in arrays))
    assert by_hand.level(*arrays) == pytest.approx(right, rel=1e-4, abs=1e-5)
    assert np.asarray(versus._level(*arrays)) == pytest.approx(right, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("op", versus.OPS)
def test_starting_takes_every_argument_and_gives_as_many_results_as_the_job(op: str) -> None:
    """A jitted function drops unused arguments: passing them would not be timed."""
    (case,) = versus.cases(op, "float32", 4, (versus.START,))
    arrays = runnable.draw_arguments(case.arguments, seed=0)
    little = versus._little(versus.JOBS[op])
    results = jax.tree.leaves(jax.jit(versus.JOBS[op].jax)(*arrays))
    assert len(little(*arrays)) == len(results) and all(np.size(result) == 1 for result in little(*arrays))
    text = jax.jit(little, keep_unused=True).lower(*arrays).as_text()
    assert all(f"%arg{place}" in text for place in range(len(arrays)))


@pytest.mark.parametrize(
    "op, seed", thin([(op, seed) for op in to_target.OPS for seed in range(2)], keep=[("train_mlp", 0)])
)
def test_every_way_reaches_the_target_in_the_same_steps(op: str, seed: int) -> None:
    steps = []
    for case in to_target.cases(op, "float32", seed):
        ready = runnable.compile_kernel(case, jax.devices()[0])
        _, call = ready.draw(0)
        result, _ = ready.step(None, call)
        said = ready.outcome(result)
        assert ready.wrong is not None and ready.wrong(result, 0) == 0
        assert to_target.RECIPES[op].target <= said["final_accuracy"] <= 1
        assert ready.zeros(0) < 1, "inputs of zeros would be refused"
        steps.append(said["steps"])
    assert len(steps) == 2 and abs(steps[0] - steps[1]) <= to_target.RECIPES[op].every


def test_a_training_that_does_not_reach_its_target_is_wrong() -> None:
    (case, _) = to_target.cases("train_mlp", "float32", 0)
    assert case.wrong is not None
    assert [case.wrong(np.float32([accuracy, 2000]), ()) for accuracy in (0.94, 0.95, 1.0)] == [1, 0, 0]


def test_seeds_differ_and_ways_do_not() -> None:
    (numpy, jit), (other, _) = (list(to_target.cases("train_mlp", "float32", seed)) for seed in (0, 1))
    first, same, second = (runnable.draw_arguments(case.arguments[:1], seed=9)[0] for case in (numpy, jit, other))
    assert np.array_equal(first, same) and not np.array_equal(first, second)
    assert np.array_equal(first, runnable.draw_arguments(numpy.arguments[:1], seed=5)[0]), (
        "the run's own seed changes nothing"
    )
