# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The roofline (Williams, Waterman and Patterson 2009): attainable and measured performance.

The ceilings are the rates that `matmul` and `stream` measured on this machine. A program above them was measured
wrongly; a program far below them can become faster. Catalogue peaks, if known, are dashed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from jaxbench.analysis import quantities, roofline
from jaxbench.analysis.roofline import Ceilings
from jaxbench.analysis.run_rows import Row, dtype_of
from jaxbench.records.machine_profile import MachineProfile
from jaxbench.report.drawing import marks, notes
from jaxbench.report.drawing.axes import entitle, log_axis, plain, si
from jaxbench.report.drawing.canvas import Sheet, plot, short
from jaxbench.report.drawing.marks import DASHES, Mark
from jaxbench.report.drawing.series import naming
from jaxbench.report.run_report import CASES, RunReport

# Highest ceiling over the panel's bottom. Points further down show only the overhead of a call, and would squeeze the
# others.
DEPTH = 10**5.5
BELOW_RIDGE = 8.0  # the x axis starts at least this factor left of the ridge, so that the memory roof's rise is visible
_MEANING = {  # by state or kind
    "hollow": notes.HOLLOW,
    "refused": notes.REFUSED,
    "wrong": notes.WRONG,
    "training": "training steps: analytic FLOP over the compiler's bytes, summed over devices",
}
_PEAK: marks.Style = {**DASHES, "zorder": 1}
_HEAVY, _THIN = (dict[str, Any](color="black", linestyle="-", zorder=2, linewidth=width) for width in (1.4, 0.7))
MOST = 5  # series of kernels: more cannot be told apart, and are joined by operation
SAME = 1.2  # two bandwidths closer than this are one roof: their names would be printed over each other


@plot(
    "roofline",
    # Not for matmul and stream: the machine's page shows both under one roof.
    views=("training", *(f"cases/{view}" for view in ("curves", "fusion", "linalg"))),
    order=2,
)
def draw_roofline(run: RunReport) -> Figure | None:
    """Attainable FLOP/s against arithmetic intensity (FLOP per byte). Thick: the best matrix product and the best
    streaming rate measured on this machine; thin: other precisions and the caches; dashed: catalogue peaks. The
    distance of a point below the roof is its headroom."""
    if run.machine_profile is None or not run.rows:
        return None
    if run.kind == CASES:
        spots, what = of_cases(run.rows), "kernels"
        dtypes = [row.point.dtype for row in run.rows]
        dtype = max(dict.fromkeys(dtypes), key=dtypes.count)  # the most frequent one; of equal ones the first
    else:
        spots, what = of_training(run.rows), "training steps on the most devices"
        dtype = dtype_of(run.rows[0].point, run.config) or "float32"
    title = f"{run.experiment}: {what} under this machine's ceilings"
    return under(spots, profile=run.machine_profile, title=title, dtype=dtype)


def under(spots: Sequence[Spot], *, profile: MachineProfile, title: str, dtype: str) -> Figure | None:
    """Draws a panel per platform with spots of this run and a known bandwidth; None if there is no such platform.
    dtype: the number format with the thick FLOP/s ceiling."""
    known = {p: steep for p in dict.fromkeys(s.platform for s in spots) if (steep := steep_ceilings(profile, p))}
    if not known:
        return None
    sheet = Sheet(len(known), heights=3.3)
    styles = {label: place for place, label in enumerate(dict.fromkeys(s.label for s in spots))}
    slopes: list[tuple[Axes, Text]] = []
    remarks: list[str] = []
    for axes, (platform, steep) in zip(sheet.panels[:, 0], known.items(), strict=True):
        where = platform if len(known) > 1 else ""
        here = [spot for spot in spots if spot.platform == platform]
        flat = flat_ceilings(profile, platform, dtype)
        inside = [spot for spot in here if spot.value.value >= _top(flat, here) / DEPTH] or here  # never an empty panel
        slopes += [(axes, text) for text in _draw_ceilings(axes, flat, steep, inside)]
        for spot in inside:
            marks.line(axes, [spot], place=styles[spot.label])
        entitle(axes, where)
        if hidden := len(here) - len(inside):
            note = f"below the panel, because they show only the overhead of a call: {hidden} of small sizes"
            remarks.append(": ".join(filter(None, (where, note))))
        remarks += [note for word, note in _MEANING.items() if any(word in (spot.state, spot.kind) for spot in inside)]
    bars = [spot.n for spot in spots if spot.drawn.has_interval]
    remarks += [f"{notes.BARS}; {notes.n_of(bars)} per mark"] if bars else []
    handles = [marks.handle(place, short(label), between="none") for label, place in styles.items()]
    figure = sheet.finish(title, handles, remarks)
    figure.draw_without_rendering()  # the layout determines the slope of the diagonals on paper
    for axes, text in slopes:
        x, y = axes.get_xlim()[0], axes.get_ylim()[0]
        # A line with slope 1 on both logarithmic axes: ten times x is ten times y.
        start, end = axes.transData.transform([(x, y), (x * 10, y * 10)])
        text.set_rotation(float(np.degrees(np.arctan2(end[1] - start[1], end[0] - start[0]))))
    return figure


