# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Goodput under failures, and prices."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from benchmarks import goodput as injected
from jaxbench.commands.run import require_price
from jaxbench.errors import UserError
from jaxbench.features.training import costs as costs_lib
from jaxbench.features.training.costs import Costs
from jaxbench.features.training.trainings import KINDS, Save, Start
from jaxbench.statistics.bootstrap import Estimate

COSTS = Costs(interval_s=30.0, checkpoint_s=2.0, latency_s=5.0, restart_s=20.0, down_s=3.0, useful=0.9)


def simulated(costs: Costs, mtbf_s: float, *, intervals: int, seed: int = 0) -> float:
    """Wall time of one training with a number of intervals: every checkpoint, seal and failure in turn."""
    random = np.random.default_rng(seed)
    wall, done = 0.0, 0
    while True:
        fails, clock, sealed = random.exponential(mtbf_s), costs.restart_s, done
        while clock <= fails:
            clock += costs.interval_s + costs.checkpoint_s
            sealed += clock + costs.latency_s <= fails
            if sealed == intervals:
                return wall + clock
        wall += fails + costs.down_s
        done = sealed


@pytest.mark.parametrize(
    ("checkpoint_min", "mtbf_min", "best_min"), [(5, 24 * 60, 117), (5, 6 * 60, 57), (5, 15, 9.1), (5, 2.5, 2.5)]
)
def test_the_best_interval_is_the_published_one(checkpoint_min, mtbf_min, best_min):
    """Figures 3 to 5 of Daly (2006); the last is where a checkpoint takes twice the mean time between failures."""
    assert costs_lib.daly(60 * checkpoint_min, 60 * mtbf_min) / 60 == pytest.approx(best_min, rel=0.006)


def test_the_best_interval_is_best():
    best = costs_lib.daly(COSTS.checkpoint_s, 600)
    around = [dataclasses.replace(COSTS, interval_s=best * factor) for factor in (0.8, 1.0, 1.25)]
    shares = [costs_lib.expected_goodput(costs, 600) for costs in around]
    assert max(shares) == shares[1]


def test_without_failures_only_checkpoints_cost():
    assert costs_lib.expected_goodput(COSTS, 1e12) == pytest.approx(0.9 * 30 / 32)


@pytest.mark.parametrize("mtbf_s", [60.0, 300.0, 3000.0])
@pytest.mark.parametrize("latency_s", [0.0, 5.0])
def test_a_simulation_agrees_within_two_percent(mtbf_s, latency_s):
    """20,000 simulated long trainings each: the sampling error is below 1 %."""
    costs = dataclasses.replace(COSTS, latency_s=latency_s)
    intervals = int(20_000 * costs_lib.expected_goodput(costs, mtbf_s) * mtbf_s / (costs.useful * costs.interval_s))
    useful_s = intervals * costs.useful * costs.interval_s
    assert useful_s / simulated(costs, mtbf_s, intervals=intervals) == pytest.approx(
        costs_lib.expected_goodput(costs, mtbf_s), rel=0.02
    )


def test_a_short_training_pays_for_its_first_start():
    costs = dataclasses.replace(COSTS, latency_s=0.0)
    walls = [simulated(costs, 100.0, intervals=3, seed=seed) for seed in range(10_000)]
    assert injected.expected_wall_s(costs, 100.0, intervals=3) == pytest.approx(np.mean(walls), rel=0.02)


def test_more_devices_need_more_checkpoints_and_give_less():
    found = [costs_lib.at_devices(COSTS, devices=n, failures_per_device_hour=2e-5) for n in (1, 100, 10_000, 100_000)]
    assert found == sorted(found, reverse=True)
    assert found[0][0] == pytest.approx(costs_lib.daly(2.0, 3600 / 2e-5)) and 0 < found[-1][1] < found[0][1] < 0.9


def test_costs_are_means_of_the_account():
    second = 10**9

    def start(begun, from_step, step, saves, **spent):
        ns = {kind: spent.get(kind, 0) * second for kind in KINDS}
        saved = tuple(Save(step=at, steps_ns=s * second) for at, s in saves)
        return Start(begun * second, ns, from_step, step, saved, len(saves), len(saves) * second, False)

    killed = start(0, 0, 25, [(10, 10), (20, 20)], start=4, compile=6, steps=25, checkpoint=2, input=5)
    ended = start(44, 20, 30, [(30, 10)], start=5, compile=6, restore=1, steps=10, checkpoint=1, evaluation=10)
    assert costs_lib.measured_costs([killed, ended]) == Costs(
        interval_s=pytest.approx(30 / 3 / 0.7),
        checkpoint_s=1.0,
        latency_s=1.0,
        restart_s=11.0,
        down_s=2.0,
        useful=pytest.approx(0.7),
    )
    assert costs_lib.measured_costs([]) is None


CONFIG = {"experiment": "cnn", "model": {"width": 16}}


def test_a_thousand_steps_worked_by_hand():
    cost = costs_lib.of_steps(Estimate(value=0.36, lo=0.18, hi=0.72), 1000, 2.5)
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
    assert costs_lib.steps_to_target(run, CONFIG) == {32: 200}


def test_energy_is_said_only_where_a_counter_was_read():
    (said,) = costs_lib.price_sentences([], 2.5, {}, {"package-0": 600.0, "GPU 0": 900.0}, 10.0)
    assert "by package-0, GPU 0: 1,500 J in 10 s, 150 W on average" in said
    (said,) = costs_lib.price_sentences([], 2.5, {}, {}, 10.0)
    assert said.startswith("Energy: unknown")


@pytest.mark.parametrize("per_hour", [0.0, -1.0, float("inf"), float("nan")])
def test_a_price_is_above_zero(per_hour):
    with pytest.raises(UserError, match="is not a price: use 2.50"):
        require_price(per_hour)
