# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The figure of losses: each bar starts where the previous ends, down to the efficiency; and the page's sentences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fabricate_losses as fab
import matplotlib
import pytest
from fabricate_losses import Loss
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxbench.records.store import RunFolder
from jaxbench.report import findings, views
from jaxbench.report.drawing import canvas
from jaxbench.report.figures.training import draw_waterfall

LOSSES = {n: Loss(share=1 - 0.02 * n, machine=1 - 0.03 * n, communication=0.92) for n in (2, 4, 8)}


def found(path: Path, **facts: Any) -> findings.TrainingFindings:
    return findings.find(RunFolder(fab.folder(path, facts.pop("losses", LOSSES), **facts)))


def draw(run: findings.TrainingFindings) -> Figure:
    with canvas.style():
        figure = draw_waterfall(run)
    assert figure is not None
    return figure


def bars(axes: Axes) -> list[tuple[float, float]]:
    """(bottom, top) of each, from left to right."""
    return [(bar.get_y(), bar.get_y() + bar.get_height()) for bar in axes.patches]


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(matplotlib.text.Text)]


def test_the_steps_go_from_100_to_the_efficiency(tmp_path: Path) -> None:
    run = found(tmp_path, losses={2: LOSSES[2]}, noise=0.0005)
    figure = draw(run)
    (axes,) = figure.axes
    steps = bars(axes)
    assert steps[0][1] == 100 and [one[0] for one in steps[:-1]] == pytest.approx([one[1] for one in steps[1:]])
    assert steps[-1] == pytest.approx((0, 100 * LOSSES[2].efficiency), abs=0.2)
    assert {"−4", "−6", "−7", "83 %", "2 devices"} <= set(texts(figure))
    assert all(bar.get_hatch() for bar in axes.patches[:-1]), "colours survive black and white by their hatches"


def test_a_gain_in_one_panel_is_not_cut_off_by_the_other(tmp_path: Path) -> None:
    weak = {2: Loss(machine=0.75)}
    figure = draw(found(tmp_path, losses={2: Loss(share=1.3, machine=0.7)}, weak=weak, scalings=("strong", "weak")))
    for axes in figure.axes:
        assert axes.get_ylim()[1] > 130 > max(top for _, top in bars(figure.axes[1]))


def test_strong_and_weak_stand_side_by_side_and_strategies_below_each_other(tmp_path: Path) -> None:
    names = ("shard_map", "fsdp", "zero1", "pmap")
    figure = draw(found(tmp_path, strategies=names, scalings=("strong", "weak")))
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == [f"{name}, {scaling}" for name in names[:3] for scaling in ("strong", "weak")]
    assert "3 of 4 strategies, in the order of the table; the table has all" in "\n".join(texts(figure))


def test_a_gain_goes_up_and_what_is_unclear_has_a_question_mark(tmp_path: Path) -> None:
    figure = draw(found(tmp_path / "gain", losses={2: Loss(share=1.04, machine=0.8)}, noise=0.001))
    assert bars(figure.axes[0])[0] == pytest.approx((100, 104), abs=0.5) and "+4" in texts(figure)
    unclear = draw(found(tmp_path / "unclear", losses={2: Loss(machine=0.8)}, noise=0.05, drift=0.0))
    assert "?" in texts(unclear) and any("?: the interval contains 0" in text for text in texts(unclear))


def test_unmeasured_points_are_named(tmp_path: Path) -> None:
    figure = draw(found(tmp_path, without=("shard_map/strong/4/alone",)))
    assert any("shard_map, strong, 4 devices, alone (build: no such part)" in text for text in texts(figure))


def test_it_stands_below_the_scaling_figure_and_only_where_something_explains(tmp_path: Path) -> None:
    run = found(tmp_path, losses={2: LOSSES[2]}, peak=True)
    names = list(views.of(run))
    assert names.index("waterfall") == names.index("scaling") + 1
    sections = {section.heading: section.sentences for section in run.sections()}
    assert sections["Why not 100 %"][0].startswith("2 devices: 83")
    assert "Communication" in sections and sections["What would help"]
    assert "of a large product's rate here" in sections["Utilisation"][0]
    assert not any("No MFU" in sentence for sentence in sections["Utilisation"])
    assert [row["point"] for row in _lines(run)] == ["shard_map/strong/1", "shard_map/strong/2"]
    assert not run.shortfalls()


def _lines(run: findings.TrainingFindings) -> list[dict[str, Any]]:
    return [{"point": entry.point.point} for entry in run.entries()]
