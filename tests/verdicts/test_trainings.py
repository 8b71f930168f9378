# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Which of two trainings reaches its target sooner, and when this is undecided."""

from __future__ import annotations

import json
import math

import pytest

from jaxbench.errors import UserError
from jaxbench.records import trainings
from jaxbench.records.trainings import LearningCurve
from jaxbench.verdicts import comparison
from jaxbench.verdicts.judge import CANNOT_TELL, FASTER, SLOWER


def side(*seconds: float, reached: bool = True, target: float = 0.9) -> list[LearningCurve]:
    """Seeds with these times to the target, or with these times without reaching it."""
    return [
        LearningCurve(
            name=f"seed{seed}", experiment="mlp", batch=10, target=target, seed=seed,
            rows=(
                {"step": 5, "test_accuracy": 0.5, "elapsed_s": 1.5, "compile_s": 1.0},
                {"step": 50, "test_accuracy": 0.95 if reached else 0.8, "elapsed_s": 1 + each, "compile_s": 1.0},
            ),
        ) for seed, each in enumerate(seconds)
    ]  # fmt: skip


def test_three_seeds_that_agree_give_an_answer_with_its_interval():
    answer, steps = comparison.compare_trainings(side(10, 11, 10.5), side(5, 5.5, 5.2), margin=0.02)
    assert answer.verdict == FASTER and "B reaches the target sooner" in answer.sentence
    found = answer.times.estimate()
    assert found.lo < found.value < found.hi < 1 and found.value == pytest.approx(0.5, rel=0.02)
    assert steps.a == steps.b == pytest.approx(50)
    assert comparison.compare_trainings(side(5, 5.5, 5.2), side(10, 11, 10.5), margin=0.02)[0].verdict == SLOWER


def test_welchs_interval_of_two_seeds_a_side():
    answer, _ = comparison.compare_trainings(side(1, math.e), side(math.e**3, math.e**4), margin=0.02)
    assert answer.times.log == pytest.approx(3) and answer.times.se == pytest.approx(math.sqrt(0.5))
    assert answer.times.df == pytest.approx(2) and answer.verdict == CANNOT_TELL  # 4.30 x 0.71 > 3


def test_one_seed_cannot_tell():
    answer, _ = comparison.compare_trainings(side(10), side(1), margin=0.02)
    assert answer.verdict == CANNOT_TELL and "one seed does not show how much seeds differ" in answer.sentence


def test_a_seed_that_never_arrives_can_only_lose():
    lost = side(10, 11, 10.5, reached=False)
    answer, _ = comparison.compare_trainings(side(5, 5.5, 5.2), lost, margin=0.02)
    assert answer.verdict == SLOWER and "B at least" in answer.sentence and "[" not in answer.sentence
    answer, _ = comparison.compare_trainings(side(20, 21, 20.5), lost, margin=0.02)
    assert answer.verdict == CANNOT_TELL and "a seed did not reach it" in answer.sentence


def test_different_targets_answer_no_question():
    with pytest.raises(UserError, match=r"different targets, accuracy 0.9 and accuracy 0.95: give equal ones"):
        comparison.compare_trainings(side(1), side(1, target=0.95), margin=0.02)


def test_folders_of_trainings(tmp_path):
    for seed in (0, 1):
        one = tmp_path / f"seed{seed}"
        one.mkdir()
        row = {"step": 3, "test_accuracy": 0.95, "elapsed_s": 2.0, "compile_s": 0.5}
        (one / "metrics.jsonl").write_text(json.dumps(row) + "\n" + '{"step": 6, "te')  # the last line was cut off
        train = {"batch": 10, "target": 0.9}
        (one / "config.json").write_text(json.dumps({"experiment": "mlp", "seed": seed, "train": train}))
    found = trainings.read_curves(tmp_path)
    assert [one.seed for one in found] == [0, 1] and found[0].at_target()["step"] == 3
    assert found[0].series("test_accuracy", "examples") == ([30.0], [0.95])
    assert found[0].series("test_accuracy", "seconds") == ([1.5], [0.95])
    (tmp_path / "seed1" / "config.json").write_text(
        '{"experiment": "cnn", "seed": 1, "train": {"batch": 1, "target": 1}}'
    )
    with pytest.raises(UserError, match="differ in model, batch or target"):
        trainings.read_curves(tmp_path)
    (tmp_path / "seed0" / "metrics.jsonl").write_text("nonsense\n")
    with pytest.raises(UserError, match="line 1 is damaged"):
        trainings.read_curve(tmp_path / "seed0")
    with pytest.raises(UserError, match=r"has no metrics.jsonl: give the folder of a 'jaxbench train'"):
        trainings.read_curves(tmp_path / "nowhere")
