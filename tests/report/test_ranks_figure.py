# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The figure of processes and rounds: a dark row for a slow process, no figure for one process; and the columns."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import fabricate_losses
import fabricate_ranks as fab
import matplotlib
import pytest
from matplotlib.figure import Figure

from jaxbench.records.store import RunFolder
from jaxbench.report import findings, views
from jaxbench.report.drawing import canvas
from jaxbench.report.figures import ranks


def found(path: Path, slower: tuple[float, ...], **facts: Any) -> findings.TrainingFindings:
    return findings.find(RunFolder(fab.folder(path, slower, **facts)))


def draw(run: findings.TrainingFindings) -> Figure:
    with canvas.style():
        figure = ranks.draw(run)
    assert figure is not None
    return figure


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(matplotlib.text.Text)]


@pytest.mark.parametrize("count", [2, 8])
def test_the_row_of_a_slow_process_is_dark(tmp_path: Path, count: int) -> None:
    slower = (1.0, 1.3, *(1.0,) * (count - 2))
    run = found(tmp_path, slower)
    assert "ranks" in views.of(run)
    step, local = draw(run).axes
    assert step.get_title(loc="left") == f"shard_map, strong, {count} devices, whole step"
    assert local.get_title(loc="left").startswith("without communication: 1 is slow, 1.")
    for axes in (step, local):
        assert axes.collections[0].get_array().shape == (count, 10)
    shades = local.collections[0].get_array()
    assert shades[1].min() > 0.1 > max(shades[other].max() for other in range(count) if other != 1)
    assert {int(line.get_ydata()[0]) for line in local.lines if line.get_marker() == "o"} == {1}


def test_starts_are_marked_and_many_processes_fit(tmp_path: Path) -> None:
    figure = draw(found(tmp_path, (1.0,) * 40, starts=2, local=False))
    (axes,) = figure.axes
    assert [line.get_xdata()[0] for line in axes.lines if line.get_marker() != "o"] == [5.5]
    assert "vertical line: the processes were restarted" in "\n".join(texts(figure))
    assert axes.get_title(loc="left").endswith("whole step: none is last")
    assert len(axes.get_yticks()) <= 16 and not axes.texts, "numbers do not fit"


def test_one_process_has_no_figure(tmp_path: Path) -> None:
    folder = fabricate_losses.folder(tmp_path, {2: fabricate_losses.Loss()})
    assert ranks.draw(findings.find(RunFolder(folder))) is None


def test_the_page_says_who_is_slow_and_the_file_has_it(tmp_path: Path) -> None:
    run = found(tmp_path, (1.3, 1.0, 1.0))
    (section,) = (section for section in run.sections() if section.heading == "Stragglers")
    assert section.definition == "stragglers" and "process 0 of 3 is slow" in section.sentences[0]
    base, row = csv.DictReader(io.StringIO(run.csv()))
    assert row["slow_process"] == "0", "process 0 is not an empty cell"
    assert base["slow_process"] == base["slowest_over_median"] == base["local_slowest_over_median"] == ""
    assert float(row["local_slowest_over_median_lo"]) > 1.2 > 1.01 > float(row["slowest_over_median"]) > 1
