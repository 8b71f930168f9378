# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Every committed figure with records can be read without its page; planted faults are found."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from matplotlib.figure import Figure

from benchmarks import figures
from jaxbench.report.drawing import canvas, fitness, marks
from jaxbench.report.drawing.axes import log_axis
from jaxbench.report.drawing.canvas import Sheet
from jaxbench.report.drawing.marks import Mark
from jaxbench.statistics.bootstrap import Estimate


@pytest.mark.full
def test_every_committed_figure_with_records_is_fit() -> None:
    every = figures.drawings()
    found = {each.path: figures.faults_of(each) for each in every}
    assert len(found) > 60
    assert {path: faults for path, faults in found.items() if faults} == {}


def test_every_figure_without_records_is_known() -> None:
    """Papers with claims about time need a quiet machine to be measured again."""
    without = {each.path.split("/")[2] for each in figures.drawings() if each.draw is None}
    assert without <= {"papers"}


def kinds(draw: Callable[[Sheet], None], **grid: int) -> set[str]:
    with canvas.style():
        sheet = Sheet(**grid)
        draw(sheet)
        figure: Figure = sheet.finish("a quantity")
        canvas.lay_out(figure)
        return {fault.kind for fault in fitness.faults(figure)}


def test_what_stands_over_something_or_is_too_small_is_found() -> None:
    def twice(sheet: Sheet) -> None:
        axes = sheet.only()
        axes.plot([1, 2], [1, 2], "o")
        for _ in range(2):
            axes.text(1.5, 1.5, "the same place", size=4)

    assert {"text over text", "text below 6 pt"} <= kinds(twice)


def test_bars_on_a_logarithmic_axis_and_clamped_marks_are_found() -> None:
    def bars(sheet: Sheet) -> None:
        axes = sheet.only()
        axes.barh([0, 1], [1, 100], left=0.1)
        axes.set_xscale("log")
        axes.set_ylabel("names")

    def clamped(sheet: Sheet) -> None:
        axes = sheet.only()
        values = [0.01, 0.01, 0.01, 0.01, 0.01, 0.2, 0.4, 1.5, 3.0, 4.0]
        marks.dots(axes, [Mark(at=at, value=marks.exact(value)) for at, value in enumerate(values)])
        log_axis(axes, "x", show=str)
        sheet.names(axes, [f"name {at}" for at in range(len(values))])

    assert "bars without a zero" in kinds(bars) and "marks at a limit" in kinds(clamped)


def test_a_series_without_a_name_and_a_house_word_are_found() -> None:
    def nameless(sheet: Sheet) -> None:
        for place in range(2):
            marks.line(sheet.only(), [Mark(at=x, value=marks.exact(x)) for x in (1.0, 2.0)], place=place)
        sheet.only().set_title("session0 of 8c27c55a")

    assert {"series without a name", "house words"} <= kinds(nameless)


def test_colours_and_markers_may_have_separate_entries() -> None:
    def shared(sheet: Sheet, *, colours: int, named: bool) -> set[str]:
        axes, handles = sheet.only(), [marks.style_handle("p50", marker="o"), marks.style_handle("p99", marker="^")]
        for place in range(colours):
            for shape in "o^":
                values = [Mark(at=x, value=marks.exact(x + place)) for x in (1.0, 2.0)]
                marks.line(axes, values, place=place, shape=shape)
        handles += [marks.handle(place, f"device {place}") for place in range(colours) if named]
        figure = sheet.finish("a quantity", handles)
        canvas.lay_out(figure)
        return {fault.kind for fault in fitness.faults(figure)} & {"series without a name"}

    with canvas.style():
        assert not shared(Sheet(1, 1), colours=1, named=False)
        assert not shared(Sheet(1, 1), colours=2, named=True)
        assert shared(Sheet(1, 1), colours=2, named=False)


def test_a_panel_without_data_is_dropped_and_a_wide_interval_leaves_the_panel() -> None:
    with canvas.style():
        sheet = Sheet(1, 2)
        left, right = sheet.panels[0]
        wide = Estimate(value=1.0, lo=1e-6, hi=1e6)
        marks.line(left, [Mark(at=1, value=wide), Mark(at=2, value=marks.exact(2.0))], place=0)
        log_axis(left, "y", show=str)
        marks.unity(right, at=100, along="y")
        figure = sheet.finish("a quantity")
        canvas.lay_out(figure)
    assert len(figure.axes) == 1, "only the ideal line"
    low, high = figure.axes[0].get_ylim()
    said = " ".join(text.get_text() for text in fitness.shown(figure))
    assert low > 0.05 and high < 20 and canvas.LEAVING in " ".join(said.split())
