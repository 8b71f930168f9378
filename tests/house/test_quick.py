# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What `make test` leaves to `make test-all` is more of the same: each strategy, model and lever stays in it."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from house.tree import ROOT
from thin import QUARTERS, covering, in_quarter, thin

from jaxbench import config, levers, parallel

FOLDERS = {"parallel", "workloads", "levers", "core", "cases", "sweep", "processes"}


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


def collected(*options: Sequence[str]) -> list[set[str]]:
    """The ids of the tests of three files that pytest would run, for each list of options, all in one process."""
    files = [f"tests/parallel/{name}.py" for name in ("test_pipeline", "test_reduction", "test_optimizers")]
    asked = [["--collect-only", "-q", "-n0", *words, *files] for words in options]
    code = f"import pytest\nfor words in {asked}: pytest.main(words); print('====')"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    *each, _ = done.stdout.split("====\n")
    return [{line for line in text.splitlines() if "::" in line} for text in each]


def test_four_quarters_hold_each_full_case_once_and_every_quick_test_always() -> None:
    quick, everything, quarter = collected([], ["-m", ""], ["-m", "", "--quarter=1"])
    full = everything - quick
    quarters = [{name for name in full if in_quarter(name, number)} for number in QUARTERS]
    assert len(full) > 20 and sum(map(len, quarters)) == len(full) and set().union(*quarters) == full
    assert max(map(len, quarters)) < len(full) / 2
    assert quarter == quick | quarters[0]


def test_four_commits_in_a_row_run_all_quarters() -> None:
    """.ci/run counts commits, and needs the whole history for it."""
    script = (ROOT / ".ci" / "run").read_text()
    formula = next(line for line in script.splitlines() if line.startswith("quarter="))
    counted = formula.replace("$(git rev-list --count --first-parent HEAD)", "$count")
    shown = subprocess.check_output(
        ["bash", "-c", f'for count in 628 629 630 631; do {counted}; echo "$quarter"; done'], text=True
    )
    assert "$count" in counted and sorted(map(int, shown.split())) == list(QUARTERS)
    assert "fetch-depth: 0" in (ROOT / ".github" / "workflows" / "ci.yml").read_text()
