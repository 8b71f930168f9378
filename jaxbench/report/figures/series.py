# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Rows of cases as lines of a figure: what a line is called, how it looks, and which rows may be on it.

A line goes only through rows that may be believed. Filled markers are honest, hollow ones oversubscribed; a refused row
is a small grey x beside the line, a row with wrong values a large black one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from jaxbench.analysis.case_rows import CaseRow
from jaxbench.analysis.headline import devices
from jaxbench.analysis.intervals import Estimate
from jaxbench.report.figures.canvas import COLOURS, HOLLOW, MARKERS, PALE, short

REFUSED = "small grey x: refused by a gate, so on no line and in no headline"
WRONG = "large black x: some of its values are wrong"
FAKE = "fake devices beyond the cores prove bytes and arithmetic, never speed"
_X: Any = dict(linestyle="none", marker="x", color=PALE, markersize=3.5, markeredgewidth=0.9)


@dataclass(frozen=True, kw_only=True)
class Series:
    """One line. rows: by size, those without a time left out."""

    label: str
    rows: list[CaseRow]
    colour: str
    marker: str

    def handle(self) -> Line2D:
        """Its entry in the legend."""
        return Line2D([], [], color=self.colour, marker=self.marker, label=short(self.label))


def look(place: int) -> tuple[str, str]:
    """(colour, marker) of the series at `place`: the first 49 differ."""
    return COLOURS[place % len(COLOURS)], MARKERS[(place + place // len(COLOURS)) % len(MARKERS)]


def split(rows: Sequence[CaseRow], parts: Sequence[str], *, size: Callable[[CaseRow], float]) -> list[Series]:
    """One series for each different combination of `parts` (names of `PARTS`), in the order of the rows.

    Its label has the parts in which the rows differ; the same rows give the same labels and looks in every panel, so
    split all rows of a figure at once and `only` pick from them.
    """
    names = naming(rows, parts)
    groups: dict[str, list[CaseRow]] = {}
    for row in rows:
        groups.setdefault(names[row.point.point], []).append(row)
    found = []
    for place, (label, mine) in enumerate(groups.items()):
        colour, marker = look(place)
        timed = sorted((row for row in mine if row.timing.step_s.known), key=size)
        found.append(Series(label=label, rows=timed, colour=colour, marker=marker))
    return found


def of_op(series: Sequence[Series], op: str) -> list[Series]:
    """The same series with the rows of one operation; empty ones are left out."""
    return only(series, {row.point.point for one in series for row in one.rows if row.point.op == op})


def only(series: Sequence[Series], points: Container[str]) -> list[Series]:
    """The same series with the rows of these points; empty ones are left out."""
    picked = [(one, [row for row in one.rows if row.point.point in points]) for one in series]
    return [dataclasses.replace(one, rows=rows) for one, rows in picked if rows]


PARTS: dict[str, Callable[[CaseRow], str]] = {
    "op": lambda row: row.point.op,
    "impl": lambda row: row.point.impl,
    "dtype": lambda row: row.point.dtype,
    "shape": lambda row: row.point.shape or f"{row.point.elements}",
    "platform": lambda row: row.point.platform,
    "cores": lambda row: _cores(row),
    "group": lambda row: group(row),
    "pair": lambda row: f"{row.point.source} → {row.point.target}",
}


def naming(rows: Sequence[CaseRow], parts: Sequence[str], *, always: str = "") -> dict[str, str]:
    """Point -> its name, from `always` and the parts in which the rows differ, or else from the first part.

    "jit", "jit on gpu", "jit, float32 on 1 core": as `analysis.crossings` calls its series.
    """
    values = {part: [PARTS[part](row) for row in rows] for part in parts}
    telling = [part for part in parts if part == always or len(set(values[part]) - {""}) > 1] or list(parts[:1])
    what = [part for part in telling if part not in ("platform", "cores")]
    where = [part for part in telling if part not in what]
    names = {}
    for place, row in enumerate(rows):
        things, places = ([values[part][place] for part in chosen] for chosen in (what, where))
        names[row.point.point] = " on ".join(filter(None, [", ".join(filter(None, things)), *places]))
    return names


def _cores(row: CaseRow) -> str:
    """How many cores; "" on an accelerator, where they do not matter."""
    if row.point.platform != "cpu" or row.point.cores is None:
        return ""
    return "1 core" if row.point.cores == 1 else f"{row.point.cores} cores"


def group(row: CaseRow) -> str:
    """Who takes part in a collective: "8 devices", "4 devices along x of 2x4"."""
    point = row.point
    along = f" along {point.axis} of {point.mesh}" if "x" in point.mesh else ""
    return f"{devices(point.devices)}{along}" if point.family == "collective" else ""


def believed(row: CaseRow) -> bool:
    """Whether the row may be on a line: measured, right as far as is known, and not refused."""
    return row.timing.step_s.known and row.gate != "refused" and row.point.check_ok is not False


def plot(
    axes: Axes,
    series: Series,
    x: Callable[[CaseRow], float],
    value: Callable[[CaseRow], Estimate],
    *,
    scale: float = 1,
    line: Any = "-",
) -> None:
    """Draws one series: x(row) against scale * value(row), with its interval as an error bar."""
    known = [row for row in series.rows if value(row).known and x(row) > 0]
    good = [row for row in known if believed(row)]
    style: dict[str, Any] = dict(color=series.colour, marker=series.marker, linestyle="none")
    axes.plot(
        [x(r) for r in good], [scale * value(r).value for r in good], color=series.colour, linestyle=line, zorder=2
    )
    solid = [row for row in good if not row.point.oversubscribed]
    if solid:
        ends = np.array([_bar(value(row)) for row in solid]).T * scale
        axes.errorbar(
            [x(r) for r in solid], [scale * value(r).value for r in solid], yerr=ends, **style, capsize=1.8,
            elinewidth=0.8, capthick=0.8, zorder=3,
        )  # fmt: skip
    hollow = [row for row in good if row.point.oversubscribed]
    wrong = [row for row in known if row.point.check_ok is False]
    refused = [row for row in known if row.gate == "refused" and row.point.check_ok is not False]
    _marks(axes, hollow, x, value, scale, **style, markerfacecolor="white", markeredgewidth=0.9, zorder=4)
    _marks(axes, wrong, x, value, scale, linestyle="none", marker="x", color="black", markersize=7, zorder=5)
    _marks(axes, refused, x, value, scale, **_X, zorder=5)


def _marks(axes: Axes, rows: Sequence[CaseRow], x: Any, value: Any, scale: float, **look: Any) -> None:
    if rows:
        axes.plot([x(row) for row in rows], [scale * value(row).value for row in rows], **look)


def _bar(value: Estimate) -> tuple[float, float]:
    """How far the interval reaches below and above; 0 without one."""
    return (value.value - value.lo, value.hi - value.value) if value.has_interval else (0.0, 0.0)


def remarks(rows: Sequence[CaseRow], *, fake: bool = False) -> list[str]:
    """The footnotes that the marks of these rows need. fake: say what fake devices prove."""
    notes = []
    timed = [row for row in rows if row.timing.step_s.known]
    if any(row.point.oversubscribed for row in timed):
        notes.append(f"hollow: more devices than cores; {FAKE}" if fake else HOLLOW)
    if any(row.gate == "refused" and row.point.check_ok is not False for row in timed):
        notes.append(REFUSED)
    if any(row.point.check_ok is False for row in timed):
        notes.append(WRONG)
    return notes
