# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How `precision` and `repeatability` evaluate finished runs and resume after a stop."""

import json
import math
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks import precision, repeatability
from benchmarks.whole_runs import Run, Runs, efficiencies

POINT = "jit_auto/weak/2"
FIGURES = Path(__file__).parents[2] / "docs" / "figures"


def run(value, half, seconds=60.0, name=""):
    return Run(name=name, seconds=seconds, efficiencies={POINT: [value, value - half, value + half]})


def test_a_run_that_has_ended_is_not_made_again(tmp_path):
    """The experiment does not exist, so the answer can come only from a stored run."""
    runs = Runs(tmp_path, {"experiment": "no-such"}, Console(quiet=True))
    with pytest.raises(SystemExit, match="has no efficiency"):
        runs.measure("one", ["no-such"])
    assert "no-such" in (tmp_path / "one.log").read_text()
    kept = {"name": "one", "seconds": 61.0, "efficiencies": {POINT: [0.8, 0.7, 0.9]}}
    (tmp_path / "runs.json").write_text(json.dumps({"experiment": "no-such", "runs": [kept]}))
    again = Runs(tmp_path, {"experiment": "no-such"}, Console(quiet=True))
    assert again.measure("one", ["no-such"]).half_width(POINT) == pytest.approx(0.1)
    with pytest.raises(SystemExit, match="choose another --workdir"):
        Runs(tmp_path, {"experiment": "cnn"}, Console(quiet=True))


def test_efficiencies_are_those_that_a_table_claims():
    found = efficiencies(FIGURES / "zero" / "summary.csv")
    assert found and all(lo <= value <= hi for value, lo, hi in found.values())
    assert efficiencies(FIGURES / "no-such.csv") == {}


def test_precision_compares_designs_after_the_same_wall_time():
    pairs = [{precision.HERE: run(0.8, 0.04, 60.0), precision.THERE: run(0.8, 0.08, 120.0)}] * 2
    assert precision.ratios(pairs) == {POINT: pytest.approx(0.5 / math.sqrt(2))}
    assert precision.draw({"as it is": pairs})
    assert len(precision.table({"as it is": pairs}).rows) == 2


def test_intervals_that_agree_with_the_spread_of_the_values():
    values = [0.80, 0.82, 0.78, 0.81, 0.79, 0.80, 0.83, 0.77, 0.80, 0.80]
    honest = repeatability.of(POINT, [run(value, 0.045) for value in values])
    assert honest.good and honest.contained == 10 and honest.ratio == pytest.approx(honest.sd / 0.018)
    narrow, wide = (repeatability.of(POINT, [run(value, half) for value in values]) for half in (0.01, 0.2))
    assert not narrow.good and narrow.contained < 9 and not wide.good and wide.ratio < 1 / 1.5
    assert repeatability.draw([honest], [run(value, 0.045) for value in values])
    assert len(repeatability.table([honest]).rows) == 1
