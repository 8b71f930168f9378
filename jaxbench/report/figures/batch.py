# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What a larger batch buys: time per step, throughput with its knee, and memory, over the global batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxbench.analysis.arms import Arm
from jaxbench.analysis.batches import Knee
from jaxbench.report.figures import canvas, marks
from jaxbench.report.figures.axes import log_axis, plain, seconds_tick, si
from jaxbench.report.figures.canvas import GREY, short
from jaxbench.report.figures.lever_material import LeverMaterial
from jaxbench.report.figures.marks import Value, bytes_tick, exact

CAPTION = (
    "Time per step, throughput and the memory of a step by the compiler's count, over the global batch. The knee is "
    "the smallest measured batch with 90 % of the best throughput: a larger one buys waiting and little else."
)


def draw(material: LeverMaterial) -> Figure | None:
    """Three panels. None when nothing was measured."""
    if not any(arm.timing.step_s.known for arm in material.arms):
        return None
    figure = canvas.blank()
    panels = figure.subplots(1, 3, squeeze=False)[0]
    values: tuple[tuple[Value, str, Any], ...] = (
        (lambda arm: arm.timing.step_s, "time per step", seconds_tick),
        (lambda arm: arm.timing.examples_per_s, f"{short(material.unit)}/s", si),
        (lambda arm: exact(arm.peak_bytes), "memory per device", bytes_tick),
    )
    for axes, (value, title, show) in zip(panels, values, strict=True):
        for number, place in enumerate(material.places):
            marks.line(axes, place.arms, global_batch, value, look=number)
        batch_axes(axes, show=show, title=title)
    for axes in panels[:2]:
        knees(axes, material.knees, named=axes is panels[1])
    title = f"{material.experiment}: what a larger batch buys"
    lines = canvas.legend(figure, marks.legend_handles(material.places, lines=True), title=title)
    below = canvas.footnotes(figure, marks.remarks(material.places, paired=False))
    figure.set_figheight(2.1 + 0.16 * lines + 0.12 * below)
    return figure


def global_batch(arm: Arm) -> float:
    return float(arm.point.global_batch)


def batch_axes(axes: Axes, *, show: Any, title: str) -> None:
    """Both logarithmic over what is drawn."""
    log_axis(axes, "x", base=2, show=plain, most=6)
    log_axis(axes, "y", show=show, most=6)
    axes.set_xlabel("global batch")
    axes.set_title(title, loc="left")


def knees(axes: Axes, found: Sequence[Knee], *, named: bool) -> None:
    """A vertical line at each knee that there is."""
    told = [knee for knee in found if knee.arm.point.honest and not knee.rising]
    for number, batch in enumerate(dict.fromkeys(knee.arm.point.global_batch for knee in told)):
        axes.axvline(batch, color=GREY, linewidth=0.8, linestyle=":", zorder=1)
        if not named:
            continue
        low, high = axes.get_xlim()
        right = batch * batch > low * high  # in the right half of a logarithmic axis
        sure = "" if all(knee.certain for knee in told if knee.arm.point.global_batch == batch) else " (or near)"
        axes.annotate(
            f"knee {batch}{sure}", (batch, 0.03 + 0.08 * number), xycoords=("data", "axes fraction"),
            xytext=(-3 if right else 3, 0),
            textcoords="offset points", fontsize=6.5, color=GREY, ha="right" if right else "left",
        )  # fmt: skip
