# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The effect of a larger batch: time per step, throughput with its knee, and memory, over the global batch."""

from __future__ import annotations

from collections.abc import Sequence

from jaxbench.analysis.batches import Knee
from jaxbench.report.drawing import marks, places
from jaxbench.report.drawing.axes import bytes_tick, entitle, log_axis, plain, seconds_tick, si
from jaxbench.report.drawing.kit import Axes, Figure, Sheet, exact, short
from jaxbench.report.findings import unit
from jaxbench.report.lever_findings import LeverFindings

VIEWS = ("levers/batch",)
CAPTION = (
    "Time per step, throughput and compiled memory over the global batch. The knee is the smallest measured batch "
    "with at least 90 % of the best throughput; beyond it a larger batch mostly makes each step longer."
)


def draw(run: LeverFindings) -> Figure | None:
    """Draws three panels. None when nothing was measured."""
    if not places.timed(run.places):
        return None
    sheet = Sheet(1, 3)
    time, rate, memory = sheet.panels[0]
    for axes, value, title, show in (
        (time, lambda arm: arm.timing.step_s, "time per step", seconds_tick),
        (rate, lambda arm: arm.timing.examples_per_s, f"{short(unit(run.rows))}/s", si),
        (memory, lambda arm: exact(arm.peak_bytes), "memory per device", bytes_tick),
    ):
        places.line(axes, run.places, lambda arm: arm.point.global_batch, value)
        log_axis(axes, "x", base=2, show=plain, max_ticks=6)
        log_axis(axes, "y", show=show, max_ticks=6)
        entitle(axes, title, x="global batch")
    for axes in (time, rate):
        _knees(axes, run.knees, named=axes is rate)
    remarks = places.remarks(run.places, paired=False)
    return sheet.finish(f"{run.experiment}: what a larger batch buys", places.handles(run.places), remarks)


def _knees(axes: Axes, every: Sequence[Knee], *, named: bool) -> None:
    """Draws a vertical line at each knee."""
    knees = [knee for knee in every if knee.arm.honest and not knee.rising]
    for number, batch in enumerate(dict.fromkeys(knee.arm.point.global_batch for knee in knees)):
        axes.axvline(batch, color=marks.GREY, linewidth=0.8, linestyle=":", zorder=1)
        if not named:
            continue
        low, high = axes.get_xlim()
        right = batch * batch > low * high  # in the right half of the logarithmic axis: the text goes to the left
        near = "" if all(knee.certain for knee in knees if knee.arm.point.global_batch == batch) else " (or near)"
        marks.write(
            axes, batch, 0.03 + 0.08 * number, f"knee {batch}{near}", xycoords=("data", "axes fraction"),
            xytext=(-3 if right else 3, 0), color=marks.GREY, ha="right" if right else "left", va="bottom",
        )  # fmt: skip
