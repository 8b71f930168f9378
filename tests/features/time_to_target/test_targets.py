# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Trainings to a target over batch sizes: their settings and rules, and the same command after kill -9."""

from __future__ import annotations

import csv
import io
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from doorway import command, environment, jaxbench
from ml_collections import ConfigDict
from rich.console import Console

from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.config import parse_targets, rates
from jaxbench.errors import UserError
from jaxbench.features.time_to_target.targets import Model, TargetStudy, Wanted, models_of
from jaxbench.features.time_to_target.worker import HowEnded
from jaxbench.machine import energy
from jaxbench.machine.energy import Counter
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
        (folder / "metrics.jsonl").write_text('{"step": 40, "test_accuracy": 0.96}\n')
        for name in self.counters:
            self.counters[name] += 150.0
        return HowEnded(finished=True, reached=True, diverged=None)


@pytest.mark.parametrize("counted", [True, False])
def test_each_training_has_its_own_joules_where_a_counter_can_be_read(tmp_path, monkeypatch, counted):
    counters = {"package-0": 7.0, "GPU 0": 90.0} if counted else {}
    monkeypatch.setattr(energy, "read", lambda: {name: Counter(joules) for name, joules in counters.items()})
    (model,) = models_of(parse_targets(composed(models="mlp")))
    model = Model(**{**vars(model), "examples": 1438})
    study = TargetStudy(
        parse_targets(composed()), tmp_path, {"platform": "cpu"}, Console(file=io.StringIO()), per_hour=2.5
    )
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
