# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The roofline (Williams, Waterman and Patterson 2009): attainable and measured performance.

The ceilings are the rates that `matmul` and `stream` measured on this machine. A program above them was measured
wrongly; a program far below them can become faster. Catalogue peaks, if known, are dashed."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from jaxbench.analysis import quantities, roofline
from jaxbench.analysis.quantities import devices
from jaxbench.analysis.roofline import Ceilings
from jaxbench.analysis.run_rows import Row, dtype_of
from jaxbench.core.store import MANIFEST, RunFolder
from jaxbench.errors import UserError
from jaxbench.records import identity, reading
from jaxbench.records.machine_profile import MachineProfile
from jaxbench.records.manifest import Machine, Manifest
from jaxbench.records.reading import csv_table
from jaxbench.report.drawing import marks, notes
from jaxbench.report.drawing.axes import entitle, log_axis, plain, si
from jaxbench.report.drawing.canvas import Sheet, plot, short
from jaxbench.report.drawing.marks import DASHES, GREY, PALE, Mark, exact
from jaxbench.report.drawing.series import naming
from jaxbench.report.run_report import CASES, RunReport
from jaxbench.texts import from_cell

# Highest ceiling over the panel's bottom. Points further down show only the overhead of a call, and would squeeze the
# others.
DEPTH = 10**5.5
BELOW_RIDGE = 8.0  # the x axis starts at least this factor left of the ridge, so that the memory roof's rise is visible
_PAPER: marks.Style = dict(facecolor="white", edgecolor="none", alpha=0.75, pad=0.3)
_MEANING = {  # by state or kind
    "hollow": notes.HOLLOW,
    "refused": notes.REFUSED,
    "wrong": notes.WRONG,
    "earlier": "small grey points: other runs on this machine, named by experiment",
    "training": "training steps: analytic FLOP over the compiler's bytes, summed over devices",
}
_PEAK: marks.Style = {**DASHES, "zorder": 1}
_HEAVY, _THIN = (dict[str, Any](color="black", linestyle="-", zorder=2, linewidth=width) for width in (1.4, 0.7))
MOST_LABELS = 8  # up to this many series, device counts are separate; more would make the legend as large as the panel
LIMIT = 40  # read at most this many folders, newest first


@plot(
    "roofline",
    views=("training", *(f"cases/{view}" for view in ("curves", "matmul", "stream", "fusion", "linalg"))),
    order=2,
)
def draw_roofline(run: RunReport) -> Figure | None:
    """Attainable FLOP/s against arithmetic intensity (FLOP per byte). Thick: the best matrix product and the best
    streaming rate measured on this machine; thin: other precisions and the caches; dashed: catalogue peaks. The
    distance of a point below the roof is its headroom."""
    if run.card is None or not run.rows:
        return None
    if run.kind == CASES:
        spots, what = [*of_cases(run.rows), *earlier_spots(run.path)], "kernels"
        dtypes = [row.point.dtype for row in run.rows]
        dtype = max(dict.fromkeys(dtypes), key=dtypes.count)  # the most frequent one; of equal ones the first
    else:
        spots, what = of_training(run.rows), "training steps"
        dtype = dtype_of(run.rows[0].point, run.config) or "float32"
    return under(spots, card=run.card, title=f"{run.experiment}: {what} under this machine's ceilings", dtype=dtype)


def under(spots: Sequence[Spot], *, card: MachineProfile, title: str, dtype: str) -> Figure | None:
    """Draws a panel per platform with spots of this run and a known bandwidth; None if there is no such platform.
    dtype: the number format with the thick FLOP/s ceiling."""
    own = [spot for spot in spots if spot.kind != "earlier"]
    known = {p: steep for p in dict.fromkeys(s.platform for s in own) if (steep := steep_ceilings(card, p))}
    if not known:
        return None
    sheet = Sheet(len(known), heights=3.3)
    styles = {label: place for place, label in enumerate(dict.fromkeys(s.label for s in own))}
    slopes: list[tuple[Axes, Text]] = []
    remarks: list[str] = []
    for axes, (platform, steep) in zip(sheet.panels[:, 0], known.items(), strict=True):
        where = platform if len(known) > 1 else ""
        here = [spot for spot in spots if spot.platform == platform]
        flat = flat_ceilings(card, platform, dtype)
        inside = [spot for spot in here if spot.value.value >= _top(flat, here) / DEPTH] or here  # never an empty panel
        slopes += [(axes, text) for text in _draw_ceilings(axes, flat, steep, inside)]
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
    remarks += [f"{notes.BARS}; {notes.n_of(bars)} per mark"] if bars else []
    if len(styles) < len({(spot.label, spot.at, spot.value.value) for spot in own if spot.kind == "training"}):
        remarks.append("several marks of one series: different device counts and scalings")
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


