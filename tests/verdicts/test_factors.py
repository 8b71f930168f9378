# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Two runs with ablations: their factors side by side, and the factors that made B faster."""

from __future__ import annotations

import io
import json
from pathlib import Path

import fabricate
import fabricate_losses as fab
import jsonschema
import pytest
from fabricate_losses import Loss
from rich.console import Console

from jaxbench.report.drawing import canvas
from jaxbench.report.figures import factors as side_by_side
from jaxbench.report.verdicts import data
from jaxbench.report.verdicts.markdown import markdown
from jaxbench.report.verdicts.terminal import show
from jaxbench.verdicts import comparison
from jaxbench.verdicts.comparison import Comparison
from jaxbench.verdicts.judge import METRICS

USUAL = Loss(share=0.97, machine=0.91, communication=0.7)


def compared(path: Path, b: Loss, *, strategy: str = "fsdp", margin: float = 0.02) -> Comparison:
    one = fab.folder(path / "a", {2: USUAL}, noise=0.004)
    two = fab.folder(path / "b", {2: b}, strategies=(strategy,), noise=0.005)
    across = () if strategy == "shard_map" else ("strategy",)
    return comparison.compare(one, two, METRICS["step_s"], margin=margin, across=across)


def test_the_factor_that_made_b_faster_is_named(tmp_path: Path) -> None:
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


def test_a_slower_b_has_its_factor_too(tmp_path: Path) -> None:
    found = compared(tmp_path, Loss(share=0.97, machine=0.6, communication=0.72), strategy="shard_map")
    (said,) = comparison.factor_sentences(found.factors, found.answers.points)
    assert said.startswith(
        "shard_map/strong/2: B is slower mostly because of contention (this factor alone makes B 1.5x"[:-1]
    )


def test_both_tables_are_shown(tmp_path: Path) -> None:
    found, out = compared(tmp_path, Loss(share=0.97, machine=0.93, communication=0.98)), io.StringIO()
    show(found, Console(file=out, width=110))
    for text in (out.getvalue(), markdown(found, "a against b")):
        assert (
            "B faster by it" in text
            and "smaller per-device batch" in text
            and "mostly because of communication" in text
        )


def test_the_factors_are_in_the_json_too(tmp_path: Path) -> None:
    found = compared(tmp_path, Loss(share=0.97, machine=0.93, communication=0.98))
    document = data.as_json(found)
    jsonschema.validate(json.loads(json.dumps(document)), data.json_schema())
    told = {each["name"]: each for each in document["factors"]}
    assert list(told) == [change.name for change in found.factors]
    assert told["communication"]["point"] == "strong/2"
    assert told["communication"]["a"]["value"] == pytest.approx(0.7, rel=0.02)
    assert told["communication"]["b"]["value"] == pytest.approx(0.98, rel=0.02)
    assert 1 < told["communication"]["faster"]["lo"] < told["communication"]["faster"]["hi"]


def test_both_waterfalls_are_drawn_side_by_side(tmp_path: Path) -> None:
    one = fab.folder(tmp_path / "a", {2: USUAL, 4: USUAL}, scalings=("strong", "weak"))
    losses, both = {2: Loss(machine=0.8), 4: USUAL}, ("strong", "weak")
    two = fab.folder(tmp_path / "b", losses, strategies=("fsdp",), scalings=both, noise=0.003)
    found = comparison.compare(one, two, METRICS["step_s"], margin=0.02, across=("strategy",))
    with canvas.style():
        figure = side_by_side.draw(found)
    assert figure is not None
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
    assert found.factors == () and "B faster by it" not in out.getvalue() and side_by_side.draw(found) is None