def _top(flat: Sequence[Roof], spots: Sequence[Spot]) -> float:
    """The highest ceiling, or a value above the spots if no matrix product was measured."""
    return max((roof.value for roof in flat), default=4 * max(spot.value.value for spot in spots))


def _draw_ceilings(axes: Axes, flat: Sequence[Roof], steep: Sequence[Roof], spots: Sequence[Spot]) -> list[Text]:
    """Draws all ceilings and sets the axes. Returns the names of the diagonals, for rotation after the layout."""
    rates, values, top = [roof.value for roof in steep], [spot.value.value for spot in spots], _top(flat, spots)
    left, right = _reach([spot.at for spot in spots], ridge=top / min(rates))
    for roof in flat:  # from the steepest roof on, above which no program can be
        axes.plot([roof.value / max(rates), right], [roof.value] * 2, **roof.style)
    for roof in steep:  # up to the highest flat one
        axes.plot([left, top / roof.value], [left * roof.value, top], **roof.style)
    # A name on each diagonal, on a ground that interrupts its line, so that it is clear which line it belongs to.
    style: marks.Style = dict(zorder=6, fontsize=6.5, color="#222222", rotation_mode="anchor", va="center", ha="left")
    ground, x = marks.Style(facecolor="white", edgecolor="none", pad=0.8), left * (right / left) ** 0.02
    names = [axes.text(x, x * roof.value, roof.label, bbox=ground, clip_on=True, **style) for roof in steep]
    log_axis(axes, "x", show=plain, span=(left, right))
    log_axis(axes, "y", show=si, span=values)
    axes.set_xlim(left, right)
    axes.set_ylim(min(*values, left * min(rates)) / 1.6, 2 * max(top, *values))
    entitle(axes, x="arithmetic intensity, FLOP/byte", y="FLOP/s")
    ends = [Line2D([right], [roof.value], label=short(roof.label, 30)) for roof in flat]
    marks.end_labels(axes, ends, reach=1.12, size=6.5)
    return names


def _reach(intensities: Sequence[float], *, ridge: float) -> tuple[float, float]:
    """Limits of the x axis, around the ridge. The left quarter has no spots: it holds the names of diagonals."""
    right = max(*intensities, 6 * ridge) * 1.5
    first = min(intensities)
    return min(first * (first / right) ** 0.33, ridge / BELOW_RIDGE), right


class Roof(NamedTuple):
    """One ceiling."""

    label: str  # its name and value
    value: float  # FLOP/s, or bytes/s for a diagonal
    style: marks.Style  # of its line


def flat_ceilings(profile: MachineProfile, platform: str, main: str) -> list[Roof]:
    """The FLOP/s ceilings of each precision on the largest measured number of cores. `main` is drawn heavy."""
    peaks = [peak for peak in profile["peaks"] if (peak["platform"], peak["quantity"]) == (platform, "flop_per_s")]
    roofs = []
    for dtype in dict.fromkeys([main, *(peak["dtype"] for peak in peaks)]):
        measured, catalogued = (ceiling.flop.rate for ceiling in _machine_ceilings(profile, platform, dtype))
        roofs.append((f"{dtype} {quantities.flops(measured)}", measured, _HEAVY if dtype == main else _THIN))
        roofs.append((f"{dtype} peak {quantities.flops(catalogued)}", catalogued, _PEAK))
    return [Roof(*roof) for roof in roofs if math.isfinite(roof[1])]