def _earlier_names(axes: Axes, spots: Sequence[Spot]) -> None:
    """Writes the name of each experiment at its highest spot; overlapping names move down."""
    ascending = sorted(spots, key=lambda spot: spot.value.value)
    highest = {spot.label: spot for spot in ascending}  # the last and highest of each experiment stays
    taken: list[tuple[float, float]] = []  # shares of the panel's width and height
    (left, right), (low, high) = np.log(axes.get_xlim()), np.log(axes.get_ylim())
    for spot in sorted(highest.values(), key=lambda s: -s.value.value):
        x = (math.log(spot.at) - left) / (right - left)
        y = (math.log(spot.value.value) - low) / (high - low) - 0.04  # below the spot: above it is often a ceiling
        while any(abs(x - a) < 0.16 and abs(y - b) < 0.045 for a, b in taken):  # about the size of a name
            y -= 0.02
        taken.append((x, y))
        x_text, side = (x - 0.01, "right") if x > 0.8 else (x + 0.01, "left")
        axes.text(
            x_text,
            y,
            short(spot.label, 24),
            transform=axes.transAxes,
            fontsize=6,
            color=GREY,
            va="center",
            ha=side,
            zorder=3.5,
            bbox=_PAPER,
        )


class Roof(NamedTuple):
    """One ceiling."""

    label: str  # its name and value
    value: float  # FLOP/s, or bytes/s for a diagonal
    style: marks.Style  # of its line


def flat_ceilings(card: MachineProfile, platform: str, main: str) -> list[Roof]:
    """The FLOP/s ceilings of each precision on the largest measured number of cores. `main` is drawn heavy."""
    peaks = [peak for peak in card["peaks"] if (peak["platform"], peak["quantity"]) == (platform, "flop_per_s")]
    roofs = []
    for dtype in dict.fromkeys([main, *(peak["dtype"] for peak in peaks)]):
        measured, catalogued = (ceiling.flop.rate for ceiling in _machine_ceilings(card, platform, dtype))
        roofs.append((f"{dtype} {quantities.flops(measured)}", measured, _HEAVY if dtype == main else _THIN))
        roofs.append((f"{dtype} peak {quantities.flops(catalogued)}", catalogued, _PEAK))
    return [Roof(*roof) for roof in roofs if math.isfinite(roof[1])]


def steep_ceilings(card: MachineProfile, platform: str) -> list[Roof]:
    """The bytes/s ceilings, steepest first; [] if no bandwidth is known."""
    measured, catalogued = _machine_ceilings(card, platform, "")  # bandwidths are the same for every dtype
    named = [
        ("memory", measured.memory.rate, _HEAVY),
        ("cache", measured.cache.rate, _THIN),
        ("memory peak", catalogued.memory.rate, _PEAK),
    ]
    known = [(name, rate, style) for name, rate, style in named if math.isfinite(rate)]
    return [
        Roof(f"{name} {quantities.per_second(rate)}", rate, style)
        for name, rate, style in sorted(known, key=lambda roof: -roof[1])
    ]


def _machine_ceilings(card: MachineProfile, platform: str, dtype: str) -> tuple[Ceilings, Ceilings]:
    """(measured ceilings, catalogued ceilings)."""
    cores = [peak["cores"] for peak in card["peaks"] if peak["platform"] == platform]
    measured = roofline.measured_ceilings(card, platform, max(filter(None, cores), default=0), dtype)
    return measured, roofline.catalogued_ceilings(platform, str(card["machine"].get("device_kind", "")), dtype)


@dataclass(frozen=True, kw_only=True)
class Spot(Mark):
    """One measured program under the roof. `at` is its arithmetic intensity: analytic FLOP of a call over the bytes
    that it must move. `value` is in FLOP/s of one accelerator, or of all CPU cores."""

    label: str  # the name of its series in the legend; for an earlier run, its experiment
    platform: str
    kind: str = "kernel"  # kernel | training | earlier


