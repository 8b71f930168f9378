# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Training to a target of any metric of the test set: a loss, which must fall, or one that must rise."""

from __future__ import annotations

import json
import re
import subprocess
import time
from pathlib import Path

import pytest
from doorway import ROOT, command, environment, jaxbench
from train_cases import train_toy

from jaxbench.errors import UserError
from jaxbench.records import trainings

SMALL = {"layers": 1, "width": 16, "heads": 2, "context": 16}
LANGUAGE = (
    *("train", "gpt", "--config.mesh.devices=1", "--config.train.metric=loss", "--config.train.target=4.2"),
    *(f"--config.model.{name}={value}" for name, value in SMALL.items()),
    *("--config.train.batch=256", "--config.train.epochs=1", "--config.train.checkpoint_every=5"),
    "--config.train.evaluate_every=10",
)


def rows(folder: Path) -> list[dict[str, float]]:
    """The learning curve, without times."""
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [{name: x for name, x in json.loads(line).items() if not name.endswith("_s")} for line in lines]


def test_a_regression_trains_to_a_loss(tmp_path: Path) -> None:
    words = ("train", "regression", "--config.mesh.devices=1", "--config.train.metric=loss", "--config.train.epochs=2")
    done = jaxbench(*words, "--config.train.target=0.3", f"--workdir={tmp_path / 'reached'}")
    assert done.returncode == 0, done.stderr
    assert "until a test loss of 0.3" in done.stdout and "target 0.3 reached: test loss 0." in done.stdout
    done = jaxbench(*words, "--config.train.target=1e-9", f"--workdir={tmp_path / 'not'}")
    assert done.returncode == 1 and "target 1e-09 not reached: test loss" in done.stdout
    assert len(rows(tmp_path / "not")) == 2


def test_a_language_model_trains_to_a_loss_and_a_kill_changes_no_bit(tmp_path: Path) -> None:
    whole = jaxbench(*LANGUAGE, f"--workdir={tmp_path / 'whole'}")
    assert whole.returncode == 0, whole.stderr
    assert rows(tmp_path / "whole")[-1]["test_loss"] <= 4.2 < rows(tmp_path / "whole")[-2]["test_loss"]

    folder = tmp_path / "killed"
    with subprocess.Popen(
        command(*LANGUAGE, f"--workdir={folder}"), cwd=ROOT, env=environment(), stdout=subprocess.DEVNULL
    ) as process:
        limit = time.monotonic() + 120
        while not (folder / "metrics.jsonl").exists() or not (folder / "metrics.jsonl").read_text():
            assert process.poll() is None and time.monotonic() < limit
            time.sleep(0.01)
        process.kill()
    again = jaxbench(*LANGUAGE, f"--workdir={folder}")
    assert again.returncode == 0, again.stderr
    (expected,) = re.findall("params_sha256: .*", whole.stdout)
    assert expected in again.stdout and rows(folder) == rows(tmp_path / "whole")


@pytest.mark.parametrize(
    ("changes", "reached"),
    [
        ({"metric": "loss", "target": 100.0}, True),
        ({"metric": "loss", "target": 1e-9}, False),
        ({"metric": "loss", "target": 1e-9, "mode": "max"}, True),
        ({"metric": "accuracy", "target": 0.01}, True),
        ({"metric": "accuracy", "target": 1.0, "mode": "min"}, True),
    ],
)
def test_the_mode_says_which_side_of_the_target_is_reached(changes, reached: bool, tmp_path: Path) -> None:
    result = train_toy(tmp_path, devices=1, epochs=1, **changes)
    assert result.reached == reached
    assert (trainings.read_curve(tmp_path).at_target() is not None) == reached


def test_an_unknown_metric_is_named_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"'mae' among the metrics .* \(or train to another: --config.train.metric="):
        train_toy(tmp_path, devices=1, epochs=1, metric="mae")


def test_a_training_goes_on_to_a_harder_target_only(tmp_path: Path) -> None:
    train_toy(tmp_path, devices=1, epochs=1, metric="loss", target=1.0)
    with pytest.raises(UserError, match=r"train.target was 1.0 and is now 2.0, but may only fall"):
        train_toy(tmp_path, devices=1, epochs=1, metric="loss", target=2.0)
    assert train_toy(tmp_path, devices=1, epochs=1, metric="loss", target=0.001).step >= 1
    with pytest.raises(UserError, match=r"train.metric was 'loss' and is now 'accuracy'"):
        train_toy(tmp_path, devices=1, epochs=1, metric="accuracy", target=0.001)
