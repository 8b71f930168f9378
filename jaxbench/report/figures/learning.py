# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Learning curves: loss and accuracy of one or more trainings over steps, examples and seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jaxbench.records.trainings import ACCURACY, LearningCurve
from jaxbench.report.drawing import marks
from jaxbench.report.drawing.kit import GREY, Axes, Figure, Sheet, entitle, log_axis, plain, short, si

VIEWS = ()  # drawn by the page of a training and by a comparison of two
NAME = "learning"
CAPTION = (
    "Loss and accuracy on the test set over steps, examples and seconds of work (without compiling). Dotted: training "
    "loss, a mean over the steps since the last evaluation. Dashed: the target."
)
OVER = {"steps": si, "examples": si, "seconds": plain}


def draw(sides: Mapping[str, Sequence[LearningCurve]], *, title: str) -> Figure | None:
    """Draws two rows of panels. sides: the trainings (seeds) of each series. None when nothing was evaluated."""
    every = [one for trained in sides.values() for one in trained]
    if not any(one.rows for one in every):
        return None
    other = next((one.metric for one in every if one.metric != "loss"), ACCURACY)  # the metric of the lower panels
    sheet = Sheet(2, len(OVER), heights=1.7)
    for column, (over, show) in enumerate(OVER.items()):
        loss, accuracy = sheet.panels[:, column]
        for place, trained in enumerate(sides.values()):
            for one in trained:
                _line(loss, one, "train_loss", over, place, dotted=True)
                _line(loss, one, "test_loss", over, place)
                _line(accuracy, one, f"test_{other}", over, place)
        for metric, target in {(one.metric, one.target) for one in every}:
            marks.unity(loss if metric == "loss" else accuracy, at=target, along="y")
        log_axis(loss, "y", show=plain, max_ticks=5)
        for axes in (loss, accuracy):
            log_axis(axes, "x", show=show, max_ticks=4)
        entitle(loss, "loss" if column == 0 else "")
        entitle(accuracy, f"test {other}" if column == 0 else "", x=over)
    handles = [marks.handle(place, short(name)) for place, name in enumerate(sides)]
    handles += [marks.style_handle("in training", color=GREY, linestyle=":"), marks.guide_handle("target")]
    return sheet.finish(title, handles)


def _line(axes: Axes, one: LearningCurve, what: str, over: str, place: int, *, dotted: bool = False) -> None:
    colour, marker = marks.series_style(place)
    x, y = one.series(what, over)
    few = len(x) <= 40
    axes.plot(x, y, color=colour, linestyle=":" if dotted else "-", marker="" if dotted or not few else marker)
