# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Number formats compared: speed, memory and final accuracy, with a published comparison."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jaxbench.analysis.arms import ArmGroup, ArmResult
from jaxbench.analysis.intervals import UNKNOWN, Estimate
from jaxbench.analysis.quantities import scaled
from jaxbench.catalog import published
from jaxbench.report.drawing import marks, notes, places
from jaxbench.report.drawing.kit import Axes, Figure, Mark, Sheet, entitle, exact, short
from jaxbench.report.lever_findings import LeverFindings

VIEWS = ("levers/precision",)
CAPTION = (
    "Speed-up over the baseline, compiled memory of a step, accuracy after a short training from one seed, and its "
    "difference from the baseline's. Hollow: published differences between mixed precision and float32 in full "
    "ImageNet trainings; compare the sizes of the differences, not the accuracies."
)
SERIES = "micikevicius_table1"


def draw(run: LeverFindings) -> Figure | None:
    """Draws two panels, or four if the arms were trained. None when nothing was measured."""
    if not places.timed(run.places):
        return None
    trained = any(math.isfinite(arm.outcome("final_accuracy")) for arm in run.arms)
    widths = [1, 1, 0.9, 1] if trained else [1, 1]
    sheet = Sheet(1, len(widths), widths=widths)
    panels = sheet.panels[0]
    places.hbars(panels[0], run.places, lambda arm: arm.speedup, lambda v: f"{v.value:.2f} x", room=1.32)
    marks.unity(panels[0])
    entitle(panels[0], "speed-up")
    memory = lambda arm: exact(arm.peak_bytes / 1e6)  # noqa: E731
    places.hbars(panels[1], run.places, memory, lambda v: scaled(v.value * 1e6, "B"), room=1.5)
    entitle(panels[1], "memory/device, MB")
    for number, axes in enumerate(panels[:3]):
        sheet.names(axes, places.ticks(run.places), beside=len(run.places), shown=number == 0)
    handles, remarks = places.handles(run.places, bars=True), places.remarks(run.places)
    if trained:
        _accuracy(panels[2], run.places)
        sheet.names(panels[3], _differences(panels[3], run.places))
        panels[3].tick_params(axis="y", labelsize=6.5)
        handles += [
            marks.style_handle("measured", color=marks.series_style(0)[0], marker="o", linestyle="none"),
            marks.published_handle("o", "mixed precision minus float32, published"),
        ]
        remarks.append("accuracy: one short training per arm, so no error bar; a difference may be due to the seed")
        remarks.append(notes.cited(f"{published.read(SERIES).project}, Table 1"))
    return sheet.finish(f"{run.experiment}: what a number format changes", handles, remarks)


def _accuracy(axes: Axes, everywhere: Sequence[ArmGroup]) -> None:
    places.dots(axes, everywhere, lambda arm: exact(arm.outcome("final_accuracy")), lambda v: f"{v.value:.3f}")
    low, high = axes.dataLim.x0, axes.dataLim.x1
    pad = max(high - low, 0.002)
    axes.set_xlim(low - 0.25 * pad, high + 1.1 * pad)
    axes.locator_params(axis="x", nbins=4)
    entitle(axes, "final accuracy")


def difference(arm: ArmResult) -> Estimate:
    """Final accuracy minus the baseline's, in percentage points; UNKNOWN for the baseline and without a training."""
    record = arm.baseline.point.record
    if arm.row is arm.baseline or record is None:
        return UNKNOWN
    return exact(100 * (arm.outcome("final_accuracy") - record.outcome.get("final_accuracy", math.nan)))


def _differences(axes: Axes, everywhere: Sequence[ArmGroup]) -> list[str]:
    """Draws measured differences above, published ones below. Returns the names of the rows."""
    ours = [
        (arm, place, style) for style, place in enumerate(everywhere) for arm in place.arms if difference(arm).known
    ]
    marks.dots(
        axes,
        [Mark(at=y, value=difference(a), style=style, state=marks.state(a)) for y, (a, _, style) in enumerate(ours)],
    )
    frame = published.read(SERIES).frame
    for y, change in enumerate(frame["mixed"] - frame["fp32"], start=len(ours)):
        marks.published(axes, [change], [y], shape="o", joined=False)
        axes.plot([0, change], [y, y], color=marks.PALE, linewidth=0.7, linestyle="--", zorder=1)
    marks.unity(axes, at=0.0)
    axes.margins(x=0.15)
    axes.locator_params(axis="x", nbins=4)
    entitle(axes, "difference, % points")
    labels = [", ".join(filter(None, [short(arm.label, 16), short(place.name, 16)])) for arm, place, _ in ours]
    return [*labels, *map(str, frame["model"])]