def steep_ceilings(profile: MachineProfile, platform: str) -> list[Roof]:
    """The bytes/s ceilings, steepest first; [] if no bandwidth is known."""
    measured, catalogued = _machine_ceilings(profile, platform, "")  # bandwidths are the same for every dtype
    named = [
        ("memory", measured.memory.rate, _HEAVY),
        ("cache", measured.cache.rate, _THIN),
        ("memory peak", catalogued.memory.rate, _PEAK),
    ]
    known = [(name, rate, style) for name, rate, style in named if math.isfinite(rate)]
    memory = measured.memory.rate
    if memory > 0:  # a cache that is hardly faster is no roof of its own
        known = [each for each in known if each[0] != "cache" or not 1 / SAME < each[1] / memory < SAME]
    return [
        Roof(f"{name} {quantities.per_second(rate)}", rate, style)
        for name, rate, style in sorted(known, key=lambda roof: -roof[1])
    ]


def _machine_ceilings(profile: MachineProfile, platform: str, dtype: str) -> tuple[Ceilings, Ceilings]:
    """(measured ceilings, catalogued ceilings)."""
    cores = [peak["cores"] for peak in profile["peaks"] if peak["platform"] == platform]
    measured = roofline.measured_ceilings(profile, platform, max(filter(None, cores), default=0), dtype)
    return measured, roofline.catalogued_ceilings(platform, str(profile["machine"].get("device_kind", "")), dtype)


@dataclass(frozen=True, kw_only=True)
class Spot(Mark):
    """One measured program under the roof. `at` is its arithmetic intensity: analytic FLOP of a call over the bytes
    that it must move. `value` is in FLOP/s of one accelerator, or of all CPU cores."""

    label: str  # the name of its series in the legend
    platform: str
    kind: str = "kernel"  # kernel | training


def of_cases(rows: Sequence[Row]) -> list[Spot]:
    """The spots of kernels with both FLOPs and bytes. A series is an operation."""
    able = [r for r in rows if r.point.flops and r.point.bytes_moved and r.flop_per_s.known]
    names = naming(able, ("op", "impl", "dtype", "platform", "cores"), always="op")
    if len(set(names.values())) > MOST:
        names = naming(able, ("op", "platform"), always="op")
    return [
        Spot(
            at=(row.point.flops or 0) / (row.point.bytes_moved or 1),
            value=row.flop_per_s,
            state=marks.state(row),
            label=names[row.point_id],
            platform=row.point.platform,
            n=marks.n_of(row),
        )
        for row in able
    ]


def of_training(rows: Sequence[Row]) -> list[Spot]:
    """The spots of training steps with bytes counted by the compiler: one for each strategy, on the most devices.

    Points with more devices than cores have no speed, and so no spot. Strong scaling stands for both, if both were
    measured.
    """
    spots = []
    most = max((row.point.devices for row in rows if not row.point.oversubscribed), default=0)
    both = {row.point.scaling for row in rows} == {"strong", "weak"}
    for row in rows:
        if row.point.devices != most or (both and row.point.scaling == "weak"):
            continue
        record, use = row.point.record, row.use
        moved = record.compile_report.compiler_bytes_per_step if record is not None else None
        if not moved or not use.flop_per_s > 0 or not row.timing.step_s.known:
            continue
        # The ceilings are of one accelerator, and of all cores of a CPU, which its devices share.
        share = 1 if row.point.platform == "cpu" else row.point.devices
        spots.append(
            Spot(
                at=use.flops_per_step / moved,
                value=row.timing.step_s.under(use.flops_per_step / share),
                state=marks.state(row),
                label=row.point.strategy,
                platform=row.point.platform,
                kind="training",
                n=marks.n_of(row),
            )
        )
    return spots
