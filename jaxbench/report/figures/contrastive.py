# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A loss across the examples of the global batch: what a device does, gathers and holds as devices are added."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.scaling import Row
from jaxbench.report.figures import canvas, spread_lines
from jaxbench.report.figures.axes import devices_axis, log_axis, seconds_tick, si
from jaxbench.report.figures.canvas import COLOURS, DASHES
from jaxbench.report.figures.marks import bytes_tick, exact
from jaxbench.report.figures.spread_lines import EXACT
from jaxbench.report.figures.spread_material import SpreadMaterial

CAPTION = (
    "Weak scaling, each device with as many examples: the work of the compiled step's products on one device, what its "
    "all-gathers bring to it, its scratch memory, and the time per step. Dashed: what a mean over examples, such as "
    "cnn's under data parallelism, would do from the fewest devices on: stay."
)
FLAT = "a mean over examples, as of cnn: flat"
Families = Mapping[str, Sequence[Row]]
LINES: tuple[Any, ...] = ("-", ":", "-.")  # of arms; dashed is what stays flat


def draw(material: SpreadMaterial) -> Figure | None:
    """Four panels. None when no weak point was prepared."""
    rows = [row for row in material.measured if row.point.scaling == "weak"]
    if not rows:
        return None
    families = spread_lines.families(rows)
    figure = canvas.blank()
    work, sent, scratch, time = figure.subplots(2, 2).flat
    _growing(work, families, products, "FLOP of products, device and step", show=si)
    _gathered(sent, families)
    _growing(scratch, families, scratch_bytes, "scratch memory per device", show=bytes_tick)
    _growing(time, families, lambda row: row.timing.step_s, "time per step", show=seconds_tick, measured=True)
    handles = [*_handles(families), Line2D([], [], **DASHES, label=FLAT)]
    title = f"{material.experiment}: each example against the whole global batch, weak scaling"
    lines = canvas.legend(figure, handles, title=title)
    below = canvas.footnotes(figure, _notes(rows))
    figure.set_figheight(3.9 + 0.16 * lines + 0.12 * below)
    return figure


def products(row: Row) -> Estimate:
    """FLOPs of one device, recomputation included: the compiled program's products, or where they were not found, the
    workload's formula."""
    assert row.point.record is not None
    passport = row.point.record.passport
    return exact((passport.product_flops_per_step or passport.flops_per_step) / row.point.devices)


def gathered(row: Row) -> Estimate:
    """MB in the results of all-gathers on one device; a gather among one moves nothing."""
    assert row.point.record is not None
    if row.point.devices == 1:
        return exact(0.0)
    return exact(sum(c.bytes for c in row.point.record.passport.collectives if c.kind == "all-gather") / 1e6)


def scratch_bytes(row: Row) -> Estimate:
    assert row.point.record is not None
    held = row.point.record.passport.temp_bytes
    return exact(math.nan if held is None else float(held))


def _growing(
    axes: Axes,
    families: Families,
    value: Callable[[Row], Estimate],
    title: str,
    *,
    show: Callable[[float], str],
    measured: bool = False,
) -> None:
    """A line a family, and where each would stay. measured: by a clock, so that only honest points have a flat line."""
    for (look, between), rows in zip(_looks(families), families.values(), strict=True):
        spread_lines.line(axes, rows, value, look=look, exact=not measured, between=between)
        known = [row for row in rows if row.believed and value(row).known]
        if known and not (measured and known[0].point.oversubscribed):
            axes.plot(_counts(families), [value(known[0]).value] * len(_counts(families)), **DASHES, zorder=1)
    log_axis(axes, "y", show=show, most=5)
    devices_axis(axes, _counts(families))
    axes.set_title(title, loc="left")


def _gathered(axes: Axes, families: Families) -> None:
    for (look, between), rows in zip(_looks(families), families.values(), strict=True):
        spread_lines.line(axes, rows, gathered, look=look, exact=True, between=between)
    axes.plot(_counts(families), [0] * len(_counts(families)), **DASHES, zorder=1)
    top = max((gathered(row).value for rows in families.values() for row in rows), default=0.0) or 1.0
    axes.set_ylim(-0.04 * top, 1.12 * top)  # a point at 0 is seen whole
    devices_axis(axes, _counts(families))
    axes.set_title("MB gathered, device and step", loc="left")


def _looks(families: Families) -> list[tuple[int, Any]]:
    """(place of its colour and marker, line) of each family: where colours are too few, one a strategy and a line an
    arm."""
    if len(families) <= len(COLOURS):
        return [(place, "-") for place in range(len(families))]
    strategies, arms = _names(families)
    points = [rows[0].point for rows in families.values()]
    return [(strategies.index(point.strategy), LINES[arms.index(point.arm) % len(LINES)]) for point in points]


def _handles(families: Families) -> list[Line2D]:
    if len(families) <= len(COLOURS):
        return spread_lines.handles(families)
    strategies, arms = _names(families)
    lines = [Line2D([], [], color="black", linestyle=LINES[place % len(LINES)]) for place in range(len(arms))]
    for line, arm in zip(lines, arms, strict=True):
        line.set_label(arm)
    return [*spread_lines.handles(strategies), *lines]


def _names(families: Families) -> tuple[list[str], list[str]]:
    """(strategies, arms), each once, in the order of the run."""
    points = [rows[0].point for rows in families.values()]
    return list(dict.fromkeys(point.strategy for point in points)), list(dict.fromkeys(point.arm for point in points))


def _counts(families: Families) -> list[int]:
    return sorted({row.point.devices for rows in families.values() for row in rows})


def _notes(rows: Sequence[Row]) -> list[str]:
    same = "series that gather the same lie on each other"
    said = "gradients of what is gathered come back besides, as a reduce-scatter or, where the compiler chooses, a sum"
    return [f"FLOP and {EXACT}; {same}", said, *spread_lines.remarks(rows, rows)]
