# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Trainings to a target over batch sizes: their settings and rules, and the same command after kill -9."""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import math
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from doorway import command, environment, jaxbench
from ml_collections import ConfigDict
from rich.console import Console

from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.config import parse_targets
from jaxbench.errors import UserError
from jaxbench.features.time_to_target import analysis as targets
from jaxbench.features.time_to_target import page as targets_page
from jaxbench.features.time_to_target.targets import Model, TargetStudy, Wanted, models_of, rates
from jaxbench.features.time_to_target.worker import HowEnded
from jaxbench.features.training import trainings
from jaxbench.features.training.figures import draw_learning
from jaxbench.features.training.trainings import GRID, LearningCurve, Trained
from jaxbench.machine import energy
from jaxbench.machine.energy import Counter
from jaxbench.report.drawing import canvas
from jaxbench.statistics import bootstrap
from jaxbench.sweep import progress
from jaxbench.workloads import TrainWorkload, make_optimizer
from jaxbench.workloads.optimizers import warmed


def composed(preset: str = "auto", **changes: object):
    name = "time_to_target"
    config = config_lib.compose(name, discovery.load_experiment(name), discovery.load_preset(preset))
    with config.unlocked():
        config.update_from_flattened_dict(changes)
    return config


@pytest.mark.parametrize("preset", sorted(discovery.presets()))
def test_every_preset_takes_it(preset):
    if preset != "machine":  # it changes the settings of kernels
        assert parse_targets(composed(preset)).models == ("mlp", "cnn")


def test_the_updates_of_a_warm_up_grow_to_their_size():
    momentum = make_optimizer(ConfigDict({"name": "momentum", "learning_rate": 0.5}))
    workload = warmed(TrainWorkload(name="x", init=None, loss=None, optimizer=momentum, example={}), 4)
    plain, state, grown = momentum.init(1.0), workload.optimizer.init(1.0), []
    for _ in range(6):
        update, state = workload.optimizer.update(1.0, state)
        whole, plain = momentum.update(1.0, plain)
        grown.append(float(update / whole))
    assert grown == pytest.approx([0.25, 0.5, 0.75, 1, 1, 1])
    assert warmed(workload, 0) is workload


def test_the_rules_from_the_models_own_rate():
    own = {"base_rate": 0.1, "base_batch": 32, "grid": (0.5, 1.0, 2.0)}
    assert rates("linear", 128, **own) == (0.4,) and rates("sqrt", 128, **own) == (0.2,)
    assert rates("tuned", 8, **own) == (0.025, 0.05, 0.1)
    assert rates("linear", 32, **own) == rates("sqrt", 32, **own) == (0.1,)


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("batches", "8,x", "batches=8,x is not a list of different batch sizes: use 8,32,128"),
        ("batches", "8,8", "is not a list of different batch sizes"),
        ("rates", "1", "rates=1 is not a grid of factors: use 0.5,1,2"),
        ("rates", "0,1", "is not a grid of factors"),
        ("rule", "liner", "did you mean 'linear'"),
        ("warmup", -1.0, "warmup=-1.0 is not a number of epochs: use 2"),
        ("target", 97.0, "target=97.0 is not an accuracy: use 0.97"),
        ("seeds", 0, "seeds=0 is out of range: use 1 to"),
        ("models", " ,", "names no model: use mlp,cnn"),
        ("mesh.devices", "2,2", "is not a list of different device counts"),
    ],
)
def test_bad_settings_are_one_sentence(field, value, says):
    with pytest.raises(UserError, match=says):
        parse_targets(composed(**{field: value}))


def test_the_fields_of_the_experiment_are_those_that_are_parsed():
    settings = parse_targets(composed())
    assert (settings.rule, settings.target, settings.epochs) == (("sqrt",), 0.95, 60)
    assert settings.devices is None and settings.batches == tuple(2**n for n in range(3, 11))


@pytest.mark.parametrize(
    ("names", "says"),
    [("matmul", "is not a model: use mlp or cnn"), ("cnm", "unknown experiment 'cnm': did you mean")],
)
def test_models_that_cannot_be_trained(names, says):
    with pytest.raises(UserError, match=says):
        models_of(parse_targets(composed(models=names)))


