# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Number formats side by side: speed, memory, and what the training comes to, beside a published comparison."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jaxbench.analysis.arms import Arm, Place
from jaxbench.analysis.intervals import UNKNOWN, Estimate
from jaxbench.analysis.quantities import scaled
from jaxbench.catalog import published
from jaxbench.report.figures import canvas, marks
from jaxbench.report.figures.canvas import PALE, short
from jaxbench.report.figures.lever_material import LeverMaterial
from jaxbench.report.figures.marks import exact, rows_axis

CAPTION = (
    "Speed over the baseline, what a step holds at once by the compiler's count, the accuracy of a short training from "
    "one seed, and how far that is from the baseline's. Hollow: mixed precision less float32, of full ImageNet "
    "trainings by others; differences are comparable in size only, not the accuracies themselves."
)
SERIES = "micikevicius_table1"


def draw(material: LeverMaterial) -> Figure | None:
    """Two panels, or four where the arms were trained. None when nothing was measured."""
    places = material.places
    if not any(arm.timing.step_s.known for arm in material.arms):
        return None
    trained = any(math.isfinite(arm.outcome("final_accuracy")) for arm in material.arms)
    figure = canvas.blank()
    panels = figure.subplots(1, 4 if trained else 2, squeeze=False, width_ratios=[1, 1, 0.9, 1] if trained else [1, 1])[
        0
    ]
    marks.lying(panels[0], places, _speed, lambda v: f"{v.value:.2f} x", room=1.32)
    marks.unity(panels[0])
    panels[0].set_title("speed-up", loc="left")
    marks.lying(
        panels[1], places, lambda arm: exact(arm.peak_bytes / 1e6), lambda v: scaled(v.value * 1e6, "B"), room=1.5
    )
    panels[1].set_title("memory/device, MB", loc="left")
    for number, axes in enumerate(panels[:3]):
        rows_axis(axes, marks.ticks(places), first=number == 0)
        axes.locator_params(axis="x", nbins=4)
    notes = marks.remarks(places)
    if trained:
        _accuracy(panels[2], places)
        count = _differences(panels[3], places)
        notes += ["accuracy: one short training an arm, so no interval: differences of one seed may be chance"]
        notes += [f"hollow, dashed: published by others, not measured here. {published.read(SERIES).project}, Table 1"]
    handles = [*marks.legend_handles(places, lines=False), *(_kinds() if trained else [])]
    lines = canvas.legend(figure, handles, title=f"{material.experiment}: what a number format changes")
    below = canvas.footnotes(figure, notes)
    rows = max(len(marks.labels(places)) * max(1.0, 0.6 * len(places)), 0.62 * count if trained else 0)
    figure.set_figheight(0.75 + 0.32 * rows + 0.16 * lines + 0.12 * below)
    return figure


def _kinds() -> list[Line2D]:
    white: Any = dict(markerfacecolor="white", linestyle="--", linewidth=0.7)
    return [
        Line2D([], [], color=marks.colour(0), marker="o", linestyle="none", label="measured"),
        Line2D([], [], color=PALE, marker="o", label="mixed precision less float32, published", **white),
    ]


def _speed(arm: Arm) -> Estimate:
    return arm.speedup


def _accuracy(axes: Axes, places: Sequence[Place]) -> None:
    marks.dots(axes, places, lambda arm: exact(arm.outcome("final_accuracy")), lambda v: f"{v.value:.3f}")
    low, high = axes.dataLim.x0, axes.dataLim.x1
    pad = max(high - low, 0.002)
    axes.set_xlim(low - 0.25 * pad, high + 1.1 * pad)
    axes.set_title("final accuracy", loc="left")


def difference(arm: Arm) -> Estimate:
    """Final accuracy less the baseline's, in percentage points; UNKNOWN of the baseline and without a training."""
    record = arm.baseline.point.record
    if arm.row is arm.baseline or record is None:
        return UNKNOWN
    return exact(100 * (arm.outcome("final_accuracy") - record.outcome.get("final_accuracy", math.nan)))


def _differences(axes: Axes, places: Sequence[Place]) -> int:
    """Ours above, published below. Returns how many rows."""
    names: list[str] = []
    for number, place in enumerate(places):
        for arm in place.arms:
            value = difference(arm)
            if value.known:
                label = ", ".join(filter(None, [short(arm.label, 16), short(place.name, 16)]))
                marks.dot(axes, arm, value.value, len(names), value, look=number)
                names.append(label)
    frame = published.read(SERIES).frame
    for model, change in zip(frame["model"], frame["mixed"] - frame["fp32"], strict=True):
        axes.plot(
            [change], [len(names)], marker="o", markerfacecolor="white", markeredgecolor=PALE, markeredgewidth=0.9,
            linestyle="none", zorder=3,
        )  # fmt: skip
        axes.plot([0, change], [len(names)] * 2, color=PALE, linewidth=0.7, linestyle="--", zorder=2)
        names.append(str(model))
    marks.unity(axes, at=0.0)
    rows_axis(axes, names)
    axes.tick_params(axis="y", labelsize=6.5)
    axes.margins(x=0.15)
    axes.locator_params(axis="x", nbins=4)
    axes.set_title("difference, % points", loc="left")
    return len(names)
