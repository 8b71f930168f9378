# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The cost of steps at an hourly price, and unknown costs."""

from __future__ import annotations

import json

import pytest
from ml_collections import ConfigDict

from jaxbench.analysis import price
from jaxbench.analysis.intervals import Estimate
from jaxbench.commands.run import Meter
from jaxbench.errors import UserError

CONFIG = {"experiment": "cnn", "model": {"width": 16}}


def test_a_thousand_steps_worked_by_hand():
    cost = price.of_steps(Estimate(value=0.36, lo=0.18, hi=0.72), 1000, 2.5)
    assert (cost.value, cost.lo, cost.hi) == pytest.approx((0.25, 0.125, 0.5))


def training(folder, *, batch=32, accuracies=(0.5, 0.98, 0.99), **config):
    folder.mkdir()
    clocks = {"elapsed_s": 1.0, "compile_s": 0.0}
    rows = [{"step": 100 * (at + 1), "test_accuracy": value, **clocks} for at, value in enumerate(accuracies)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    about = {**CONFIG, "seed": 0, "train": {"target": 0.97, "batch": batch}, **config}
    (folder / "config.json").write_text(json.dumps(about))


def test_the_steps_to_the_target_come_from_a_training_next_to_the_run(tmp_path):
    training(tmp_path / "a")
    training(tmp_path / "b", accuracies=(0.2, 0.3, 0.98))
    training(tmp_path / "c", batch=64, accuracies=(0.2, 0.3))  # never reached
    training(tmp_path / "d", batch=128, experiment="mlp")
    training(tmp_path / "e", batch=256, model={"width": 8})
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "metrics.jsonl").write_text("{")
    run = tmp_path / "run"
    run.mkdir()
    assert price.steps_to_target(run, CONFIG) == {32: 200}


def test_energy_is_said_only_where_a_counter_was_read():
    (said,) = price.sentences([], 2.5, {}, {"package-0": 600.0, "GPU 0": 900.0}, 10.0)
    assert "by package-0, GPU 0: 1,500 J in 10 s, 150 W on average" in said
    (said,) = price.sentences([], 2.5, {}, {}, 10.0)
    assert said.startswith("Energy: unknown")


@pytest.mark.parametrize("per_hour", [0.0, -1.0, float("inf"), float("nan")])
def test_a_price_is_above_zero(per_hour):
    with pytest.raises(UserError, match="is not a price: use 2.50"):
        Meter(per_hour, ConfigDict())


def test_a_case_has_no_steps():
    with pytest.raises(UserError, match="needs a model"):
        Meter(1.0, ConfigDict({"measures": "cases"}))
