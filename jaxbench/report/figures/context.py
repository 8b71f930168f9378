# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Context parallelism: the longest sequence that fits, what a length holds, and what a step costs, over devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jaxbench.analysis.headline import devices
from jaxbench.analysis.scaling import Row
from jaxbench.report.figures import canvas, marks, spread_lines
from jaxbench.report.figures.axes import devices_axis, log_axis, plain, seconds_tick
from jaxbench.report.figures.canvas import DASHES, GREY
from jaxbench.report.figures.marks import bytes_tick
from jaxbench.report.figures.spread_lines import EXACT
from jaxbench.report.figures.spread_material import SpreadMaterial

CAPTION = (
    "Left: the longest sequence whose compiled step fits the limit of memory per device, over the devices that share "
    "it, with the line proportional to devices. Middle: what the compiled step holds at each length that was tried. "
    "Right: time per step of one length on more devices."
)
_BETWEEN: Any = ("-", ":", "--", "-.")  # of strategies, where there are several: a marker says the device count


def draw(material: SpreadMaterial) -> Figure | None:
    """Up to three panels. None when there was neither a search nor a time."""
    found: list[dict[str, Any]] = list(material.longest["rows"]) if material.longest is not None else []
    timed = [row for row in material.measured if row.point.scaling == "strong" and row.timing.step_s.known]
    counts = sorted({int(row["devices"]) for row in found} | {row.point.devices for row in timed})
    drawings: list[Callable[[Axes], None]] = []
    if found and material.longest is not None:
        limit = float(material.longest["limit_bytes"])
        drawings += [lambda axes: _longest(axes, found, counts), lambda axes: _tried(axes, found, counts, limit)]
    if timed:
        drawings.append(lambda axes: _times(axes, timed, counts))
    if not drawings:
        return None
    figure = canvas.blank()
    for axes, drawing in zip(figure.subplots(1, len(drawings), squeeze=False)[0], drawings, strict=True):
        drawing(axes)
    handles = [spread_lines.handle(look, devices(count)) for look, count in enumerate(counts)]
    handles += _strategies(timed)
    handles.append(Line2D([], [], **DASHES, label="perfect"))
    lines = canvas.legend(figure, handles, title=f"{material.experiment}: long sequences over devices")
    below = canvas.footnotes(figure, _notes(material.longest, timed))
    figure.set_figheight(2.1 + 0.16 * lines + 0.12 * below)
    return figure


def _strategies(timed: Sequence[Row]) -> list[Line2D]:
    """What tells the strategies apart, where there are several."""
    names = list(spread_lines.families(timed))
    if len(names) < 2:
        return []
    return [
        Line2D([], [], color=GREY, linestyle=_BETWEEN[place % len(_BETWEEN)], label=canvas.short(name, 28))
        for place, name in enumerate(names)
    ]


def _longest(axes: Axes, found: Sequence[dict[str, Any]], counts: Sequence[int]) -> None:
    """One point a device count, and what sharing every byte would give."""
    rows = sorted(found, key=lambda row: int(row["devices"]))
    x, y = [int(row["devices"]) for row in rows], [int(row["longest"]) for row in rows]
    axes.plot(x, [y[0] * n / x[0] for n in x], **DASHES, zorder=1)
    axes.plot(x, y, color=GREY, linewidth=0.9, zorder=2)
    for n, length in zip(x, y, strict=True):
        axes.plot([n], [length], linestyle="none", **_look(counts, n), zorder=3)
        _say(axes, n, length)
    log_axis(axes, "y", base=2, show=plain, most=7)
    devices_axis(axes, x)
    axes.set_xlim(right=2.1 * x[-1])  # the numbers right of and below their points have room
    axes.set_ylim(bottom=axes.get_ylim()[0] / 1.2)
    axes.set_title("longest sequence that fits", loc="left")


def _look(counts: Sequence[int], n: int) -> dict[str, Any]:
    """A device count looks the same in every panel."""
    return dict(color=marks.colour(counts.index(n)), marker=marks.marker(counts.index(n)))


def _say(axes: Axes, n: int, length: int) -> None:
    """The number itself, below right of its point: the line rises."""
    said = axes.annotate(
        f"{length}", (n, length), xytext=(5, -2), textcoords="offset points", fontsize=6.5, ha="left", va="top",
        bbox=dict(facecolor="white", edgecolor="none", pad=0.4), zorder=2.5,
    )  # fmt: skip
    said.set_in_layout(False)


def _tried(axes: Axes, found: Sequence[dict[str, Any]], counts: Sequence[int], limit: float) -> None:
    """Every compiled length, a line a device count, and the limit."""
    axes.axhline(limit, color="black", linewidth=0.8, zorder=1)
    for row in found:
        pairs = sorted((int(length), float(peak)) for length, peak in row["tried"])
        look = _look(counts, int(row["devices"]))
        axes.plot([length for length, _ in pairs], [peak for _, peak in pairs], **look, zorder=3)
    log_axis(axes, "x", base=2, show=plain, most=5)
    log_axis(axes, "y", show=bytes_tick, most=5, span=(limit,))
    axes.set_xlabel("sequence length")
    axes.set_title(f"peak memory; line: limit {bytes_tick(limit)}", loc="left")


def _times(axes: Axes, timed: Sequence[Row], counts: Sequence[int]) -> None:
    """Strong scaling: each strategy a line through points that look as their device counts do."""
    families = spread_lines.families(timed)
    for place, rows in enumerate(families.values()):
        good = [row for row in rows if row.believed]
        x, y = [row.point.devices for row in good], [row.timing.step_s.value for row in good]
        between = _BETWEEN[place % len(_BETWEEN)]
        axes.plot(x, y, color=GREY, linewidth=0.9, linestyle=between, zorder=2)
        if good and not good[0].point.oversubscribed:
            axes.plot(x, [y[0] * x[0] / n for n in x], **DASHES, zorder=1)
        for row in rows:
            look = counts.index(row.point.devices)
            spread_lines.line(axes, [row], lambda row: row.timing.step_s, look=look)
    log_axis(axes, "y", show=seconds_tick, most=5)
    devices_axis(axes, sorted({row.point.devices for row in timed}))
    axes.set_title("time per step, strong scaling", loc="left")


def _notes(longest: dict[str, Any] | None, timed: Sequence[Row]) -> list[str]:
    found, shared = [], []
    if longest is not None and longest["rows"]:
        found.append(f"limit: {longest['limit_bytes']:,} bytes per device ({longest['limit_source']})")
        found.append(f"memory by the compiler's count; the longest to about an eighth of itself; {EXACT}")
        shared.append("twice the length")
    if timed:
        shared.append("half the time")
    found.append(f"perfect: on twice the devices {' and '.join(shared)}")
    return [*found, *spread_lines.remarks(timed, timed)]
