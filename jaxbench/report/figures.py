# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The scaling figure: throughput, speed-up and efficiency over devices, 7 inches wide, in SVG, PNG and PDF.

It must survive a black-and-white printer: a strategy is a marker and a colour (Okabe and Ito's palette, which colour-
blind readers can tell apart), strong scaling is a solid line and weak scaling a dotted one. Filled means measured and
honest, hollow means more devices than cores, hollow and dashed grey means published by others.
"""

from __future__ import annotations

import io
import logging
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

from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.scaling import Row
from jaxbench.catalog import published
from jaxbench.errors import UserError, did_you_mean
from jaxbench.records.store import write_atomic
from jaxbench.report.axes import devices_axis, efficiency_axis, speedup_axis, throughput_axis

OVERLAYS = ("tf_dgx1_p100_synth",)
HOLLOW = "hollow: more devices than cores; proves correctness, not speed"
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_LINES: dict[str, Any] = {"strong": "-", "weak": ":"}
_GREY = "#6b6b6b"
_STYLE: Any = {
    "font.family": "DejaVu Sans", "font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8, "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5, "legend.fontsize": 7.5, "axes.linewidth": 0.6, "axes.spines.top": False,
    "axes.spines.right": False, "lines.linewidth": 1.1, "lines.markersize": 4.0, "grid.linewidth": 0.4,
    "grid.color": "#d9d9d9", "axes.axisbelow": True, "svg.fonttype": "path", "svg.hashsalt": "jaxbench",
    "pdf.fonttype": 42, "text.usetex": False, "axes.formatter.use_mathtext": False, "figure.dpi": 100,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class _Series:
    """One line: a strategy in one scaling, its rows by device count."""

    strategy: str
    scaling: str
    rows: list[Row]
    colour: str
    marker: str


def write(rows: list[Row], folder: Path, *, title: str, overlay: str = "") -> dict[str, bytes]:
    """Writes ``scaling.svg``, ``.pdf`` and ``.png`` into `folder`. Returns their bytes by suffix.

    Raises:
      UserError: `overlay` is neither "" nor one of `OVERLAYS`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = render(rows, title=title, overlay=overlay)
    for suffix, data in files.items():
        write_atomic(folder / f"scaling.{suffix}", data)
    return files


def render(rows: list[Row], *, title: str, overlay: str = "") -> dict[str, bytes]:
    """The same figure in three formats. The bytes depend on the arguments alone: no dates, no random ids."""
    if overlay and overlay not in OVERLAYS:
        raise UserError(f"unknown overlay '{overlay}' in config.report.overlay: {did_you_mean(overlay, OVERLAYS)}")
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
    figure = Figure(figsize=(7.0, 0.75 + 2.05 * len(groups)), layout=spacing)
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(groups), 3, squeeze=False)
    for line, group in zip(panels, groups, strict=True):
        _panels(line, group, scaling=group[0].scaling if split else "", overlay=overlay)
    _legend(figure, series, title=title, split=split)
    footnotes = [HOLLOW] if any(r.point.oversubscribed for r in rows) else []
    if any(r.point.check_ok is False for s in series for r in s.rows):
        footnotes.append("crossed out: did not pass its check; the program computes something else")
    if overlay:
        footnotes.append(_citation(overlay))
    if footnotes:
        figure.supxlabel("\n".join(footnotes), fontsize=6.5, color="#333333", x=0.01, ha="left")
    return figure


def _citation(overlay: str) -> str:
    source = published.read(overlay)
    return f"dashed grey: published by others, not measured here. {source.project}, DGX-1, 8 P100; weak scaling"


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


