# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Two runs with ablations and the factors that made B faster; which of two trainings reaches its target sooner."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path

import fabricate
import fabricate_losses as fab
import pytest
from fabricate_losses import Loss
from report.runs import drawn
from rich.console import Console

from jaxbench.errors import UserError
from jaxbench.features.comparison import comparison
from jaxbench.features.comparison import page as report
from jaxbench.features.comparison.comparison import Comparison
from jaxbench.features.comparison.figures import draw_factors
from jaxbench.features.comparison.judge import CANNOT_TELL, FASTER, METRICS, SLOWER
from jaxbench.features.comparison.page import markdown, show
from jaxbench.features.training import trainings
from jaxbench.features.training.trainings import LearningCurve

USUAL = Loss(share=0.97, machine=0.91, communication=0.7)


def compared(path: Path, b: Loss, *, strategy: str = "fsdp", margin: float = 0.02) -> Comparison:
    one = fab.folder(path / "a", {2: USUAL}, noise=0.004)
    two = fab.folder(path / "b", {2: b}, strategies=(strategy,), noise=0.005)
    across = () if strategy == "shard_map" else ("strategy",)
    return comparison.compare(one, two, METRICS["step_s"], margin=margin, across=across)


def test_the_factor_that_made_b_faster_is_named_in_tables_and_json(tmp_path: Path) -> None:
    found = compared(tmp_path, Loss(share=0.97, machine=0.93, communication=0.98))
    names = [change.name for change in found.factors]
    assert names == ["one device", "smaller share", "shared machine", "communication"]
    changes = {change.name: change for change in found.factors}
    assert changes["communication"].faster.value == pytest.approx(1.4, rel=0.02) and changes["communication"].resolved
    assert not changes["smaller share"].resolved
    (said,) = comparison.factor_sentences(found.factors, found.answers.points)
    assert said.startswith("strong/2: B is faster mostly because of communication (this factor alone makes B 1.4")
    product = 1.0
    for change in found.factors:
        product *= change.faster.value
    (answer,) = (point for point in found.answers.points if point.name == "strong/2")
    assert product == pytest.approx(1 / answer.ratio.value, rel=1e-6)
    out = io.StringIO()
    show(found, Console(file=out, width=110))
    for text in (out.getvalue(), markdown(found, "a against b")):
        for words in ("B faster by it", "smaller per-device batch", "mostly because of communication"):
            assert words in text
    document = report.as_json(found)
    told = {each["name"]: each for each in document["factors"]}
    assert list(told) == [change.name for change in found.factors]
    assert told["communication"]["point"] == "strong/2"
    assert told["communication"]["a"]["value"] == pytest.approx(0.7, rel=0.02)
    assert told["communication"]["b"]["value"] == pytest.approx(0.98, rel=0.02)
    assert 1 < told["communication"]["faster"]["lo"] < told["communication"]["faster"]["hi"]


def test_a_slower_b_has_its_factor_too(tmp_path: Path) -> None:
    found = compared(tmp_path, Loss(share=0.97, machine=0.6, communication=0.72), strategy="shard_map")
    (said,) = comparison.factor_sentences(found.factors, found.answers.points)
    assert said.startswith(
        "shard_map/strong/2: B is slower mostly because of contention (this factor alone makes B 1.5"
    )


def test_both_waterfalls_are_drawn_side_by_side(tmp_path: Path) -> None:
    one = fab.folder(tmp_path / "a", {2: USUAL, 4: USUAL}, scalings=("strong", "weak"))
    losses, both = {2: Loss(machine=0.8), 4: USUAL}, ("strong", "weak")
    two = fab.folder(tmp_path / "b", losses, strategies=("fsdp",), scalings=both, noise=0.003)
    found = comparison.compare(one, two, METRICS["step_s"], margin=0.02, across=("strategy",))
    figure = drawn(draw_factors, found)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["A: shard_map strong", "B: fsdp strong", "A: shard_map weak", "B: fsdp weak"]
    bars = [[patch.get_height() for patch in axes.patches] for axes in figure.axes]
    for pair in found.waterfalls:
        for side, one_of in ((0, pair.a), (1, pair.b)):
            place = side + 2 * (one_of.point.scaling == "weak")
            assert any(height == pytest.approx(100 * one_of.efficiency.value) for height in bars[place])


def test_runs_without_such_points_have_no_table(tmp_path: Path) -> None:
    one, two = (fabricate.run_folder(tmp_path / name, seed=seed) for seed, name in enumerate("ab"))
    found, out = comparison.compare(one, two, METRICS["step_s"], margin=0.02), io.StringIO()
    show(found, Console(file=out, width=110))
    assert found.factors == () and "B faster by it" not in out.getvalue() and draw_factors(found) is None


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


def test_welchs_interval_of_two_seeds_a_side_and_one_seed_or_different_targets_cannot_tell():
    answer, _ = comparison.compare_trainings(side(1, math.e), side(math.e**3, math.e**4), margin=0.02)
    assert answer.times.log == pytest.approx(3) and answer.times.se == pytest.approx(math.sqrt(0.5))
    assert answer.times.df == pytest.approx(2) and answer.verdict == CANNOT_TELL  # 4.30 x 0.71 > 3
    answer, _ = comparison.compare_trainings(side(10), side(1), margin=0.02)
    assert answer.verdict == CANNOT_TELL and "one seed does not show how much seeds differ" in answer.sentence
    with pytest.raises(UserError, match=r"different targets, accuracy 0.9 and accuracy 0.95: give equal ones"):
        comparison.compare_trainings(side(1), side(1, target=0.95), margin=0.02)


def test_a_seed_that_never_arrives_can_only_lose():
    lost = side(10, 11, 10.5, reached=False)
    answer, _ = comparison.compare_trainings(side(5, 5.5, 5.2), lost, margin=0.02)
    assert answer.verdict == SLOWER and "B at least" in answer.sentence and "[" not in answer.sentence
    answer, _ = comparison.compare_trainings(side(20, 21, 20.5), lost, margin=0.02)
    assert answer.verdict == CANNOT_TELL and "a seed did not reach it" in answer.sentence


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
    other = '{"experiment": "cnn", "seed": 1, "train": {"batch": 1, "target": 1}}'
    (tmp_path / "seed1" / "config.json").write_text(other)
    with pytest.raises(UserError, match="differ in model, batch or target"):
        trainings.read_curves(tmp_path)
    (tmp_path / "seed0" / "metrics.jsonl").write_text("nonsense\n")
    with pytest.raises(UserError, match="line 1 is damaged"):
        trainings.read_curve(tmp_path / "seed0")
    with pytest.raises(UserError, match=r"has no metrics.jsonl: give the folder of a 'jaxbench train'"):
        trainings.read_curves(tmp_path / "nowhere")
