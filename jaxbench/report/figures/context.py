# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Context parallelism: the longest sequence that fits, memory by sequence length, and time per step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxbench.analysis import max_sequence as search
from jaxbench.analysis.headline import devices
from jaxbench.analysis.scaling import Row
from jaxbench.report.drawing import families, marks, notes
from jaxbench.report.drawing.axes import bytes_tick, devices_axis, entitle, log_axis, plain, seconds_tick
from jaxbench.report.drawing.kit import GREY, Axes, Figure, Line2D, Sheet, short
from jaxbench.report.findings import Findings

VIEWS = ("training/context", "levers/context")
CAPTION = (
    "Left: the longest sequence with a compiled step that fits the memory limit per device, over the number of "
    "devices; dashed: proportional to devices. Middle: compiled memory at each length that was tried. Right: time per "
    "step at a fixed length, over the number of devices."
)
_BETWEEN: Any = ("-", ":", "--", "-.")  # a line style per strategy; markers are taken by device counts


def draw(run: Findings) -> Figure | None:
    """Draws up to three panels. None when there was neither a search nor a timed point."""
    longest = search.read(run.path)
    searched: list[dict[str, Any]] = list(longest["rows"]) if longest is not None else []
    timed = [row for row in families.compiled(run.rows) if row.point.scaling == "strong" and row.timing.step_s.known]
    if not searched and not timed:
        return None
    counts = sorted({int(row["devices"]) for row in searched} | set(families.counts(timed)))
    sheet = Sheet(1, 2 * bool(searched) + bool(timed))
    panels = list(sheet.panels[0])
    if longest is not None and searched:
        _longest(panels[0], searched, counts)
        _tried(panels[1], searched, counts, float(longest["limit_bytes"]))
    if timed:
        _times(panels[-1], timed, counts)
    handles = [marks.handle(place, devices(count)) for place, count in enumerate(counts)]
    handles += [*_strategies(timed), marks.guide_handle("perfect")]
    return sheet.finish(f"{run.experiment}: long sequences over devices", handles, _notes(longest, timed))


def _strategies(timed: Sequence[Row]) -> list[Line2D]:
    """Legend entries for the line styles of the strategies, if there are several."""
    names = list(families.families(timed))
    styles = [_BETWEEN[place % len(_BETWEEN)] for place in range(len(names) if len(names) > 1 else 0)]
    return [marks.style_handle(short(n, 28), color=GREY, linestyle=s) for s, n in zip(styles, names, strict=False)]


def _longest(axes: Axes, searched: Sequence[dict[str, Any]], counts: Sequence[int]) -> None:
    """Draws a point per device count, and the ideal of dividing every byte. Numbers are to the lower right."""
    rows = sorted(searched, key=lambda row: int(row["devices"]))
    x, y = [int(row["devices"]) for row in rows], [int(row["longest"]) for row in rows]
    marks.guide(axes, x, [y[0] * n / x[0] for n in x])
    axes.plot(x, y, color=GREY, linewidth=0.9, zorder=2)
    paper: Any = dict(facecolor="white", edgecolor="none", pad=0.4)
    for n, length in zip(x, y, strict=True):
        axes.plot([n], [length], linestyle="none", **_style(counts, n), zorder=3)
        marks.write(axes, n, length, f"{length}", xytext=(5, -2), va="top", bbox=paper, zorder=2.5)
    log_axis(axes, "y", base=2, show=plain)
    devices_axis(axes, x)
    axes.set_xlim(right=2.1 * x[-1])  # room for the number of the last point
    axes.set_ylim(bottom=axes.get_ylim()[0] / 1.2)
    entitle(axes, "longest sequence that fits")


def _style(counts: Sequence[int], n: int) -> dict[str, Any]:
    """Legend entries of the device counts, which have the same style in every panel."""
    colour, marker = marks.series_style(counts.index(n))
    return dict(color=colour, marker=marker)


def _tried(axes: Axes, searched: Sequence[dict[str, Any]], counts: Sequence[int], limit: float) -> None:
    """Draws the memory of every compiled length, a line per device count, and the limit."""
    axes.axhline(limit, color="black", linewidth=0.8, zorder=1)
    for row in searched:
        pairs = sorted((int(length), float(peak)) for length, peak in row["tried"])
        style = _style(counts, int(row["devices"]))
        axes.plot([length for length, _ in pairs], [peak for _, peak in pairs], **style, zorder=3)
    log_axis(axes, "x", base=2, show=plain, max_ticks=5)
    log_axis(axes, "y", show=bytes_tick, max_ticks=5, span=(limit,))
    entitle(axes, f"peak memory; line: limit {bytes_tick(limit)}", x="sequence length")


def _times(axes: Axes, timed: Sequence[Row], counts: Sequence[int]) -> None:
    """Draws strong scaling: a line per strategy, through points in the style of their device count."""
    for place, rows in enumerate(families.families(timed).values()):
        good = [row for row in rows if row.believed]
        x, y = [row.point.devices for row in good], [row.timing.step_s.value for row in good]
        axes.plot(x, y, color=GREY, linewidth=0.9, linestyle=_BETWEEN[place % len(_BETWEEN)], zorder=2)
        if good and not good[0].point.oversubscribed:
            marks.guide(axes, x, [y[0] * x[0] / n for n in x])
        for row in rows:
            families.line(axes, [row], lambda row: row.timing.step_s, place=counts.index(row.point.devices))
    log_axis(axes, "y", show=seconds_tick, max_ticks=5)
    devices_axis(axes, families.counts(timed))
    entitle(axes, "time per step, strong scaling")


def _notes(longest: dict[str, Any] | None, timed: Sequence[Row]) -> list[str]:
    remarks, ideals = [], []
    if longest is not None and longest["rows"]:
        remarks.append(f"limit: {longest['limit_bytes']:,} bytes per device ({longest['limit_source']})")
        remarks.append(f"memory as compiled; the search found the longest sequence to within 1/8; {notes.EXACT}")
        ideals.append("twice the length")
    if timed:
        ideals.append("half the time")
    remarks.append(f"perfect, on twice the devices: {' and '.join(ideals)}")
    return [*remarks, *families.remarks(timed, timed)]
