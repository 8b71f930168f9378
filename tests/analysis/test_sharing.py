# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Concurrent trainings with known times: total throughput, time of each, fairness, figure and sentences."""

from pathlib import Path

import fabricate_arms as fab
import numpy as np
import pytest

from jaxbench.analysis import lever_results
from jaxbench.records.store import RunFolder
from jaxbench.report import lever_findings, views
from jaxbench.report.drawing import canvas


@pytest.fixture
def found(tmp_path: Path) -> lever_findings.LeverFindings:
    return lever_findings.find(RunFolder(fab.folder(tmp_path / "run", "sharing")))


def test_jains_index() -> None:
    rates = np.array([[1.0, 1.0, 3.0], [1.0, 0.0, 1.0]])
    assert lever_results.jain(rates).tolist() == pytest.approx([1, 0.5, 16 / 20])


def test_the_throughput_is_of_all_and_the_time_of_the_slowest(found: lever_findings.LeverFindings) -> None:
    alone, both, four = found.arms
    assert both.ratio.value == pytest.approx(1.6, rel=0.02)
    assert both.speedup.value == pytest.approx(2 / 1.6, rel=0.02) and both.verdict == "faster"
    rate = both.timing.examples_per_s.value / alone.timing.examples_per_s.value
    assert rate == pytest.approx(2 / 1.6, rel=0.02)
    assert both.row.use.flop_per_s / alone.row.use.flop_per_s == pytest.approx(rate)
    shared = lever_results.sharing_of(both.row)
    assert lever_results.sharing_of(alone.row) is None and shared is not None
    assert shared.relative == pytest.approx((1, 0.75))
    assert shared.fairness.value == pytest.approx((1 + 4 / 3) ** 2 / (2 * (1 + 16 / 9)))
    assert four.speedup.value == pytest.approx(1, rel=0.02) and lever_results.sharing_of(four.row).fairness.value == 1  # type: ignore[union-attr]
    assert found.entries()[1].stragglers is None, "each waits for nobody"


def test_it_is_said_and_drawn(found: lever_findings.LeverFindings) -> None:
    said, _ = found.headlines
    assert said.startswith("2 trainings at once: 1.2") and said.endswith("index of their rates is 0.980.")
    with canvas.style():
        figure = views.figures()["sharing"].draw(found)
    assert figure is not None and [axes.get_xlabel() for axes in figure.axes] == 3 * ["trainings at once"]
    dots = [line for line in figure.axes[1].lines if line.get_marker() == "."]
    assert [len(line.get_ydata()) for line in dots] == [2, 4]
    assert list(dots[0].get_ydata()) == pytest.approx([1.6, 1.2], rel=0.02)


def test_trainings_with_and_without_mps_are_two_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(fab.RUNS, "sharing", (fab.sharing_mps, ["trainings"]))
    run = lever_findings.find(RunFolder(fab.folder(tmp_path / "run", "sharing")))
    with canvas.style():
        figure = views.figures()["sharing"].draw(run)
    assert figure is not None
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()][:2] == ["without MPS", "with MPS"]
    # Of the times over alone: 1, 1.6 and 4 without, 1.2 and 2 with.
    joined = [line for line in figure.axes[1].lines if line.get_linestyle() == "-" and len(line.get_ydata()) > 1]
    times = [[round(float(y), 1) for y in line.get_ydata()] for line in joined]
    assert [1.0, 1.6, 4.0] in times and [1.2, 2.0] in times
