# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The roofline (Williams, Waterman and Patterson 2009): attainable and measured performance.

The ceilings are the rates that `matmul` and `stream` measured on this machine. A program above them was measured
wrongly; a program far below them can become faster. Catalogue peaks, if known, are dashed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.text import Text

from jaxbench.analysis.scaling import dtype_of
from jaxbench.report import earlier_runs
from jaxbench.report.case_findings import CaseFindings
from jaxbench.report.drawing import marks, notes, roofline_ceilings
from jaxbench.report.drawing.axes import entitle, log_axis, plain, si
from jaxbench.report.drawing.kit import GREY, PALE, Axes, Figure, Line2D, Sheet, short
from jaxbench.report.drawing.roofline_ceilings import Roof
from jaxbench.report.drawing.roofline_points import Spot, of_cases, of_training
from jaxbench.report.findings import Findings

VIEWS = ("training", *(f"cases/{view}" for view in ("curves", "matmul", "stream", "fusion", "linalg")))
ORDER = 2
CAPTION = (
    "Attainable FLOP/s against arithmetic intensity (FLOP per byte). Thick: the best matrix product and the best "
    "streaming rate measured on this machine; thin: other precisions and the caches; dashed: catalogue peaks. The "
    "distance of a point below the roof is its headroom."
)
DEPTH = 10**5.5  # highest ceiling over the panel's bottom: points further down show only the overhead of a call
BELOW_RIDGE = 8.0  # the x axis starts at least this factor left of the ridge, so that the memory roof's rise is visible
_PAPER: Any = dict(facecolor="white", edgecolor="none", alpha=0.75, pad=0.3)
_MEANING = {  # by state or kind
    "hollow": notes.HOLLOW,
    "refused": notes.REFUSED,
    "wrong": notes.WRONG,
    "earlier": "small grey points: other runs on this machine, named by experiment",
    "training": "training steps: analytic FLOP over the compiler's bytes, summed over devices",
}


def draw(run: Findings | CaseFindings) -> Figure | None:
    """Draws the run's kernels or training steps under the ceilings of the machine profile; None without a profile."""
    if run.card is None or not run.rows:
        return None
    if isinstance(run, CaseFindings):
        spots, what = [*of_cases(run.rows), *earlier_runs.spots(run.path)], "kernels"
        dtypes = [row.point.dtype for row in run.rows]
        dtype = max(dict.fromkeys(dtypes), key=dtypes.count)
    else:
        spots, what = of_training(run.rows), "training steps"
        dtype = dtype_of(run.rows[0].point, run.config) or "float32"
    return under(spots, card=run.card, title=f"{run.experiment}: {what} under this machine's ceilings", dtype=dtype)


def under(spots: Sequence[Spot], *, card: dict[str, Any], title: str, dtype: str) -> Figure | None:
    """Draws a panel per platform with spots of this run and a known bandwidth; None if there is no such platform.

    Args:
      dtype: the number format with the thick FLOP/s ceiling.
    """
    own = [spot for spot in spots if spot.kind != "earlier"]
    known = {p: steep for p in dict.fromkeys(s.platform for s in own) if (steep := roofline_ceilings.steep(card, p))}
    if not known:
        return None
    sheet = Sheet(len(known), heights=3.3)
    styles = {label: place for place, label in enumerate(dict.fromkeys(s.label for s in own))}
    slopes: list[tuple[Axes, Text]] = []
    remarks: list[str] = []
    for axes, (platform, steep) in zip(sheet.panels[:, 0], known.items(), strict=True):
        where = platform if len(known) > 1 else ""
        here = [spot for spot in spots if spot.platform == platform]
        flat = roofline_ceilings.flat(card, platform, dtype)
        inside = [spot for spot in here if spot.value.value >= _top(flat, here) / DEPTH] or here
        slopes += [(axes, text) for text in _ceilings(axes, flat, steep, inside)]
        for spot in inside:
            if spot.kind != "earlier":
                marks.line(axes, [spot], place=styles[spot.label])
                continue
            axes.plot([spot.at], [spot.value.value], color=PALE, marker=".", markersize=3, markeredgewidth=0, zorder=3)
        _earlier_names(axes, [spot for spot in inside if spot.kind == "earlier"])
        entitle(axes, where)
        if hidden := len(here) - len(inside):
            note = f"below the panel, because they show only the overhead of a call: {hidden} of small sizes"
            remarks.append(": ".join(filter(None, (where, note))))
        remarks += [note for word, note in _MEANING.items() if any(word in (spot.state, spot.kind) for spot in inside)]
    bars = [spot.n for spot in own if spot.drawn.has_interval]
    remarks += [f"{notes.BARS}; {notes.n_of(bars)} a mark"] if bars else []
    if len(styles) < len({(spot.label, spot.at, spot.value.value) for spot in own if spot.kind == "training"}):
        remarks.append("several marks of one series: different device counts and scalings")
    handles = [marks.handle(place, short(label), between="none") for label, place in styles.items()]
    figure = sheet.finish(title, handles, remarks)
    figure.draw_without_rendering()  # the layout determines the slope of the diagonals on paper
    for axes, text in slopes:
        text.set_rotation(_angle(axes))
    return figure


