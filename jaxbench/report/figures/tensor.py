# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Tensor parallelism: a model that grows with the devices, one that does not, and what a step moves."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jaxbench.analysis.headline import devices
from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.scaling import Row
from jaxbench.catalog import published
from jaxbench.report.figures import canvas, spread_lines
from jaxbench.report.figures.axes import devices_axis, efficiency_axis, speedup_axis
from jaxbench.report.figures.canvas import DASHES
from jaxbench.report.figures.marks import exact
from jaxbench.report.figures.spread_lines import EXACT
from jaxbench.report.figures.spread_material import SpreadMaterial, sent_bytes

CAPTION = (
    "Weak: FLOP/s per device of a model that grows with the devices, relative to the fewest devices. Strong: "
    "speed-up of one model split over more devices, with the line of perfect scaling. MB received: what the compiled "
    "step brings to one device. Dashed grey: Megatron-LM on V100s."
)
WEAK, STRONG = "megatron2019_weak_scaling", "megatron2019_strong_scaling"
_WEAK_COLUMNS = (("mp", "D", "Megatron: model"), ("mp_dp", "v", "Megatron: model + data"))
_STRONG_SHAPE, _STRONG_NAME = "P", "Megatron: strong"
_LINES = {"strong": "-", "weak": ":"}


def draw(material: SpreadMaterial) -> Figure | None:
    """Up to three panels: weak and strong scaling where they were timed, and bytes. None when nothing was measured."""
    families = spread_lines.families(material.measured)
    timed = {scaling: _timed(material.measured, scaling) for scaling in ("weak", "strong")}
    sent = [row for row in material.measured if math.isfinite(sent_bytes(row))]
    if not sent:
        return None
    shown = [scaling for scaling in ("weak", "strong") if timed[scaling]]
    figure = canvas.blank()
    panels = dict(zip([*shown, "sent"], figure.subplots(1, len(shown) + 1, squeeze=False)[0], strict=True))
    handles = [*spread_lines.handles(families), *([Line2D([], [], **DASHES, label="linear")] if shown else [])]
    if "weak" in shown:
        handles += _weak(panels["weak"], families)
    if "strong" in shown:
        handles += _strong(panels["strong"], families)
    _sent(panels["sent"], families)
    lines = canvas.legend(figure, handles, title=f"{material.experiment}: tensor parallelism")
    below = canvas.footnotes(figure, _notes([*timed["weak"], *timed["strong"]], sent))
    figure.set_figheight(2.1 + 0.16 * lines + 0.12 * below)
    return figure


def _timed(rows: Sequence[Row], scaling: str) -> list[Row]:
    return [row for row in rows if row.point.scaling == scaling and row.speedup.known]


def _of(rows: Sequence[Row], scaling: str) -> list[Row]:
    return [row for row in rows if row.point.scaling == scaling]


def base(rows: Sequence[Row]) -> int:
    """The smallest device count that a speed-up of these rows is over."""
    return min((row.base.devices for row in rows if row.base is not None), default=1)


def percent(row: Row) -> Estimate:
    return row.efficiency.times(100)


def _weak(axes: Axes, families: dict[str, list[Row]]) -> list[Line2D]:
    """Ours and both published series. Returns the published ones' entries in the legend."""
    axes.axhline(100, **DASHES, zorder=1)
    counts = set()
    for look, rows in enumerate(families.values()):
        spread_lines.line(axes, _of(rows, "weak"), percent, look=look, between=_LINES["weak"])
        counts |= {row.point.devices for row in _timed(rows, "weak")}
    frame = published.read(WEAK).frame
    for column, shape, _ in _WEAK_COLUMNS:
        spread_lines.others(axes, frame[f"{column}_gpus"], frame[f"{column}_scaling_pct"], shape=shape)
        counts |= {int(n) for n in frame[f"{column}_gpus"]}
    smallest = base([row for mine in families.values() for row in _timed(mine, "weak")])
    efficiency_axis(axes, "weak: % of linear scaling" + (f" from {devices(smallest)}" if smallest != 1 else ""))
    devices_axis(axes, sorted(counts))
    axes.xaxis.set_ticks([4**power for power in range(5)])  # to 512: every power of two does not fit
    return [spread_lines.others_handle(shape, name) for _, shape, name in _WEAK_COLUMNS]


def _strong(axes: Axes, families: dict[str, list[Row]]) -> list[Line2D]:
    """Ours, y = x, and the published series where ours are over one device as theirs is."""
    rows = [row for mine in families.values() for row in _timed(mine, "strong")]
    smallest, counts = base(rows), {row.point.devices for row in rows}
    for look, mine in enumerate(families.values()):
        spread_lines.line(axes, _of(mine, "strong"), lambda row: row.speedup, look=look)
    handles = []
    if smallest == 1:
        frame = published.read(STRONG).frame
        spread_lines.others(axes, frame["gpus"], frame["speedup"], shape=_STRONG_SHAPE)
        counts |= {int(n) for n in frame["gpus"]}
        handles.append(spread_lines.others_handle(_STRONG_SHAPE, _STRONG_NAME))
    span = sorted(counts)
    axes.plot(span, [count / smallest for count in span], **DASHES, zorder=1)
    speedup_axis(axes, f"strong: speed-up over {devices(smallest)}")
    devices_axis(axes, span)
    return handles


def _sent(axes: Axes, families: dict[str, list[Row]]) -> None:
    """Megabytes that a device receives. One device receives nothing, which a logarithmic axis cannot show."""
    counts: set[int] = set()
    for look, rows in enumerate(families.values()):
        for scaling, between in _LINES.items():
            mine = _of(rows, scaling)
            spread_lines.line(axes, mine, megabytes, look=look, exact=True, between=between)
            counts |= {row.point.devices for row in mine}
    top = axes.dataLim.y1 or 1.0
    axes.set_ylim(-0.04 * top, 1.12 * top)  # a point at 0 is seen whole
    axes.set_title("MB received per device, step", loc="left")
    devices_axis(axes, sorted(counts))


def megabytes(row: Row) -> Estimate:
    return exact(sent_bytes(row) / 1e6)


def _notes(timed: Sequence[Row], sent: Sequence[Row]) -> list[str]:
    found = spread_lines.remarks(timed, sent)
    both = {row.point.scaling for row in sent} == set(_LINES)
    said = "MB received: results of all collectives of a step"
    found.append(f"{said}; {EXACT}" + ("; solid: strong, dotted: weak" if both else ""))
    if timed:
        found.append(
            "hollow, dashed grey: published by others, not measured here. "
            f"{published.read(WEAK).project}, Tables 1 and 8, Figure 5: V100s"
        )
    over = base(_of(timed, "strong"))
    if over != 1:
        found.append(f"no published speed-ups: they are over 1 device, these over {devices(over)}")
    return found
