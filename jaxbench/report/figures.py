# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The scaling figure: throughput, speed-up and efficiency over devices, 7 inches wide, in SVG, PNG and PDF.

It must survive a black-and-white printer: a strategy is a marker and a colour (Okabe and Ito's palette, which colour-
blind readers can tell apart), strong scaling is a solid line and weak scaling a dotted one. Filled means measured and
honest, hollow means more devices than cores, hollow and dashed grey means published by others.
"""

from __future__ import annotations

import io
import logging
import textwrap
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D

from jaxbench.analysis.headline import devices
from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.scaling import Row
from jaxbench.catalog import published
from jaxbench.errors import UserError, did_you_mean
from jaxbench.records.store import write_atomic
from jaxbench.report.axes import devices_axis, efficiency_axis, speedup_axis, throughput_axis

HOLLOW = "hollow: more devices than cores; proves correctness, not speed"
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_LINES: dict[str, Any] = {"strong": "-", "weak": ":"}
_GREY = "#6b6b6b"
_DASHES: Any = dict(color=_GREY, linewidth=0.8, linestyle=(0, (6, 1.5)))
_TITLE, _NAME, _LEGEND, _NOTE = 84, 40, 110, 150  # letters that fit: a title line, a name, the legend, a footnote line
_STYLE: Any = {
    "font.family": "DejaVu Sans", "font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8, "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5, "legend.fontsize": 7.5, "axes.linewidth": 0.6, "axes.spines.top": False,
    "axes.spines.right": False, "lines.linewidth": 1.1, "lines.markersize": 4.0, "grid.linewidth": 0.4,
    "grid.color": "#d9d9d9", "axes.axisbelow": True, "svg.fonttype": "path", "svg.hashsalt": "jaxbench",
    "pdf.fonttype": 42, "text.usetex": False, "axes.formatter.use_mathtext": False, "text.parse_math": False,
    "figure.dpi": 100,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class _Series:
    """One line: a strategy in one scaling, its rows by device count."""

    strategy: str
    scaling: str
    rows: list[Row]
    colour: str
    marker: str

    @property
    def base(self) -> int | None:
        """The device count that its speed-ups are over."""
        return next((r.base.devices for r in self.rows if r.base is not None), None)


def write(rows: list[Row], folder: Path, *, title: str, overlay: str = "") -> dict[str, bytes]:
    """Writes ``scaling.svg``, ``.pdf`` and ``.png`` into `folder`. Returns their bytes by suffix.

    Raises:
      UserError: `overlay` is neither "" nor one of `published.overlays`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = render(rows, title=title, overlay=overlay)
    for suffix, data in files.items():
        write_atomic(folder / f"scaling.{suffix}", data)
    return files


def render(rows: list[Row], *, title: str, overlay: str = "") -> dict[str, bytes]:
    """The same figure in three formats. The bytes depend on the arguments alone: no dates, no random ids."""
    if overlay and overlay not in published.overlays():
        meant = did_you_mean(overlay, published.overlays())
        raise UserError(f"unknown overlay '{overlay}' in config.report.overlay: {meant} Give \"\" for none.")
    metadata = {
        "svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
        "pdf": {"CreationDate": None, "Creator": "jaxbench", "Producer": None},
        "png": {"Software": None},
    }
    files = {}
    with _style():
        figure = draw(rows, title=title, overlay=overlay)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # keeps the layout just found: once is enough for three formats
        for suffix, facts in metadata.items():
            buffer = io.BytesIO()
            figure.savefig(buffer, format=suffix, dpi=200, metadata=facts)
            files[suffix] = buffer.getvalue()
    return files


@contextmanager
def _style() -> Iterator[None]:
    """This figure's settings, whatever the user's matplotlibrc says; both are as before afterwards."""
    chatty = logging.getLogger("fontTools")  # tells every glyph that goes into the PDF
    level = chatty.level
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        chatty.setLevel(logging.WARNING)
        try:
            yield
        finally:
            chatty.setLevel(level)