def _top(flat: Sequence[Roof], spots: Sequence[Spot]) -> float:
    """The highest ceiling, or a value above the spots if no matrix product was measured."""
    return max((roof.value for roof in flat), default=4 * max(spot.value.value for spot in spots))


def _ceilings(axes: Axes, flat: Sequence[Roof], steep: Sequence[Roof], spots: Sequence[Spot]) -> list[Text]:
    """Draws all ceilings and sets the axes. Returns the names of the diagonals, for rotation after the layout."""
    rates, values, top = [one.value for one in steep], [spot.value.value for spot in spots], _top(flat, spots)
    left, right = _reach([spot.at for spot in spots], ridge=top / min(rates))
    for one in flat:
        axes.plot([one.value / max(rates), right], [one.value] * 2, **one.style)
    for one in steep:
        axes.plot([left, top / one.value], [left * one.value, top], **one.style)
    names = _diagonal_names(axes, steep, (left, right))
    log_axis(axes, "x", show=plain, span=(left, right))
    log_axis(axes, "y", show=si, span=values)
    axes.set_xlim(left, right)
    axes.set_ylim(min(*values, left * min(rates)) / 1.6, 2 * max(top, *values))
    entitle(axes, x="arithmetic intensity, FLOP/byte", y="FLOP/s")
    ends = [Line2D([right], [one.value], label=short(one.label, 30)) for one in flat]
    marks.end_labels(axes, ends, reach=1.12, size=6.5)
    return names


def _diagonal_names(axes: Axes, steep: Sequence[Roof], span: tuple[float, float]) -> list[Text]:
    """Writes a name on each diagonal, interrupting its line, so that it is clear which line the name belongs to."""
    style: Any = dict(zorder=6, fontsize=6.5, color="#222222", rotation_mode="anchor", va="center", ha="left")
    paper: Any = dict(facecolor="white", edgecolor="none", pad=0.8)
    x = span[0] * (span[1] / span[0]) ** 0.02
    return [axes.text(x, x * roof.value, roof.label, bbox=paper, clip_on=True, **style) for roof in steep]


def _reach(intensities: Sequence[float], *, ridge: float) -> tuple[float, float]:
    """Limits of the x axis, around the ridge. The left quarter has no spots: it holds the names of diagonals."""
    right = max(*intensities, 6 * ridge) * 1.5
    first = min(intensities)
    return min(first * (first / right) ** 0.33, ridge / BELOW_RIDGE), right


def _earlier_names(axes: Axes, spots: Sequence[Spot]) -> None:
    """Writes the name of each experiment at its highest spot; overlapping names move down."""
    highest: dict[str, Spot] = {}
    for spot in spots:
        if spot.label not in highest or spot.value.value > highest[spot.label].value.value:
            highest[spot.label] = spot
    taken: list[tuple[float, float]] = []
    (left, right), (low, high) = np.log(axes.get_xlim()), np.log(axes.get_ylim())
    for spot in sorted(highest.values(), key=lambda s: -s.value.value):
        x = (math.log(spot.at) - left) / (right - left)
        y = (math.log(spot.value.value) - low) / (high - low) - 0.04  # below the spot: above it is often a ceiling
        while any(abs(x - a) < 0.16 and abs(y - b) < 0.045 for a, b in taken):
            y -= 0.02
        taken.append((x, y))
        beside, side = (x - 0.01, "right") if x > 0.8 else (x + 0.01, "left")
        axes.text(
            beside, y, short(spot.label, 24), transform=axes.transAxes, fontsize=6, color=GREY, va="center", ha=side,
            zorder=3.5, bbox=_PAPER,
        )  # fmt: skip


def _angle(axes: Axes) -> float:
    """The angle on paper, in degrees, of a line with slope 1 on both logarithmic axes."""
    x, y = axes.get_xlim()[0], axes.get_ylim()[0]
    start, end = axes.transData.transform([(x, y), (x * 10, y * 10)])
    return float(np.degrees(np.arctan2(end[1] - start[1], end[0] - start[0])))
