# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What `make test` leaves to `make test-all` is more of the same: each strategy, model and lever stays in it."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from thin import covering, thin

from jaxbench import config, levers, parallel

FOLDERS = {"parallel", "workloads", "runner", "input"}


@pytest.fixture
def words(request: pytest.FixtureRequest) -> set[str]:
    """The words of the tests that `make test` runs: of their names, cases and code."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function)]
    quick = [item for item in items if item.path.parent.name in FOLDERS and not item.get_closest_marker("full")]
    if {item.path.parent.name for item in quick} != FOLDERS:
        pytest.skip("only some of the tests were asked for")
    texts = {item.nodeid for item in quick} | {inspect.getsource(item.function) for item in quick}
    return {word for text in texts for word in re.findall(r"\w+", text)}


def test_every_strategy_model_and_lever_is_in_the_quick_tests(words: set[str]) -> None:
    known = {*parallel.strategy_names(), *config.training_experiments(), *levers.LEVERS}
    assert len(known) > 30 and known <= words, sorted(known - words)


def test_a_thinned_product_shows_every_value() -> None:
    product = [(letter, number) for letter in "abc" for number in range(3)]
    assert [product[each] for each in covering(product)] == [("a", 0), ("b", 1), ("c", 2)]
    kept = [case.values for case in thin(product) if not case.marks]
    assert kept == [("a", 0), ("b", 1), ("c", 2)] and [case.values for case in thin(product)] == product
    assert [case.values for case in thin(["x", "y"], 1) if not case.marks] == [("x",)]
    with pytest.raises(AssertionError, match="none of these"):
        thin(["x"], [])


def test_the_marker_is_the_one_that_pyproject_leaves_out(pytestconfig: pytest.Config) -> None:
    assert "-m=not full" in pytestconfig.getini("addopts")
    assert (Path(__file__).parents[1] / "thin.py").read_text().count("pytest.mark.full") == 1