def _panels(line: list[Axes], group: list[_Series], *, scaling: str, overlay: str) -> None:
    rate, speed, share = line
    counts = sorted({r.point.devices for s in group for r in s.rows})
    base = min((r.base.devices for s in group for r in s.rows if r.base is not None), default=1)
    reach = [*counts, 8] if overlay and scaling != "strong" else counts
    ideal = [count / base for count in reach]
    ends: dict[str, float] = {}
    speed.plot(reach, ideal, color=_GREY, linewidth=0.8, linestyle=(0, (6, 1.5)), zorder=1)
    share.axhline(100, color=_GREY, linewidth=0.8, linestyle=(0, (6, 1.5)), zorder=1)
    if overlay and scaling != "strong":
        ends = _overlay(speed, overlay)
    for place, series in enumerate(group):
        # Series of equal values stay visible when each is drawn a little beside the tick.
        dodge = 2 ** ((place - (len(group) - 1) / 2) * min(0.07, 0.2 / len(group)))
        _plot(rate, series, [r.timing.examples_per_s for r in series.rows], dodge=dodge)
        _plot(speed, series, [r.speedup for r in series.rows], dodge=dodge)
        _plot(share, series, [r.efficiency for r in series.rows], dodge=dodge, scale=100)
    prefix = f"{scaling}: " if scaling else ""
    units = {f"{r.point.record.unit}/s" for s in group for r in s.rows if r.point.record is not None}
    throughput_axis(rate, f"{prefix}{units.pop() if len(units) == 1 else 'examples/s'}")
    speedup_axis(speed, f"{prefix}speed-up over {base} device{'s' if base > 1 else ''}")
    efficiency_axis(share, f"{prefix}efficiency, %")
    _end_labels(speed, ends)
    if not counts:
        speed.text(0.5, 0.5, "nothing was measured", transform=speed.transAxes, ha="center", color=_GREY)
    for axes in line:
        devices_axis(axes, sorted(set(reach if axes is speed else counts)))


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


def _overlay(axes: Axes, overlay: str) -> dict[str, float]:
    """Draws published speed-ups, each over its own first row. Returns the last value of each series."""
    frame = published.read(overlay).frame.set_index("gpus")
    ends = {}
    for place, name in enumerate(frame.columns):
        speedup = frame[name] / frame[name].iloc[0]
        axes.plot(
            speedup.index, speedup, color="#8a8a8a", marker=_MARKERS[place % len(_MARKERS)], markersize=3,
            markerfacecolor="white", markeredgewidth=0.6, linewidth=0.7, linestyle="--", zorder=1.5,
        )  # fmt: skip
        ends[str(name)] = float(speedup.iloc[-1])
    return ends


def _end_labels(axes: Axes, ends: dict[str, float]) -> None:
    """Names right of the last points at 8 devices, pushed apart, each with a thin line to its point."""
    low, high = axes.get_ylim()
    apart = (high / low) ** 0.06
    y = high * apart
    for name, value in sorted(ends.items(), key=lambda item: -item[1]):
        y = min(value * apart, y / apart)
        axes.annotate(
            name, (8, value), xytext=(8 * 1.45, y), textcoords="data", fontsize=5.5, color="#444444", va="center",
            annotation_clip=False, zorder=0,
            arrowprops=dict(arrowstyle="-", color="#8a8a8a", linewidth=0.4, shrinkA=0, shrinkB=2, relpos=(0, 0.5)),
        )  # fmt: skip


def _legend(figure: Figure, series: list[_Series], *, title: str, split: bool) -> None:
    handles = []
    for one in series:
        if split and one.scaling != series[0].scaling:
            continue
        label = one.strategy if split else f"{one.strategy}, {one.scaling}"
        line = _LINES.get(one.scaling, "-")
        handles.append(Line2D([], [], color=one.colour, marker=one.marker, linestyle=line, label=label))
    handles.append(Line2D([], [], color=_GREY, linewidth=0.8, linestyle=(0, (6, 1.5)), label="ideal"))
    figure.legend(
        handles=handles, loc="outside upper center", ncols=min(len(handles), 5), frameon=False, handlelength=2.6,
        title=title, title_fontproperties={"weight": "bold", "size": 8.5}, borderpad=0.1,
    )  # fmt: skip
