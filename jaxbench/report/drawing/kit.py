# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Re-exports the drawing functions that nearly every figure file needs."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jaxbench.report.drawing.axes import (
    Show,
    bar_axis,
    bytes_tick,
    devices_axis,
    efficiency_axis,
    empty,
    entitle,
    extent,
    log_axis,
    plain,
    round_ticks,
    seconds_tick,
    si,
    time_axis,
    whole_zero,
    zero_axis,
)  # fmt: skip
from jaxbench.report.drawing.canvas import Sheet, short
from jaxbench.report.drawing.marks import COLOURS, GREY, PALE, Mark, exact

__all__ = [
    "COLOURS", "GREY", "PALE", "Axes", "Figure", "Line2D", "Mark", "Sheet", "Show", "bar_axis", "bytes_tick",
    "devices_axis", "efficiency_axis", "empty", "entitle", "exact", "extent", "log_axis", "plain", "round_ticks",
    "seconds_tick", "short", "si", "time_axis", "whole_zero", "zero_axis",
]  # fmt: skip