def of_cases(rows: Sequence[Row]) -> list[Spot]:
    """The spots of kernels with both FLOPs and bytes. A series is an operation."""
    able = [r for r in rows if r.point.flops and r.point.bytes_moved and r.flop_per_s.known]
    names = naming(able, ("op", "impl", "dtype", "platform", "cores"), always="op")
    if len(set(names.values())) > 14:  # more than a legend can hold and a reader can distinguish
        names = naming(able, ("op",))
    return [
        Spot(
            at=(row.point.flops or 0) / (row.point.bytes_moved or 1),
            value=row.flop_per_s,
            state=marks.state(row),
            label=names[row.point.point],
            platform=row.point.platform,
            n=marks.n_of(row),
        )
        for row in able
    ]


def of_training(rows: Sequence[Row]) -> list[Spot]:
    """The spots of training steps with bytes counted by the compiler. A series is a strategy or, if there are few, a
    strategy and device count."""
    spots = []
    of_count = len({(row.point.strategy, row.point.devices) for row in rows}) <= MOST_LABELS
    for row in rows:
        record, use = row.point.record, row.use
        moved = record.passport.compiler_bytes_per_step if record is not None else None
        if not moved or not use.flop_per_s > 0 or not row.timing.step_s.known:
            continue
        # The ceilings are of one accelerator, and of all cores of a CPU, which its devices share.
        share = 1 if row.point.platform == "cpu" else row.point.devices
        spots.append(
            Spot(
                at=use.flops_per_step / moved,
                value=row.timing.step_s.under(use.flops_per_step / share),
                state=marks.state(row),
                label=", ".join([row.point.strategy, *[devices(row.point.devices)] * of_count]),
                platform=row.point.platform,
                kind="training",
                n=marks.n_of(row),
            )
        )
    return spots


def earlier_spots(path: Path) -> list[Spot]:
    """One spot for each valid number in the ``summary.csv`` of the folders next to `path`, by experiment.

    Runs of `jaxbench machine`, one folder deeper, count, too. A folder is skipped if it is not a run, is of another
    machine or cannot be read, because these spots are only background.
    """
    this_machine = _manifest(path)
    if this_machine is None:
        return []
    here = path.resolve()
    folders = [file.parent for pattern in ("*", "*/*") for file in here.parent.glob(f"{pattern}/summary.csv")]
    runs = [folder for folder in folders if folder != here and (folder / MANIFEST).is_file()]
    newest = sorted(runs, key=lambda folder: ((folder / MANIFEST).stat().st_mtime, folder.name), reverse=True)[:LIMIT]
    # By name again: times of files change when folders are copied, and the figure must not.
    return [spot for folder in sorted(newest) for spot in _of_folder(folder, this_machine)]


def _of_folder(folder: Path, this_machine: Machine) -> Iterator[Spot]:
    manifest = _manifest(folder)
    if manifest is None or identity.hardware(manifest, this_machine):
        return
    path = folder / "summary.csv"
    with contextlib.suppress(UserError):  # it may be written at this moment, or by another version
        lines = csv_table(path, reading.data(path, ""), (), "")  # read as a whole: a damaged file has no spots
        yield from filter(None, (_spot(line) for _, line in lines))


def _spot(line: dict[str, str]) -> Spot | None:
    """The spot of a row; None if it is wrong, oversubscribed or refused, or has no FLOPs or bytes."""
    good = line.get("status") == "ok" and line.get("check_ok") == "true" and line.get("oversubscribed") == "false"
    flops = _number(line.get("flops")) or _number(line.get("flops_per_step"))  # older files have the second only
    moved, rate = _number(line.get("bytes_moved")), _number(line.get("flop_per_s"))
    if not good or line.get("gate") == "refused" or not (flops > 0 and moved > 0 and rate > 0):
        return None
    platform = line.get("platform") or ""
    share = 1 if platform == "cpu" or line.get("op") else max(1.0, _number(line.get("devices")))
    return Spot(
        label=from_cell(line.get("experiment") or ""),
        at=flops / moved,
        value=exact(rate / share),
        platform=platform,
        kind="earlier",
    )


def _number(text: str | None) -> float:
    """The number; 0 if the text is not a finite number."""
    try:
        value = float(text or 0)
    except ValueError:
        return 0.0
    return value if math.isfinite(value) else 0.0


def _manifest(folder: Path) -> Manifest | None:
    """The manifest; None if it cannot be read, because the folders next to a run may hold anything."""
    with contextlib.suppress(UserError):
        return RunFolder(folder).manifest()
    return None