def test_other_verbs_refuse_it(tmp_path):
    for words in (("train", "time_to_target"), ("ab", "time_to_target", "--a=--config.seeds=1")):
        done = jaxbench(*words, cwd=tmp_path)
        assert "'time_to_target' is not a model" in done.stderr and done.returncode in (2, 3)


class Trainer:
    """Replaces the training process: it writes the rows of a training, and the energy counters increase by 300 J."""

    def __init__(self, counters: dict[str, float]):
        self.counters = counters

    def ask(self, request, timeout_s):
        folder = Path(request.workdir)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "metrics.jsonl").write_text(
            '{"step": 40, "test_accuracy": 0.96, "elapsed_s": 1.0, "compile_s": 0.5}\n'
        )
        for name in self.counters:
            self.counters[name] += 150.0
        return HowEnded(finished=True, reached=True, diverged=None)


@pytest.mark.parametrize("counted", [True, False])
def test_each_training_has_its_own_joules_where_a_counter_can_be_read(tmp_path, monkeypatch, counted):
    counters = {"package-0": 7.0, "GPU 0": 90.0} if counted else {}
    monkeypatch.setattr(energy, "read", lambda: {name: Counter(joules) for name, joules in counters.items()})
    (model,) = models_of(parse_targets(composed(models="mlp")))
    model = Model(**{**vars(model), "examples": 1438})
    console = Console(file=io.StringIO())
    study = TargetStudy(parse_targets(composed()), tmp_path, {"platform": "cpu"}, console, per_hour=2.5)
    wanted = [Wanted(model=model, devices=1, batch=256, rule="sqrt", seed=seed, rate=0.1) for seed in range(2)]
    (tmp_path / "trainings" / wanted[1].folder).mkdir(parents=True)  # left by a kill
    first, second = (study._one(Trainer(counters), one) for one in wanted)
    assert first.joules == (300.0 if counted else None), "the sum of all counters"
    assert second.joules is None, "a part of it is not known"
    assert first.price_per_hour == 2.5
    assert study._one(Trainer({}), wanted[0]) == first, "it has ended: it is not trained again"


def test_a_long_training_does_not_silence_a_log(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "SILENT_S", 0.02)
    console = Console(file=io.StringIO(), width=200)

    class Slow(Trainer):
        def ask(self, request, timeout_s):
            until = time.monotonic() + 10
            while "0 s: 0 trainings ended; now mlp-devices1-batch256-" not in console.file.getvalue():
                assert time.monotonic() < until
                time.sleep(0.01)
            return super().ask(request, timeout_s)

    (model,) = models_of(parse_targets(composed(models="mlp")))
    model = Model(**{**vars(model), "examples": 1438})
    study = TargetStudy(parse_targets(composed()), tmp_path, {"platform": "cpu"}, console)
    study._one(Slow({}), Wanted(model=model, devices=1, batch=256, rule="sqrt", seed=0, rate=0.1))


@pytest.mark.full
def test_a_smoke_run_reaches_its_targets(tmp_path):
    words = ("run", "time_to_target", "--preset=smoke", "--config.models=mlp", "--config.seeds=1")
    done = jaxbench(*words, "--config.mesh.devices=1", f"--workdir={tmp_path}")
    assert done.returncode == 0, done.stdout + done.stderr
    with open(tmp_path / "targets.csv") as file:
        assert [(row["batch"], row["reached"]) for row in csv.DictReader(file)] == [("16", "true"), ("64", "true")]
    assert f"Page, figure and table: {tmp_path / 'report.html'}\n" in done.stdout


@pytest.mark.full
def test_a_price_that_is_none_is_refused_before_training(tmp_path):
    done = jaxbench("run", "time_to_target", "--price_per_hour=-1", f"--workdir={tmp_path / 'run'}")
    assert done.returncode == 2 and "--price_per_hour=-1 is not a price: use 2.50" in done.stderr


WORDS = (
    *("run", "time_to_target", "--config.models=mlp", "--config.mesh.platform=cpu", "--config.mesh.devices=1"),
    *("--config.batches=256,512", "--config.seeds=1", "--config.epochs=1", "--config.evaluations=1"),
    *("--config.noise_examples=256",),
)


