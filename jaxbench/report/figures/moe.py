# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A mixture of experts over devices: what each device holds, and what travels by which collective."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jaxbench.analysis.scaling import Row
from jaxbench.report.figures import bars, canvas, marks, spread_lines
from jaxbench.report.figures.axes import devices_axis, log_axis
from jaxbench.report.figures.canvas import DASHES, GREY, short
from jaxbench.report.figures.marks import bytes_tick, exact
from jaxbench.report.figures.spread_material import SpreadMaterial, fact

CAPTION = (
    "Left: the model's and the optimizer's state on one device; the grey line is one device's divided by the devices. "
    "Right: what one device receives in a step, by kind of collective, as the size of the results, with its own part: "
    "positions travel to their experts and back (all-to-all), or parameters travel to the positions (all-gather)."
)
KINDS = ("all-to-all", "all-gather", "reduce-scatter", "all-reduce", "collective-permute")


def draw(material: SpreadMaterial) -> Figure | None:
    """Two panels. None when nothing was compiled."""
    rows = material.measured
    if not rows:
        return None
    families = spread_lines.families(rows)
    groups = {name: [row for row in mine if row.point.devices > 1] for name, mine in families.items()}
    kinds = _kinds([row for mine in groups.values() for row in mine])
    figure = canvas.blank()
    widths = [1, max(1.0, min(2.2, 0.25 * sum(map(len, groups.values()))))]
    panels = figure.subplots(1, 2, squeeze=False, width_ratios=widths)[0]
    _state(panels[0], families)
    _received(panels[1], groups, kinds)
    even = Line2D([], [], **DASHES, label="divided evenly")
    handles = [*spread_lines.handles(families), even, *(bars.handle(_look(kinds, kind), kind) for kind in kinds)]
    title = f"{material.experiment}: a mixture of experts over devices"
    lines = canvas.legend(figure, handles, title=title)
    notes = [spread_lines.EXACT, *_dropped(families)]
    if any(not row.believed for row in rows):
        notes.append(marks.WRONG)
    if any(row.point.devices == 1 for row in rows):
        notes.append("on one device nothing is received")
    below = canvas.footnotes(figure, notes)
    figure.set_figheight(2.4 + 0.16 * lines + 0.12 * below)
    return figure


def received(row: Row) -> dict[str, float]:
    """Bytes of a step by kind of collective: the sizes of the results on one device."""
    found: dict[str, float] = {}
    for each in row.point.record.passport.collectives if row.point.record is not None else ():
        found[each.kind] = found.get(each.kind, 0.0) + each.bytes
    return found


def _kinds(rows: Sequence[Row]) -> list[str]:
    """The kinds that any row has, in an order that does not depend on the run."""
    seen = {kind for row in rows for kind, size in received(row).items() if size}
    return [*(kind for kind in KINDS if kind in seen), *sorted(seen - set(KINDS))]


def _look(kinds: Sequence[str], kind: str) -> int:
    return (KINDS.index(kind) if kind in KINDS else len(KINDS) + kinds.index(kind)) + 2  # 0 and 1 are the first lines'


def _state(axes: Axes, families: Mapping[str, Sequence[Row]]) -> None:
    counts = sorted({row.point.devices for mine in families.values() for row in mine})
    for look, mine in enumerate(families.values()):
        spread_lines.line(axes, mine, lambda row: exact(fact(row, "state_bytes")), look=look, exact=True)
    whole = [fact(row, "state_bytes") for mine in families.values() for row in mine if row.point.devices == counts[0]]
    whole = [size for size in whole if math.isfinite(size)]
    if whole and len(counts) > 1:
        axes.plot(counts, [max(whole) * counts[0] / count for count in counts], **DASHES, zorder=1)
    if not axes.lines:
        axes.text(0.5, 0.5, "state was not measured", transform=axes.transAxes, ha="center", color=GREY)
    devices_axis(axes, counts)
    log_axis(axes, "y", show=bytes_tick, most=5)
    axes.set_title("state per device", loc="left")


def _received(axes: Axes, groups: Mapping[str, Sequence[Row]], kinds: Sequence[str]) -> None:
    """A stack a point, the points of a family side by side, a gap between families."""
    place, top, ticks, labels = 0.0, 0.0, [], []
    for family, rows in groups.items():
        start = place
        for row in rows:
            top = max(top, _stack(axes, place, row, kinds))
            ticks.append(place)
            labels.append(str(row.point.devices))
            place += 1
        if rows:
            axes.annotate(
                short(family, 24), ((start + place - 1) / 2, 0), xycoords=("data", "axes fraction"), xytext=(0, -18),
                textcoords="offset points", ha="center", va="top", fontsize=7.5,
            )  # fmt: skip
            place += 0.7
    if not ticks:
        axes.text(0.5, 0.5, "one device only:\nnothing is received", transform=axes.transAxes, ha="center", color=GREY)
    axes.set_xticks(ticks, labels)
    axes.tick_params(axis="x", length=0)
    axes.set_ylim(0, 1.13 * top or 1)
    axes.grid(True, axis="y")
    axes.set_xlabel("devices", labelpad=15)
    axes.set_title("received by a device in a step, MB", loc="left")


def _stack(axes: Axes, place: float, row: Row, kinds: Sequence[str]) -> float:
    """Returns its height in MB, which is written above it."""
    sizes, at = received(row), 0.0
    total = sum(sizes.values()) / 1e6
    if not row.believed:
        marks.cross(axes, place, total)
        return total
    for kind in kinds:
        if sizes.get(kind):
            axes.bar([place], [sizes[kind] / 1e6], bottom=at, width=0.8, **bars.style(_look(kinds, kind)))
            at += sizes[kind] / 1e6
    said = axes.annotate(
        f"{total:.3g}", (place, total), xytext=(0, 2), textcoords="offset points", ha="center", fontsize=6.5
    )
    said.set_in_layout(False)
    return total


def _dropped(families: Mapping[str, Sequence[Row]]) -> list[str]:
    """Which share of positions found no place at their expert, over all device counts of a family."""
    said = []
    for family, rows in families.items():
        shares = [100 * fact(row, "dropped") for row in rows if math.isfinite(fact(row, "dropped")) and row.believed]
        if shares:
            low, high = (f"{value:.1f}" for value in (min(shares), max(shares)))
            said.append(f"{short(family, 24)} {low} %" if low == high else f"{short(family, 24)} {low} to {high} %")
    return [f"positions that found no place at their expert: {', '.join(said)}"] if said else []