def draw(rows: list[Row], *, title: str, overlay: str = "") -> Figure:
    """One row of three panels; with more than two strategies strong and weak get a row each."""
    series = _series(rows)
    scalings = list(dict.fromkeys(s.scaling for s in series)) or ["strong"]
    split = len({s.strategy for s in series}) > 2 and len(scalings) > 1
    groups = [[s for s in series if s.scaling == scaling] for scaling in scalings] if split else [series]
    spacing = ConstrainedLayoutEngine(w_pad=0.04, h_pad=0.03, wspace=0.03)
    figure = Figure(figsize=(7.0, 1.0), layout=spacing)
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(groups), 3, squeeze=False)
    handles, footnotes = [], [HOLLOW] if any(r.point.oversubscribed for r in rows) else []
    if any(r.point.check_ok is False for s in series for r in s.rows):
        footnotes.append("crossed out: did not pass its check; the program computes something else")
    for line, group in zip(panels, groups, strict=True):
        entries, notes = _panels(line, group, scaling=group[0].scaling if split else "", overlay=overlay)
        handles.extend(entries)
        footnotes.extend(notes)
    lines_above = _legend(figure, series, title=title, split=split, published_series=handles)
    if footnotes:
        text = "\n".join(textwrap.fill(note, _NOTE) for note in footnotes)
        figure.supxlabel(text, fontsize=6.5, color="#333333", x=0.01, ha="left")
    figure.set_figheight(0.45 + 2.05 * len(groups) + 0.15 * lines_above)  # or a long legend would flatten the panels
    return figure


def _short(name: str, limit: int = _NAME) -> str:
    """A long name without its middle, so that its ends still tell it from others."""
    return name if len(name) <= limit else f"{name[: limit // 2 - 1]}…{name[-(limit // 2) :]}"


def _series(rows: list[Row]) -> list[_Series]:
    strategies = list(dict.fromkeys(r.point.strategy for r in rows))
    families = list(dict.fromkeys((r.point.strategy, r.point.scaling) for r in rows))
    series = []
    for place, (strategy, scaling) in enumerate(families):
        mine = [r for r in rows if (r.point.strategy, r.point.scaling) == (strategy, scaling)]
        number = strategies.index(strategy)
        look = number if len(strategies) > 1 else place
        series.append(
            _Series(
                strategy=strategy,
                scaling=scaling,
                rows=sorted((r for r in mine if r.timing.step_s.known), key=lambda r: r.point.devices),
                colour=_COLOURS[look % len(_COLOURS)],
                marker=_MARKERS[look % len(_MARKERS)],
            )
        )
    return series


def _panels(line: list[Axes], group: list[_Series], *, scaling: str, overlay: str) -> tuple[list[Line2D], list[str]]:
    """Draws one row of panels. Returns what it adds to the legend and to the footnotes."""
    rate, speed, share = line
    base, others = _common_base(group)
    share.axhline(100, **_DASHES, zorder=1)
    for place, series in enumerate(group):
        # Series of equal values stay visible when each is drawn a little beside the tick.
        dodge = 2 ** ((place - (len(group) - 1) / 2) * min(0.07, 0.2 / len(group)))
        _plot(rate, series, [r.timing.examples_per_s for r in series.rows], dodge=dodge)
        if series.base == base:
            _plot(speed, series, [r.speedup for r in series.rows], dodge=dodge)
        _plot(share, series, [r.efficiency for r in series.rows], dodge=dodge, scale=100)
    counts = sorted({r.point.devices for s in group for r in s.rows})
    reach = {r.point.devices for s in group if s.base == base for r in s.rows}
    wanted = bool(overlay) and scaling != "strong"
    behind = _overlay(speed, overlay) if wanted and base == 1 else []
    published_counts = {int(x) for one in behind for x in np.asarray(one.get_xdata())}
    span = sorted(reach | published_counts)
    speed.plot(span, [count / base for count in span], **_DASHES, zorder=1)
    prefix = f"{scaling}: " if scaling else ""
    units = {f"{_short(r.point.record.unit)}/s" for s in group for r in s.rows if r.point.record is not None}
    throughput_axis(rate, f"{prefix}{units.pop() if len(units) == 1 else 'examples/s'}")
    speedup_axis(speed, f"{prefix}speed-up over {devices(base)}")
    efficiency_axis(share, f"{prefix}efficiency, %")
    in_margin = max(span, default=1) == max(published_counts, default=0)
    if in_margin:
        _end_labels(speed, behind)
    if not counts:
        speed.text(0.5, 0.5, "nothing was measured", transform=speed.transAxes, ha="center", color=_GREY)
    for axes in line:
        devices_axis(axes, span if axes is speed else counts)
    notes = [_left_out(others)] if others else []
    if wanted:
        notes.append(_citation(overlay, drawn=bool(behind), base=base))
    return [] if in_margin else behind, notes


def _common_base(group: list[_Series]) -> tuple[int, list[_Series]]:
    """The base of most series (the smallest of equals; 1 if there is none), and the series that have another."""
    votes = Counter(s.base for s in group if s.base is not None)
    base = min(votes, key=lambda count: (-votes[count], count), default=1)
    return base, [s for s in group if s.base not in (None, base)]


