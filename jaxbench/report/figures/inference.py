# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Inference: latency of single calls at the median and at the 99th percentile, and throughput, over the batch."""

from __future__ import annotations

from functools import partial
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jaxbench.analysis.arms import Arm
from jaxbench.analysis.batches import Latency
from jaxbench.analysis.intervals import UNKNOWN, Estimate
from jaxbench.report.figures import canvas, marks
from jaxbench.report.figures.axes import seconds_tick, si
from jaxbench.report.figures.batch import batch_axes, global_batch
from jaxbench.report.figures.canvas import short
from jaxbench.report.figures.lever_material import LeverMaterial

CAPTION = (
    "Left: wall time of a single call that is waited for, median and 99th percentile, with their intervals. Right: "
    "examples per second. A 99th percentile needs 100 single calls; with fewer it is left out."
)


def draw(material: LeverMaterial) -> Figure | None:
    """Two panels. None when no inference was measured."""
    if not any(one.arm.timing.step_s.known for _, many in material.latencies for one in many):
        return None
    figure = canvas.blank()
    left, right = figure.subplots(1, 2)
    for number, (_, many) in enumerate(material.latencies):
        by_arm = {one.arm.point.point: one for one in many}
        arms = [one.arm for one in many]
        for value, between, shape in ((_p50, "-", ""), (_p99, marks.DASHED, "^")):
            marks.line(left, arms, global_batch, partial(value, by_arm), look=number, between=between, shape=shape)
        marks.line(right, arms, global_batch, lambda arm: arm.timing.examples_per_s, look=number)
    batch_axes(left, show=seconds_tick, title="latency of one call")
    batch_axes(right, show=si, title=f"{short(material.unit)}/s")
    dashed: Any = (0, (3, 1.5))
    kinds = [
        Line2D([], [], color="black", marker="o", label="p50"),
        Line2D([], [], color="black", marker="^", linestyle=dashed, label="p99"),
    ]
    places = [place for place, _ in material.latencies]
    handles = [*marks.legend_handles(places, lines=True), *kinds]
    lines = canvas.legend(figure, handles, title=f"{material.experiment}: inference, latency against throughput")
    below = canvas.footnotes(figure, [*_notes(material), *marks.remarks(places, paired=False)])
    figure.set_figheight(2.1 + 0.16 * lines + 0.12 * below)
    return figure


def _p50(of: dict[str, Latency], arm: Arm) -> Estimate:
    return of[arm.point.point].p50 if arm.point.point in of else UNKNOWN


def _p99(of: dict[str, Latency], arm: Arm) -> Estimate:
    return of[arm.point.point].p99 if arm.point.point in of else UNKNOWN


def _notes(material: LeverMaterial) -> list[str]:
    """Each reason why a percentile is missing, with the batches that it is about."""
    about: dict[str, list[str]] = {}
    for _, many in material.latencies:
        for one in many:
            if one.why_not and one.arm.timing.step_s.known:
                about.setdefault(one.why_not, []).append(str(one.arm.point.global_batch))
    return [f"no p99 at batch {', '.join(dict.fromkeys(batches))}: {why}" for why, batches in about.items()]
