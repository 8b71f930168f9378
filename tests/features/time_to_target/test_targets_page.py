# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The page and the table of trainings to a target, and the curves of a training."""

from __future__ import annotations

import csv
import dataclasses
import io

import pytest
from rich.console import Console

from jaxbench.errors import UserError
from jaxbench.features.time_to_target import page as targets
from jaxbench.features.training import trainings
from jaxbench.features.training.figures import draw_learning
from jaxbench.features.training.trainings import LearningCurve, Trained
from jaxbench.report.drawing import canvas


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


def test_the_page_says_knee_noise_scale_and_what_was_not_reached(folder):
    text = io.StringIO()
    targets.write(folder, Console(file=text, width=120))
    said = " ".join(text.getvalue().split())
    for words in (
        "up to a knee of about 100",
        "gradient noise scale is 91",
        "knee over noise scale is 1.1",
        "batch 512, 1 device: 1 of 1 seeds did not reach it",
        "1 of them diverged",
        "The grid of the tuned learning rates",
    ):
        assert words in said, words
    page = (folder / targets.PAGE).read_text()
    assert "<svg" in page and "at least 2390" in page and "Gradient noise scale" in page
    assert (folder / "figures" / "targets.svg").exists()


def test_the_table_has_the_columns_that_others_read(folder):
    targets.write(folder)
    with open(folder / targets.CSV) as file:
        rows = list(csv.DictReader(file))
    first = "model,batch,devices,seed,learning_rate,rule,steps,reached,accuracy,noise_scale,seconds"
    assert list(rows[0])[:11] == first.split(",")
    assert rows[0]["seconds"] == "270" and rows[0]["noise_scale"] == "90" and rows[9]["reached"] == "false"
    assert [
        trainings.parse_trained(dataclasses.asdict(one)) for one in trainings.read_trained(folder)
    ] == trainings.read_trained(folder)


def test_a_damaged_file_and_none(folder, tmp_path):
    path = folder / trainings.TARGETS
    path.write_text(path.read_text() + '{"model": 3}\n')
    with pytest.raises(UserError, match=r"targets.jsonl, line 12 is damaged \(model: 3"):
        targets.write(folder)
    with pytest.raises(UserError, match=r"has no targets.jsonl: give the folder"):
        targets.write(tmp_path / "other")


def test_the_curves_of_a_training_show_each_row():
    rows = tuple(
        {"step": 10 * n, "test_accuracy": 0.5 + n / 10, "test_loss": 1 / n, "train_loss": 2 / n, "elapsed_s": n,
         "compile_s": 0.5} for n in (1, 2, 3)
    )  # fmt: skip
    one = LearningCurve(name="a", experiment="mlp", batch=8, target=0.75, seed=0, rows=rows)
    drawn = []
    canvas.render(lambda: drawn.append(draw_learning({"a": [one]}, title="t")) or drawn[0])
    loss, accuracy = drawn[0].axes[1], drawn[0].axes[4]  # over examples
    assert [list(line.get_ydata()) for line in loss.lines] == [[2, 1, 2 / 3], [1, 1 / 2, 1 / 3]]
    assert list(accuracy.lines[0].get_xdata()) == [80, 160, 240] and accuracy.lines[1].get_ydata()[0] == 0.75
    assert draw_learning({"a": [dataclasses.replace(one, rows=())]}, title="t") is None


def test_energy_and_price_are_the_last_columns_and_empty_where_unknown(folder):
    targets.write(folder)
    with open(folder / targets.CSV) as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0])[-3:] == ["joules", "price_per_hour", "cost"]
    assert {rows[0][name] for name in ("joules", "price_per_hour", "cost")} == {""}, "never 0"
    assert "joules" not in (folder / targets.PAGE).read_text().partition("<svg")[0]

    known = [dataclasses.replace(made(8, seed), joules=500.0 * 2**seed, price_per_hour=2.0) for seed in (0, 1)]
    trainings.write_trained(folder, [*known, dataclasses.replace(made(32, 0, reached=False), joules=70.0)])
    targets.write(folder)
    with open(folder / targets.CSV) as file:
        first, second, censored = csv.DictReader(file)
    assert (first["joules"], first["price_per_hour"], first["cost"]) == ("500", "2", "0.15"), "270 s at 2 an hour"
    assert (second["joules"], censored["joules"], censored["cost"]) == ("1000", "70", "")
    page = (folder / targets.PAGE).read_text()
    assert "707 [" in page and "at least 70" in page, "the geometric mean of 500 and 1,000, and a lower limit"


def test_a_line_of_an_older_run_has_neither_energy_nor_price(folder):
    line = dataclasses.asdict(made(8, 0))
    del line["joules"], line["price_per_hour"]
    one = trainings.parse_trained(line)
    assert one == made(8, 0) and one.cost is None