def _left_out(others: list[_Series]) -> str:
    said = [f"{_short(s.strategy)} {s.scaling} (base {devices(s.base)})" for s in others if s.base is not None]
    return f"not in the speed-up panel, which has one base: {', '.join(said)}"


def _citation(overlay: str, *, drawn: bool, base: int) -> str:
    source = f"{published.read(overlay).project}, DGX-1, 8 P100; weak scaling"
    if not drawn:
        return f"published speed-ups are over 1 GPU and not drawn beside these over {devices(base)} ({source})"
    return f"dashed grey: published by others, not measured here. {source}"


def _plot(axes: Axes, series: _Series, values: list[Estimate], *, dodge: float, scale: float = 1) -> None:
    """The line through all points; filled markers with error bars where honest, hollow without where oversubscribed."""
    look: dict[str, Any] = dict(color=series.colour, marker=series.marker, linestyle="none")
    x = np.array([r.point.devices * dodge for r in series.rows])
    y = scale * np.array([v.value for v in values])
    ends = scale * np.array([(v.lo, v.hi) if v.has_interval else (v.value, v.value) for v in values]).reshape(-1, 2)
    hollow = np.array([r.point.oversubscribed for r in series.rows], dtype=bool)
    wrong = np.array([r.point.check_ok is False for r in series.rows], dtype=bool)
    bars = np.abs(ends.T - y)[:, ~hollow]
    axes.plot(x, y, color=series.colour, linestyle=_LINES.get(series.scaling, "-"), zorder=2)
    axes.errorbar(x[~hollow], y[~hollow], yerr=bars, **look, capsize=2.4, elinewidth=0.8, capthick=0.8, zorder=3)
    axes.plot(x[hollow], y[hollow], **look, markerfacecolor="white", markeredgewidth=0.9, zorder=4)
    axes.plot(x[wrong], y[wrong], linestyle="none", marker="x", color="black", markersize=8, zorder=5)


def _overlay(axes: Axes, overlay: str) -> list[Line2D]:
    """Draws published speed-ups, each over its own first row. Returns the lines, labelled with their names."""
    frame = published.read(overlay).frame.set_index("gpus")
    drawn = []
    for place, name in enumerate(frame.columns):
        drawn += axes.plot(
            frame.index, frame[name] / frame[name].iloc[0], color="#8a8a8a", marker=_MARKERS[place % len(_MARKERS)],
            markersize=3, markerfacecolor="white", markeredgewidth=0.6, linewidth=0.7, linestyle="--", zorder=1.5,
            label=str(name),
        )  # fmt: skip
    return drawn


def _end_labels(axes: Axes, lines: list[Line2D]) -> None:
    """Names right of the last points of the panel, pushed apart, each with a thin line to its point."""
    low, high = axes.get_ylim()
    apart = (high / low) ** 0.06
    y = high * apart
    ends = [(*np.asarray(line.get_xydata())[-1], str(line.get_label())) for line in lines]
    for x, value, name in sorted(ends, key=lambda end: -end[1]):
        y = min(value * apart, y / apart)
        axes.annotate(
            name, (x, value), xytext=(x * 1.45, y), textcoords="data", fontsize=5.5, color="#444444", va="center",
            annotation_clip=False, zorder=0,
            arrowprops=dict(arrowstyle="-", color="#8a8a8a", linewidth=0.4, shrinkA=0, shrinkB=2, relpos=(0, 0.5)),
        )  # fmt: skip


def _legend(figure: Figure, series: list[_Series], *, title: str, split: bool, published_series: list[Line2D]) -> int:
    """Title and legend above the panels. Returns how many lines they take."""
    handles = []
    for one in series:
        if split and one.scaling != series[0].scaling:
            continue
        label = _short(one.strategy) if split else f"{_short(one.strategy)}, {one.scaling}"
        line = _LINES.get(one.scaling, "-")
        handles.append(Line2D([], [], color=one.colour, marker=one.marker, linestyle=line, label=label))
    handles.append(Line2D([], [], **_DASHES, label="ideal"))
    handles.extend(published_series)
    widest = max(len(str(handle.get_label())) for handle in handles) + 8  # the sample of the line
    columns = max(1, min(len(handles), 5, _LEGEND // widest))
    heading = textwrap.fill(_short(title, 2 * _TITLE - 10), _TITLE)
    figure.legend(
        handles=handles, loc="outside upper center", ncols=columns, title=heading, frameon=False, handlelength=2.6,
        title_fontproperties={"weight": "bold", "size": 8.5}, borderpad=0.1,
    )  # fmt: skip
    return -(-len(handles) // columns) + heading.count("\n") + 1