@pytest.mark.full
def test_kill_9_and_the_same_command_trains_what_is_missing(tmp_path):
    folder = tmp_path / "run"
    words = command(*WORDS, f"--workdir={folder}")
    with subprocess.Popen(words, env=environment(), stdout=subprocess.DEVNULL, start_new_session=True) as process:
        deadline = time.monotonic() + 200
        while not (ended := list(folder.glob("trainings/*/result.json"))):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
    first = {path: path.stat().st_mtime_ns for path in ended}
    done = jaxbench(*WORDS, f"--workdir={folder}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(path.stat().st_mtime_ns == at for path, at in first.items())  # it was not retrained
    with open(folder / "targets.csv") as file:
        rows = list(csv.DictReader(file))
    assert [(row["batch"], row["reached"]) for row in rows] == [("256", "false"), ("512", "false")]
    assert [int(row["steps"]) for row in rows] == [1437 // 256, 1437 // 512]  # their budgets: they are censored
    assert all(0 < float(row["seconds"]) and float(row["noise_scale"]) > 0 for row in rows)
    assert "at least 5" in (folder / "report.html").read_text()
    other = jaxbench(*WORDS, f"--workdir={folder}", "--config.seed=4")
    assert other.returncode == 2 and "has results of another config (seed was 0 and is now 4)" in other.stderr


# The knee and the noise scale of problems with known values, and trainings that never reach a target.


DIMENSIONS, TRACE = 200, 50.0  # of a quadratic; tr(Sigma) of one example's gradient
FROM, TO = 1.0, 0.05  # the squared distance from the optimum, at the start and at the target
# Steps are ln(FROM / TO) + TRACE (1/TO - 1/FROM) / batch, in units of 1 / (2 rate - rate^2): see `steps_to`.
KNEE = TRACE * (1 / TO - 1 / FROM) / math.log(FROM / TO)


def trained(batch: int, steps: float = 100, **changes: Any) -> Trained:
    known: dict[str, Any] = dict(
        model="mlp", batch=batch, devices=1, seed=0, learning_rate=0.1, rule="linear", target=0.9, steps=round(steps),
        reached=True, diverged=None, accuracy=0.95, step_s=0.001, noise=(), folder="x",
    )  # fmt: skip
    return Trained(**{**known, **changes})


def steps_to(batch: int, seed: int, rate: float = 0.1) -> int:
    """Steps of SGD on |x|^2 / 2 with noisy gradients, from |x|^2 = FROM to TO.

    Each step is `rate` times the best step (McCandlish et al. 2018, section 2.2), so on average the squared distance u
    falls by (2 rate - rate^2) u^2 / (u + TRACE / batch). Its integral is the number of steps above.
    """
    random = np.random.default_rng((seed, batch))
    x = np.full(DIMENSIONS, math.sqrt(FROM / DIMENSIONS))
    for step in range(1, 100_000):
        noise = random.normal(size=DIMENSIONS) * math.sqrt(TRACE / DIMENSIONS / batch)
        u = float(x @ x)
        x = x - rate * u / (u + TRACE / batch) * (x + noise)
        if x @ x <= TO:
            return step
    raise AssertionError("it never arrived")


def test_the_knee_of_a_quadratic_is_where_its_noise_scale_says():
    pairs = itertools.product((20, 80, 320, 1280, 5120), (0, 1, 2))
    (curve,) = targets.curves([trained(batch, steps_to(batch, seed), seed=seed) for batch, seed in pairs])
    assert curve.knee.value == pytest.approx(KNEE, rel=0.15) and curve.knee.has_interval
    assert curve.least.value == pytest.approx(math.log(FROM / TO) / (2 * 0.1 - 0.1**2), rel=0.15)


def test_the_fit_is_exact_where_the_law_is():
    batches = [8, 32, 128, 512]
    assert targets.fit_knee(batches, [7 * (1 + 90 / b) for b in batches]) == pytest.approx((7, 90), rel=1e-3)


@pytest.mark.parametrize(
    ("steps", "straight", "flat"), [(lambda b: 4096 / b, True, False), (lambda b: 50, False, True)]
)
def test_no_knee_where_the_batches_show_none(steps, straight, flat):
    (curve,) = targets.curves([trained(batch, steps(batch)) for batch in (8, 32, 128, 512)])
    assert not curve.knee.known and (curve.straight, curve.flat) == (straight, flat)


def test_a_training_that_does_not_arrive_is_a_lower_limit_and_in_no_fit():
    made = [trained(b, 10 * (1 + 64 / b), seed=seed) for b in (8, 32, 128) for seed in (0, 1)]
    lost = trained(512, 400, seed=1, reached=False)
    (curve,) = targets.curves([*made, trained(512, 100, seed=0), lost])
    group = curve.on(1)[-1]
    assert group.censored == 1 and group.steps.value == pytest.approx(200) and not group.steps.has_interval
    assert curve.knee.value == pytest.approx(64, rel=0.02)
    assert curve.fastest(1).batch == 128  # of the batches that all seeds completed
    assert not targets.curves([lost])[0].knee.known


def test_trainings_that_only_chose_a_rate_are_in_no_mean():
    (curve,) = targets.curves([trained(8, rule="tuned"), trained(8, 9999, rule=GRID)])
    assert curve.rule == "tuned" and curve.on(1)[0].steps.value == pytest.approx(100)


def test_the_noise_scale_divides_averages_over_steps():
    """The first measurement has a weight of 10 steps, the second of 30: (10 x 4 + 30 x 8) / (10 x -1 + 30 x 1)."""
    one = trained(8, noise=((10, -1.0, 4.0), (40, 1.0, 8.0)))
    assert one.noise_scale == pytest.approx(280 / 20)
    assert trained(8, noise=((10, -1.0, 4.0),)).noise_scale is None
    found = bootstrap.over_seeds([1.0, math.e, math.e**2])
    assert found.value == pytest.approx(math.e)
    assert math.log(found.hi) - 1 == pytest.approx(4.3027 / math.sqrt(3), rel=1e-4)
    assert not bootstrap.over_seeds([3.0]).has_interval and not bootstrap.over_seeds([None]).known


# The page and the table of trainings to a target, and the curves of a training.


def made(batch: int, seed: int, *, reached: bool = True, rule: str = "linear") -> Trained:
    return Trained(
        model="mlp", batch=batch, devices=1, seed=seed, learning_rate=0.1, rule=rule, target=0.9,
        steps=round(2000 * (1 + 100 / batch) * (1 + 0.02 * seed)), reached=reached, diverged=None if reached else 3,
        accuracy=0.95, step_s=0.01, noise=((10, 1.0, 90.0 + seed),), folder=f"mlp-{batch}-{seed}",
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    trained = [made(batch, seed) for batch in (8, 32, 128) for seed in (0, 1, 2)]
    trainings.write_trained(tmp_path, [*trained, made(512, 0, reached=False), made(8, 0, rule=trainings.GRID)])
    (tmp_path / "config.json").write_text('{"experiment": "time_to_target"}')
    return tmp_path


def test_the_page_says_knee_noise_scale_and_what_was_not_reached_and_the_table_has_its_columns(folder):
    text = io.StringIO()
    targets_page.write(folder, Console(file=text, width=120))
    said = " ".join(text.getvalue().split())
    scales = "up to a knee of about 100", "gradient noise scale is 91", "knee over noise scale is 1.1"
    missed = "batch 512, 1 device: 1 of 1 seed did not reach it", "1 of them diverged"
    for words in (*scales, *missed, "The grid of the tuned learning rates"):
        assert words in said, words
    page = (folder / targets_page.PAGE).read_text()
    assert "<svg" in page and "at least 2390" in page and "Gradient noise scale" in page
    assert (folder / "figures" / "targets.svg").exists()
    line = dataclasses.asdict(made(8, 0))
    del line["joules"], line["price_per_hour"]
    one = trainings.parse_trained(line)
    assert one == made(8, 0) and one.cost is None, "a line of an older run has neither energy nor price"
    with open(folder / targets_page.CSV) as file:
        rows = list(csv.DictReader(file))
    first = "model,batch,devices,seed,learning_rate,rule,steps,reached,accuracy,noise_scale,seconds"
    assert list(rows[0])[:11] == first.split(",")
    assert rows[0]["seconds"] == "270" and rows[0]["noise_scale"] == "90" and rows[9]["reached"] == "false"
    read = trainings.read_trained(folder)
    assert [trainings.parse_trained(dataclasses.asdict(one)) for one in read] == read


def test_a_seed_that_diverged_has_the_steps_of_its_budget_and_no_accuracy():
    seeds = [made(8, 0), dataclasses.replace(made(8, 1, reached=False), accuracy=None)]
    (group,) = targets.curves(seeds)[0].groups
    said = f"1 of 2 seeds did not reach it in {seeds[1].steps:,} steps, 1 of them diverged"
    assert said in targets_page._not_reached(group) and seeds[0].steps != seeds[1].steps
    assert targets_page._accuracy(group) == 0.95
    (lost,) = targets.curves(seeds[1:])[0].groups
    assert targets_page._accuracy(lost) is None


def test_a_damaged_file_and_none(folder, tmp_path):
    path = folder / trainings.TARGETS
    path.write_text(path.read_text() + '{"model": 3}\n')
    with pytest.raises(UserError, match=r"targets.jsonl, line 12 is damaged \(model: 3"):
        targets_page.write(folder)
    with pytest.raises(UserError, match=r"has no targets.jsonl: give the folder"):
        targets_page.write(tmp_path / "other")


def test_the_curves_of_a_training_show_each_row():
    rows = tuple(
        {"step": 10 * n, "test_accuracy": 0.5 + n / 10, "test_loss": 1 / n, "train_loss": 2 / n, "elapsed_s": n,
         "compile_s": 0.5} for n in (1, 2, 3)
    )  # fmt: skip
    one = LearningCurve(name="a", experiment="mlp", batch=8, target=0.75, seed=0, rows=rows)
    drawn = []
    canvas.render(lambda: drawn.append(draw_learning({"a": [one]}, title="t")) or drawn[0])
    loss, accuracy = drawn[0].axes  # one training: over steps alone
    assert [list(line.get_ydata()) for line in loss.lines] == [[2, 1, 2 / 3], [1, 1 / 2, 1 / 3]]
    assert list(accuracy.lines[0].get_xdata()) == [10, 20, 30] and accuracy.lines[1].get_ydata()[0] == 0.75
    canvas.render(
        lambda: (
            drawn.append(draw_learning({"a": [one], "b": [dataclasses.replace(one, seed=1)]}, title="t")) or drawn[1]
        )
    )
    loss, accuracy = drawn[1].axes[1], drawn[1].axes[3]  # over seconds, without compiling
    assert len(loss.lines) == 4 and list(accuracy.lines[0].get_xdata()) == [0.5, 1.5, 2.5]
    assert draw_learning({"a": [dataclasses.replace(one, rows=())]}, title="t") is None


def test_energy_and_price_are_the_last_columns_and_empty_where_unknown(folder):
    targets_page.write(folder)
    with open(folder / targets_page.CSV) as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0])[-3:] == ["joules", "price_per_hour", "cost"]
    assert {rows[0][name] for name in ("joules", "price_per_hour", "cost")} == {""}, "never 0"
    assert "joules" not in (folder / targets_page.PAGE).read_text().partition("<svg")[0]

    known = [dataclasses.replace(made(8, seed), joules=500.0 * 2**seed, price_per_hour=2.0) for seed in (0, 1)]
    trainings.write_trained(folder, [*known, dataclasses.replace(made(32, 0, reached=False), joules=70.0)])
    targets_page.write(folder)
    with open(folder / targets_page.CSV) as file:
        first, second, censored = csv.DictReader(file)
    assert (first["joules"], first["price_per_hour"], first["cost"]) == ("500", "2", "0.15"), "270 s at 2 an hour"
    assert (second["joules"], censored["joules"], censored["cost"]) == ("1000", "70", "")
    page = (folder / targets_page.PAGE).read_text()
    assert "707 [" in page and "at least 70" in page, "the geometric mean of 500 and 1,000, and a lower limit"
