# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""ZeRO: bytes of model state that one device holds per parameter, over the degree of data parallelism."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from jaxbench.analysis.scaling import Row
from jaxbench.catalog import published
from jaxbench.report.figures import canvas, marks, spread_lines
from jaxbench.report.figures.axes import decade_ticks, devices_axis, log_axis, plain
from jaxbench.report.figures.canvas import DASHES, MARKERS, PALE, short
from jaxbench.report.figures.marks import exact
from jaxbench.report.figures.spread_lines import EXACT
from jaxbench.report.figures.spread_material import SpreadMaterial, fact

CAPTION = (
    "Bytes of model state (parameters, gradients, optimizer's state) that one device holds per parameter of the model, "
    "over the devices that share the data. Right axis: the same for a model of 7.5 billion parameters. Measured bytes "
    "are of the arrays on the first device, and exact."
)
TABLE, BILLIONS = "zero_table1", 7.5  # the published table's model, in parameters
DEGREES = tuple(2**power for power in range(11))  # as far as the table goes


@dataclass(frozen=True, kw_only=True)
class Stage:
    """What of the state is shared out. whole + shared / N bytes of 16 a parameter stay on a device.

    column: of the published table, "" where it has none of this stage.
    """

    name: str
    whole: float
    shared: float
    column: str

    def per_parameter(self, devices: float) -> float:
        return self.whole + self.shared / devices

    @property
    def formula(self) -> str:
        parts = (f"{self.whole:g}" if self.whole else "", f"{self.shared:g}/N" if self.shared else "")
        return " + ".join(filter(None, parts))


DP = Stage(name="DP", whole=16, shared=0, column="")
OS = Stage(name="P_os", whole=4, shared=12, column="pos_7.5B")
GRADIENTS = Stage(name="P_os+g", whole=2, shared=14, column="posg_7.5B")
PARAMETERS = Stage(name="P_os+g+p", whole=0, shared=16, column="posgp_7.5B")
STAGES = (DP, OS, GRADIENTS, PARAMETERS)
_OF = {"zero1": OS, "zero2": GRADIENTS, "fsdp": PARAMETERS}
_SPLIT_MODELS = ("tensor", "context", "pipeline", "expert", "hybrid")  # their state is shared in other ways


def stage(strategy: str) -> Stage | None:
    """What the strategy shares of the state; None of one that is not data parallelism alone."""
    return None if strategy in _SPLIT_MODELS else _OF.get(strategy, DP)


def per_parameter(row: Row) -> float:
    """Bytes of state and gradients on one device over the model's parameters; NaN: not measured."""
    if row.point.record is None or not row.point.record.passport.parameters:
        return math.nan
    return (fact(row, "state_bytes") + fact(row, "held_gradient_bytes")) / row.point.record.passport.parameters


def mixed(row: Row) -> bool:
    """Whether a parameter has the 16 bytes that the published formulas are of."""
    return row.point.levers.get("precision") == "mixed"


def draw(material: SpreadMaterial) -> Figure | None:
    """One panel. None when no gradients were measured."""
    rows = [row for row in material.measured if math.isfinite(per_parameter(row))]
    if not rows:
        return None
    figure = canvas.blank()
    axes = figure.subplots()
    families = spread_lines.families(_once(rows))
    for look, mine in enumerate(families.values()):
        spread_lines.line(axes, mine, lambda row: exact(per_parameter(row)), look=look, exact=True)
    overlay = all(mixed(row) for row in rows)
    if overlay:
        _published(axes)
    counts = sorted({row.point.devices for row in rows} | set(DEGREES if overlay else ()))
    _axes(axes, counts)
    title = f"{material.experiment}: model state per device over data-parallel degree (ZeRO)"
    lines = canvas.legend(figure, _handles(families, overlay=overlay), title=title)
    below = canvas.footnotes(figure, notes(rows, overlay=overlay))
    figure.set_figheight(2.7 + 0.16 * lines + 0.12 * below)
    return figure


def _once(rows: Sequence[Row]) -> list[Row]:
    """One row of each strategy, arm and device count: strong and weak scaling hold the same state."""
    found = {(row.point.strategy, row.point.arm, row.point.devices): row for row in reversed(rows)}
    return [row for row in rows if row is found[row.point.strategy, row.point.arm, row.point.devices]]


def _published(axes: Axes) -> None:
    """The formulas as dashed lines, and the table's own numbers on them, undone of the model's size."""
    frame = published.read(TABLE).frame
    fine = np.geomspace(DEGREES[0], DEGREES[-1], 101)
    for place, each in enumerate(STAGES):
        axes.plot(fine, [each.per_parameter(n) for n in fine], **{**DASHES, "color": PALE}, zorder=1)
        if each.column:
            spread_lines.others(axes, frame["dp"], frame[each.column] / BILLIONS, shape=MARKERS[place], joined=False)


def _axes(axes: Axes, counts: Sequence[int]) -> None:
    log_axis(axes, "y", show=plain, most=8)
    devices_axis(axes, counts)
    axes.xaxis.set_ticks(counts)
    axes.set_xlabel("data-parallel degree N, devices")
    axes.set_title("bytes per parameter and device", loc="left")
    right = axes.secondary_yaxis("right", functions=(_gigabytes, _per_parameter))
    low, high = axes.get_ylim()
    right.set_yscale("log")
    right.yaxis.set_major_locator(FixedLocator(decade_ticks(low * BILLIONS, high * BILLIONS)))
    right.yaxis.set_minor_locator(NullLocator())
    right.yaxis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))
    right.set_ylabel(f"GB for {BILLIONS:g} billion parameters")
    right.spines["right"].set_visible(True)


def _gigabytes(per_parameter: Any) -> Any:
    return np.asarray(per_parameter) * BILLIONS


def _per_parameter(gigabytes: Any) -> Any:
    return np.asarray(gigabytes) / BILLIONS


def _handles(families: dict[str, list[Row]], *, overlay: bool) -> list[Line2D]:
    """Measured series and published lines; side by side in the legend's columns where there is one of each stage."""
    ours = []
    for look, (name, mine) in enumerate(families.items()):
        what = stage(mine[0].point.strategy)
        ours.append(spread_lines.handle(look, short(f"{what.name}: {name}" if what else name, 24)))
    theirs = [
        spread_lines.others_handle(MARKERS[place] if each.column else "", f"{each.name}: {each.formula}")
        for place, each in enumerate(STAGES)
    ]
    if not overlay:
        return ours
    if len(ours) == len(theirs):
        return [entry for pair in zip(ours, theirs, strict=True) for entry in pair]
    return [*ours, *theirs]


def worst(rows: Sequence[Row]) -> float:
    """The largest distance of a measured value from its formula, as a share of the formula."""
    found = [0.0]
    for row in rows:
        what = stage(row.point.strategy)
        if what is not None and row.believed:
            found.append(abs(per_parameter(row) / what.per_parameter(row.point.devices) - 1))
    return max(found)


def notes(rows: Sequence[Row], *, overlay: bool) -> list[str]:
    """The footnotes."""
    found = [f"measured: {EXACT}; on one device nothing is shared, and all series begin in one point"]
    if overlay:
        source = f"{published.read(TABLE).project}, Table 1: {BILLIONS:g} billion parameters, mixed-precision Adam"
        found.append(f"dashed grey, hollow: published by others, not measured here. {source}")
        found.append(
            f"measured values are within {100 * worst(rows):.1g} % of the formulas (arrays that N does not divide)"
        )
    else:
        found.append("no published lines: they are of mixed precision, 16 bytes a parameter")
    if any(not row.believed for row in rows):
        found.append(marks.WRONG)
    return found
