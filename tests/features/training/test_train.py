# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A training ends with the same bits after any number of interruptions, and refuses clearly."""

from __future__ import annotations

import dataclasses
import errno
import io
import itertools
import json
import os
import re
import signal
import sys
import time
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console
from thin import KINDS, thin
from train_cases import STEPS_PER_EPOCH, Clusters, before_step, clusters, toy_workload, train_toy

from jaxbench import discovery
from jaxbench.config import compose
from jaxbench.errors import Diverged, UserError
from jaxbench.features.training import loop as train_loop
from jaxbench.features.training import metrics, run
from jaxbench.features.training.metrics import EpochMeans, Evaluator, MetricLog
from jaxbench.parallel import of_any_model
from jaxbench.sweep import progress
from jaxbench.workloads import inspection

STEPS = 4 * STEPS_PER_EPOCH


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An uninterrupted training on 8 devices: its folder and result."""
    folder = tmp_path_factory.mktemp("whole")
    return folder, train_toy(folder)


def rows_of(folder):
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in row.items() if k not in ("elapsed_s", "compile_s")} for row in rows]


def stop_at(step, number=signal.SIGTERM):
    return lambda program: before_step(program, step, lambda: os.kill(os.getpid(), number))


def test_a_training_leaves_rows_checkpoints_and_its_config(whole):
    folder, result = whole
    assert (result.finished, result.reached, result.was_finished) == (True, False, False)
    assert (result.step, result.epoch) == (STEPS, 4)
    rows = rows_of(folder)
    assert [row["epoch"] for row in rows] == [1, 2, 3, 4]
    assert rows[-1]["test_accuracy"] == result.score > rows[0]["test_accuracy"]
    assert rows[-1]["train_loss"] < rows[0]["train_loss"]
    assert 0 < result.compile_s < result.elapsed_s
    assert sorted(int(path.name) for path in (folder / "checkpoints").iterdir()) == [27, 30, 32]
    assert json.loads((folder / "config.json").read_text())["train"]["epochs"] == 4


def test_a_finished_training_says_so_and_gives_the_same_hash(whole):
    folder, result = whole
    text = io.StringIO()
    again = train_toy(folder, wrap=None, console=Console(file=text, width=200))  # the program is not even built
    assert again == dataclasses.replace(result, was_finished=True)
    assert "already finished" in text.getvalue()


@pytest.mark.parametrize("signals", thin([((5, 7, 9),), ((1,),), ((STEPS_PER_EPOCH,),)], 1))
def test_a_stopped_training_continues_to_the_same_bits(whole, tmp_path, signals, monkeypatch):
    """Stopped before the first checkpoint is due, at the end of an epoch, and several times."""
    seconds = itertools.count()  # a clock that advances when read: seconds add up over resumes on any disk
    monkeypatch.setattr(train_loop, "time", types.SimpleNamespace(perf_counter=lambda: float(next(seconds))))
    for number in signals:
        stopped = train_toy(tmp_path, wrap=stop_at(number))
        assert (stopped.finished, stopped.stopped_by) == (False, "SIGTERM")
    assert stopped.step == sum(signals)
    resumed = train_toy(tmp_path)
    assert resumed.params_sha256 == whole[1].params_sha256
    assert rows_of(tmp_path) == rows_of(whole[0])
    assert resumed.elapsed_s > stopped.elapsed_s and resumed.compile_s > stopped.compile_s


def test_ctrl_c_is_a_clean_end_too_and_the_handlers_come_back(tmp_path):
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    text = io.StringIO()
    result = train_toy(tmp_path, wrap=stop_at(2, signal.SIGINT), console=Console(file=text, width=200))
    assert (result.stopped_by, result.step) == ("SIGINT", 2)
    assert "stopped by SIGINT after step 2" in text.getvalue()
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_the_second_signal_acts_at_once(tmp_path):
    def twice():
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train_toy(tmp_path, wrap=lambda program: before_step(program, 2, twice))
    assert train_toy(tmp_path, epochs=4).finished


@pytest.mark.full
def test_eight_devices_then_four_then_one(whole, tmp_path):
    train_toy(tmp_path, devices=8, wrap=stop_at(10))
    train_toy(tmp_path, devices=4, strategy="shard_map", wrap=stop_at(10))
    result = train_toy(tmp_path, devices=1, strategy="pmap")
    assert result.step == STEPS
    rows, expected = rows_of(tmp_path), rows_of(whole[0])
    assert [row["step"] for row in rows] == [row["step"] for row in expected]
    assert rows[0] == expected[0]
    # Each strategy has its own noise key, so the rest agrees only if the noise is small.
    assert rows[-1]["train_loss"] == pytest.approx(expected[-1]["train_loss"], rel=0.05)


@pytest.mark.parametrize("strategy", thin(of_any_model(), KINDS[1:2]))
def test_every_strategy_resumes_to_its_own_bits(tmp_path, strategy):
    expected = train_toy(tmp_path / "whole", strategy=strategy, devices=2, epochs=1)
    train_toy(tmp_path / "cut", strategy=strategy, devices=2, epochs=1, wrap=stop_at(4))
    assert train_toy(tmp_path / "cut", strategy=strategy, devices=2, epochs=1).params_sha256 == expected.params_sha256


def test_it_stops_at_the_target_and_goes_on_when_the_target_grows(tmp_path):
    text = io.StringIO()
    first = train_toy(tmp_path, target=0.4, console=Console(file=text, width=200))
    assert first.reached and first.finished and first.step < STEPS
    assert "target 0.4 reached" in text.getvalue() and "s with compilation" in text.getvalue()
    more = train_toy(tmp_path, target=1.0, epochs=5)
    assert more.finished and not more.reached and more.step == 5 * STEPS_PER_EPOCH
    assert more.params_sha256 == train_toy(tmp_path / "at_once", epochs=5).params_sha256


def test_rows_past_the_checkpoint_and_a_cut_line_go(whole, tmp_path):
    train_toy(tmp_path, wrap=stop_at(STEPS_PER_EPOCH + 1))
    with open(tmp_path / "metrics.jsonl", "a") as file:
        file.write('{"epoch": 2, "step": 16, "test_accuracy": 0.5}\n{"epoch": 3, "st')
    train_toy(tmp_path)
    assert rows_of(tmp_path) == rows_of(whole[0])


def test_a_damaged_newest_checkpoint_is_said_and_the_one_before_is_used(whole, tmp_path):
    train_toy(tmp_path, wrap=stop_at(11))
    newest = tmp_path / "checkpoints" / "11"
    blob = max((path for path in newest.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    blob.write_bytes(blob.read_bytes()[:-9])
    text = io.StringIO()
    resumed = train_toy(tmp_path, console=Console(file=text, width=200))
    assert "11 is damaged" in text.getvalue() and "checkpoint at step 9" in text.getvalue()
    assert resumed.params_sha256 == whole[1].params_sha256
    assert rows_of(tmp_path) == rows_of(whole[0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learning_rate": 0.5}, "optimizer.learning_rate was 0.01 and is now 0.5"),
        ({"batch": 8}, "train.batch was 16 and is now 8"),
        ({"epochs": 3}, "train.epochs was 4 and is now 3, but may only grow"),
        ({"target": 0.9}, "train.target was 1.0 and is now 0.9, but may only grow"),
    ],
)
def test_a_folder_of_another_config_is_refused(whole, changes, message):
    with pytest.raises(UserError, match=message):
        train_toy(whole[0], **changes)


def test_settings_read_only_by_measuring_may_change(whole):
    measured = {"batch": 5, "scaling": "weak", "strategy": "all", "measure": {"rounds": 9}, "report": {"overlay": ""}}
    again = train_toy(whole[0], elsewhere=measured)
    assert again.was_finished and again.params_sha256 == whole[1].params_sha256
    train_toy(whole[0])
    with pytest.raises(UserError, match="batch_norm.momentum was None and is now 0.9"):
        train_toy(whole[0], elsewhere={"batch_norm": {"momentum": 0.9}})


def test_a_long_epoch_does_not_silence_a_log(tmp_path, monkeypatch):
    """An epoch may last for an hour, and it prints a line only at its end."""
    monkeypatch.setattr(progress, "SILENT_S", 0.02)
    text = io.StringIO()

    def wait():
        until = time.monotonic() + 10
        while f"s: step 1 of at most {STEPS_PER_EPOCH} (" not in text.getvalue():
            assert time.monotonic() < until, text.getvalue()
            time.sleep(0.01)

    console = Console(file=text, width=200)
    train_toy(tmp_path, epochs=1, wrap=lambda program: before_step(program, 2, wait), console=console)


def test_an_edited_experiment_is_refused(tmp_path):
    train_toy(tmp_path, wrap=stop_at(2))
    with pytest.raises(UserError, match="experiment file 'toy.py' has changed"):
        train_toy(tmp_path, session={"experiment_sha256": "0" * 64})
    assert train_toy(tmp_path, wrap=stop_at(2)).step == 4


def test_the_manifest_is_there_from_the_first_step_and_lists_every_start(tmp_path):
    def sessions():
        return json.loads((tmp_path / "manifest.json").read_text())["sessions"]

    found = []
    train_toy(tmp_path, wrap=lambda program: before_step(stop_at(3)(program), 1, lambda: found.extend(sessions())))
    assert [(s["devices"], s["strategy"], s["from_step"]) for s in found] == [(8, "jit_auto", 0)]
    newer = {"platform": "cpu", "devices": 8, "versions": {"jax": "99"}}
    train_toy(tmp_path, devices=2, strategy="pmap", session={"command": ["again"], "machine": newer}, wrap=stop_at(1))
    first, second = sessions()
    assert first == found[0]
    assert (second["devices"], second["strategy"], second["from_step"]) == (2, "pmap", 3)
    assert second["command"] == ["again"] and second["started"] >= first["started"]
    assert second["machine"] == {"versions.jax": "99"}
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["versions"]["jax"] != "99" and manifest["command"] == first["command"]


def test_a_start_says_where_it_runs_and_a_move_that_the_bits_may_differ(tmp_path):
    def said(**where):
        text = io.StringIO()
        train_toy(tmp_path, console=Console(file=text, width=200), wrap=stop_at(2), **where)
        return text.getvalue()

    assert "on 8 devices, strategy jit_auto" in said(devices=8)
    assert "bits may differ" not in said(devices=8)
    text = said(devices=1, strategy="shard_map")
    assert "on 1 device, strategy shard_map" in text
    assert "It was trained on 8 devices, strategy jit_auto: the final bits may differ" in text


def test_other_data_and_another_model_are_refused(whole):
    with pytest.raises(UserError, match="data 'clusters' have changed"):
        train_toy(whole[0], workload=toy_workload(lambda: clusters(seed=1)))
    with pytest.raises(UserError, match="another model or optimizer"):
        train_toy(whole[0], workload=toy_workload(hidden=16))


def test_a_folder_in_use_and_a_folder_of_measurements_are_refused(tmp_path):
    def again():
        with pytest.raises(UserError, match="another process is using"):
            train_toy(tmp_path / "used")

    train_toy(tmp_path / "used", epochs=1, wrap=lambda program: before_step(program, 1, again))
    (tmp_path / "measured").mkdir()
    (tmp_path / "measured" / "records.jsonl").touch()
    with pytest.raises(UserError, match="holds measurements"):
        train_toy(tmp_path / "measured")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch": 0}, "--config.train.batch=0 is too small: it must be at least 1"),
        ({"batch": 1000}, "--config.train.batch=1000 is more than the 136 examples"),
        ({"batch": 12}, "--config.train.batch=12 does not divide over 8 devices: use 16"),
        ({"epochs": 0}, "--config.train.epochs=0"),
        ({"target": 97.0}, "--config.train.target=97.0 is not an accuracy"),
        ({"keep": 0}, "--config.train.keep=0"),
        ({"checkpoint_every": -1}, "--config.train.checkpoint_every=-1"),
    ],
)
def test_bad_values_are_named(tmp_path, changes, message):
    with pytest.raises(UserError, match=message):
        train_toy(tmp_path, **changes)


def test_after_a_bad_value_the_same_folder_takes_a_good_one(tmp_path):
    with pytest.raises(UserError, match="does not divide"):
        train_toy(tmp_path, batch=12)
    assert train_toy(tmp_path, epochs=1).finished


def with_split(**changes):
    data = clusters()
    return lambda: Clusters({**data.train, **changes}, data.test)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "its TrainWorkload needs `data` to train on"),
        (with_split(x=np.zeros((136, 3), np.float32)), r"float32 of shape \(136, 3\): 'toy' takes .*\('N', 12\)"),
        (with_split(x=np.zeros((136, 12))), "float64"),
        (with_split(x=np.zeros((9, 12), np.float32)), "no common, positive length"),
        (lambda: Clusters({}, {}), "lack the field 'label'"),
    ],
)
def test_data_that_do_not_fit_are_named(tmp_path, data, message):
    with pytest.raises(UserError, match=message):
        train_toy(tmp_path, workload=toy_workload(data))


def test_a_loss_that_is_not_a_number_ends_the_training(tmp_path):
    bad = with_split(x=np.full((136, 12), np.nan, np.float32))
    with pytest.raises(UserError, match="loss became nan at step 1: the model or its data are at fault"):
        train_toy(tmp_path, workload=toy_workload(bad))


def test_a_training_that_diverges_later_names_the_learning_rate() -> None:
    means = EpochMeans()
    means.add(1, {"loss": jnp.float32(2.0)})
    means.add(2, {"loss": jnp.float32(np.inf)})
    with pytest.raises(Diverged, match="loss became inf at step 2: lower --config.optimizer.learning_rate"):
        means.add(3, {"loss": jnp.float32(1.0)})


def test_the_test_accuracy_is_exact_over_several_chunks(tmp_path, monkeypatch):
    whole = train_toy(tmp_path / "one", epochs=1)
    monkeypatch.setattr(metrics, "CHUNK", 7)
    assert train_toy(tmp_path / "many", epochs=1).score == whole.score
    assert (whole.score * 50) % 1 == pytest.approx(0)


def centred(model_state, x):
    """Right if x is above the given mean."""
    return {"accuracy": jnp.mean(x - model_state["mean"] > 0)}


def test_the_test_accuracy_is_that_of_inference_mode():
    """As with batch normalisation: centred by the mean of the batch, only half of these would be right."""

    def loss(params, model_state, batch, key):
        return jnp.zeros(()), (model_state, centred({"mean": jnp.mean(batch["x"])}, batch["x"]))

    workload = dataclasses.replace(
        toy_workload(), loss=loss, evaluate=lambda params, model_state, batch: centred(model_state, batch["x"])
    )
    state, test = {"mean": jnp.zeros(())}, {"x": np.array([4.0, 5.0, 6.0, 7.0], np.float32)}
    evaluator = Evaluator(workload, test, params={}, model_state=state, device=jax.devices()[0])
    assert evaluator({}, state) == {"accuracy": 1.0}


def test_state_without_evaluate_is_refused_and_no_state_needs_none(tmp_path):
    with pytest.raises(UserError, match="its TrainWorkload needs `evaluate`"):
        train_toy(tmp_path / "state", workload=dataclasses.replace(toy_workload(), evaluate=None))
    assert not (tmp_path / "state").exists()
    toy = toy_workload()
    stateless = dataclasses.replace(
        toy,
        evaluate=None,
        init=lambda key: (toy.init(key)[0], {}),
        loss=lambda params, _, batch, key: (
            (value := toy.loss(params, {"seen": 0}, batch, key))[0],
            ({}, value[1][1]),
        ),
    )
    test, params = clusters().test, toy.init(jax.random.PRNGKey(0))[0]
    evaluator = Evaluator(stateless, test, params=params, model_state={}, device=jax.devices()[0])
    assert sorted(evaluator(params, {})) == ["accuracy", "loss"]
    inspection.require_trainable(dataclasses.replace(stateless, data=clusters))


def test_an_evaluate_without_accuracy_is_named(tmp_path):
    blind = dataclasses.replace(toy_workload(), evaluate=lambda params, model_state, batch: {"loss": jnp.zeros(())})
    with pytest.raises(UserError, match=r"'accuracy' among the metrics of its evaluate, which are \['loss'\]"):
        train_toy(tmp_path, workload=blind)


def test_a_full_disk_is_said_where_rows_are_written(tmp_path, monkeypatch):
    class Full(io.StringIO):
        def flush(self):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with MetricLog(tmp_path, [], tensorboard=False) as log, monkeypatch.context() as patch:
        patch.setattr(log, "_file", Full())
        with pytest.raises(UserError, match=r"cannot write to .*No space left on device"):
            log.add({"epoch": 1, "step": 3})


@pytest.mark.parametrize(
    ("saved", "sentence"),
    [((), "stopped at once: .* continues from the start"), ((20, 30), "stopped at once: .* continues from .* step 30")],
)
def test_an_impatient_ctrl_c_says_what_is_kept(tmp_path, monkeypatch, saved, sentence):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    for step in saved:
        (tmp_path / "checkpoints" / str(step)).mkdir(parents=True)
    monkeypatch.setattr(run.manifest_lib, "probe", lambda platform: {"platform": "cpu", "cores": 2, "devices": 1})
    monkeypatch.setattr(run.start, "start", lambda platform, count, **about: jax.devices()[:count])
    monkeypatch.setattr("jaxbench.features.training.train.train", interrupted)
    config = compose("mlp", discovery.load_experiment("mlp"), discovery.load_preset("auto"))
    text = io.StringIO()
    assert run.train("mlp", config, tmp_path, Console(file=text, width=200)) == 130
    assert re.search(sentence, text.getvalue()) and "first step" not in text.getvalue()


def test_tensorboard_files_are_written_only_if_asked_for(whole, tmp_path):
    pytest.importorskip("tensorboardX")
    train_toy(tmp_path, epochs=1, tensorboard=True)
    assert list((tmp_path / "tensorboard").glob("events.out.tfevents.*"))
    assert not (whole[0] / "tensorboard").exists()


def test_tensorboard_asked_for_and_absent_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(UserError, match="tensorboardX, which is not installed"):
        train_toy(tmp_path, tensorboard=True)


def test_the_clock_counts_on_and_tells_compiling_apart(monkeypatch):
    now = iter([100.0, 101.0, 103.0, 110.0])
    monkeypatch.setattr(train_loop, "time", types.SimpleNamespace(perf_counter=lambda: next(now)))
    clock = train_loop.Clock(elapsed_s=50.0, compile_s=5.0)
    with clock.compiling():
        pass
    assert (clock.compile_s, clock.elapsed_s) == (7.0, 60.0)
