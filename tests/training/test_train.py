# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A training ends with the same bits however often it was interrupted, and says plainly what it will not do."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import signal
import sys

import numpy as np
import pytest
from rich.console import Console
from train_cases import STEPS_PER_EPOCH, Clusters, before_step, clusters, toy_workload, train_toy

from jaxbench.errors import UserError
from jaxbench.parallel import strategies
from jaxbench.training import loop as train_loop

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
    assert rows[-1]["test_accuracy"] == result.test_accuracy > rows[0]["test_accuracy"]
    assert rows[-1]["train_loss"] < rows[0]["train_loss"]
    assert 0 < result.compile_s < result.elapsed_s
    assert sorted(int(path.name) for path in (folder / "checkpoints").iterdir()) == [27, 30, 32]
    assert json.loads((folder / "config.json").read_text())["train"]["epochs"] == 4


def test_a_finished_training_says_so_and_gives_the_same_hash(whole):
    folder, result = whole
    text = io.StringIO()
    again = train_toy(folder, wrap=None, console=Console(file=text, width=200))  # the program is not even built
    assert again == dataclasses.replace(result, was_finished=True)
    assert "was finished before" in text.getvalue()


@pytest.mark.parametrize("signals", [(1,), (STEPS_PER_EPOCH,), (5, 7, 9)])
def test_a_stopped_training_continues_to_the_same_bits(whole, tmp_path, signals):
    """Before the first checkpoint is due, at the end of an epoch, and several times."""
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
    assert "stopped by SIGINT after step 2, which is saved: the same command continues." in text.getvalue()
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_the_second_signal_acts_at_once(tmp_path):
    def twice():
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train_toy(tmp_path, wrap=lambda program: before_step(program, 2, twice))
    assert train_toy(tmp_path, epochs=4).finished


def test_eight_devices_then_four_then_one(whole, tmp_path):
    train_toy(tmp_path, devices=8, wrap=stop_at(10))
    train_toy(tmp_path, devices=4, strategy="shard_map", wrap=stop_at(10))
    result = train_toy(tmp_path, devices=1, strategy="pmap")
    assert result.step == STEPS
    rows, expected = rows_of(tmp_path), rows_of(whole[0])
    assert [row["step"] for row in rows] == [row["step"] for row in expected]
    assert rows[0] == expected[0]
    # The noise key of a strategy is its own, so the rest agrees only as far as the noise is small.
    assert rows[-1]["train_loss"] == pytest.approx(expected[-1]["train_loss"], rel=0.05)


@pytest.mark.parametrize("strategy", strategies())
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
    assert len(resumed.notes) == 1 and "11 is damaged" in resumed.notes[0]
    assert "11 is damaged" in text.getvalue() and "continuing from the checkpoint of step 9" in text.getvalue()
    assert resumed.params_sha256 == whole[1].params_sha256
    assert rows_of(tmp_path) == rows_of(whole[0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learning_rate": 0.5}, "optimizer.learning_rate was 0.01 and is now 0.5"),
        ({"batch": 8}, "train.batch was 16 and is now 8"),
        ({"epochs": 3}, "train.epochs was 4 and is now 3, it may only grow"),
        ({"target": 0.9}, "train.target was 1.0 and is now 0.9, it may only grow"),
    ],
)
def test_a_folder_of_another_config_is_refused(whole, changes, message):
    with pytest.raises(UserError, match=message):
        train_toy(whole[0], **changes)


def test_other_data_and_another_model_are_refused(whole):
    with pytest.raises(UserError, match="data 'clusters' have changed"):
        train_toy(whole[0], workload=toy_workload(lambda: clusters(seed=1)))
    with pytest.raises(UserError, match="another model or optimizer"):
        train_toy(whole[0], workload=toy_workload(hidden=16))


def test_a_folder_in_use_and_a_folder_of_measurements_are_refused(tmp_path):
    def again():
        with pytest.raises(UserError, match="another training is running"):
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
        ({"batch": 12}, "--config.train.batch=12 does not divide over 8 devices: use a multiple, such as 16"),
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
        (None, "'toy' has no data to train on"),
        (with_split(x=np.zeros((136, 3), np.float32)), r"float32 of shape \(136, 3\): 'toy' takes .*\('N', 12\)"),
        (with_split(x=np.zeros((136, 12))), "float64"),
        (with_split(x=np.zeros((9, 12), np.float32)), "no common, positive length"),
        (lambda: Clusters({}, {}), "has no 'label'"),
    ],
)
def test_data_that_do_not_fit_are_named(tmp_path, data, message):
    with pytest.raises(UserError, match=message):
        train_toy(tmp_path, workload=toy_workload(data))


def test_a_loss_that_is_not_a_number_ends_the_training(tmp_path):
    bad = with_split(x=np.full((136, 12), np.nan, np.float32))
    with pytest.raises(UserError, match="loss became nan at step 1: lower --config.optimizer.learning_rate"):
        train_toy(tmp_path, workload=toy_workload(bad))


def test_the_test_accuracy_is_exact_over_several_chunks(tmp_path, monkeypatch):
    from jaxbench.training import evaluate

    whole = train_toy(tmp_path / "one", epochs=1)
    monkeypatch.setattr(evaluate, "CHUNK", 7)
    assert train_toy(tmp_path / "many", epochs=1).test_accuracy == whole.test_accuracy
    assert (whole.test_accuracy * 50) % 1 == pytest.approx(0)


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
    monkeypatch.setattr(train_loop.time, "perf_counter", lambda: next(now))
    clock = train_loop.Clock(elapsed_s=50.0, compile_s=5.0)
    with clock.compiling():
        pass
    assert (clock.compile_s, clock.elapsed_s) == (7.0, 60.0)
