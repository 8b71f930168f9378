# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Figures of strategies that split the model or the sequence over devices."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.typing import LineStyleType

from jaxbench.analysis import studies
from jaxbench.analysis.quantities import devices
from jaxbench.analysis.run_rows import Row
from jaxbench.analysis.waterfall import idle_share
from jaxbench.catalog import published
from jaxbench.digits import digits
from jaxbench.levers import ACCUMULATE, SCHEDULE
from jaxbench.records.studies import Longest, LongestOn
from jaxbench.report.drawing import axes as scales
from jaxbench.report.drawing import marks, notes, series, shapes
from jaxbench.report.drawing.axes import bytes_tick, devices_axis, entitle, log_axis, plain
from jaxbench.report.drawing.canvas import Sheet, plot, short
from jaxbench.report.drawing.marks import GREY, Mark, exact
from jaxbench.report.drawing.series import received, received_bytes
from jaxbench.report.drawing.shapes import Chart, Layer, Log, Panel, on
from jaxbench.report.run_report import RunReport
from jaxbench.statistics import paired_ratio
from jaxbench.statistics.bootstrap import UNKNOWN, Estimate

WEAK, STRONG = "megatron2019_weak_scaling", "megatron2019_strong_scaling"  # published tables of the catalogue
_WEAK_COLUMNS = (("mp", "D", "Megatron: model"), ("mp_dp", "v", "Megatron: model + data"))
_STRONG_SHAPE, _STRONG_NAME = "P", "Megatron: strong"
_STYLES: dict[str, LineStyleType] = {"strong": "-", "weak": ":"}
GPIPE = "gpipe_table2_tpu"
_PIPELINE_BETWEEN: dict[str, LineStyleType] = {"gpipe": "-", "1f1b": (0, (4, 1.5)), "interleaved": ":"}
_THEORY: marks.Style = dict(color=GREY, linewidth=0.6, zorder=1)
_FIRST = 4  # style index of the first schedule; lower ones are for numbers of micro-batches, so none is shared
_UNMATCHED = "*"  # marker of published values for a number of micro-batches that was not measured here
_CONTEXT_BETWEEN: tuple[LineStyleType, ...] = ("-", ":", "--", "-.")  # per strategy; device counts have the markers
KINDS = ("all-to-all", "all-gather", "reduce-scatter", "all-reduce", "collective-permute")


@plot("tensor", views=("training/tensor", "levers/tensor"), title="tensor parallelism")
def draw_tensor(run: RunReport) -> Chart | None:
    """Weak: FLOP/s per device for a model that grows with the devices, relative to the smallest device count. Strong:
    speed-up of one model split over more devices; dashed: linear. MB received: the size of the collective results of a
    compiled step on one device. Grey, dashed, with markers: Megatron-LM on V100s."""
    sent = [row for row in series.compiled(run.rows) if math.isfinite(series.received_bytes(row))]
    if not sent:
        return None
    groups, handles = series.families(sent), list[Line2D]()
    timed = {kind: [row for row in _of_scaling(sent, kind) if row.speedup.known] for kind in ("weak", "strong")}
    panels = [_sent(groups)]
    if timed["strong"]:
        panels.insert(0, _strong(groups, timed["strong"]))
        handles = [marks.published_handle(_STRONG_SHAPE, _STRONG_NAME)] if base(timed["strong"]) == 1 else []
    if timed["weak"]:
        panels.insert(0, _weak(groups, timed["weak"]))
        handles = [*(marks.published_handle(shape, name) for _, shape, name in _WEAK_COLUMNS), *handles]
    linear = [marks.guide_handle("linear")] if len(panels) > 1 else []
    return Chart(
        panels=[panels],
        handles=[*series.handles(groups), *linear, *handles],
        remarks=_tensor_notes([*timed["weak"], *timed["strong"]], sent),
    )


def _of_scaling(rows: Sequence[Row], scaling: str) -> list[Row]:
    return [row for row in rows if row.point.scaling == scaling]


def base(rows: Sequence[Row]) -> int:
    """The smallest device count that serves as the base of a speed-up of these rows."""
    return min((row.base.devices for row in rows if row.base is not None), default=1)


def _weak(groups: dict[str, list[Row]], timed: Sequence[Row]) -> Panel:
    """The measured and both published series."""
    weak = {name: _of_scaling(rows, "weak") for name, rows in groups.items()}
    frame, counts = published.read(WEAK).frame, set(series.counts(timed))
    theirs = []
    for column, shape, _ in _WEAK_COLUMNS:
        theirs.append(on(marks.published, frame[f"{column}_gpus"], frame[f"{column}_scaling_pct"], shape=shape))
        counts |= {int(n) for n in frame[f"{column}_gpus"]}
    measured = on(series.lines, weak, lambda row: row.efficiency.times(100), between=_STYLES["weak"])
    powers: Layer = lambda axes: axes.xaxis.set_ticks([4**power for power in range(5)])  # noqa: E731
    return Panel(
        title="weak: % of linear scaling" + (f" from {devices(base(timed))}" if base(timed) != 1 else ""),
        layers=[on(marks.unity, at=100, along="y"), measured, *theirs],
        # The axis reaches 512: ticks at all powers of 2 do not fit.
        axes=[on(scales.efficiency_axis), on(devices_axis, sorted(counts)), powers],
    )


def _strong(groups: dict[str, list[Row]], timed: Sequence[Row]) -> Panel:
    """The measured series and y = x; the published series only if measured ones are also over one device."""
    smallest, counts = base(timed), set(series.counts(timed))
    strong = {name: _of_scaling(rows, "strong") for name, rows in groups.items()}
    layers = [on(series.lines, strong, lambda row: row.speedup)]
    if smallest == 1:  # the published speed-ups are over one device, and drawn unscaled
        frame = published.read(STRONG).frame
        layers.append(on(marks.published, frame["gpus"], frame["speedup"], shape=_STRONG_SHAPE))
        counts |= {int(n) for n in frame["gpus"]}
    return Panel(
        title=f"strong: speed-up over {devices(smallest)}",
        layers=[*layers, on(marks.guide, sorted(counts), [count / smallest for count in sorted(counts)])],
        axes=[Log("y", base=2), on(devices_axis, sorted(counts))],
    )


def _sent(groups: dict[str, list[Row]]) -> Panel:
    """Megabytes received per device, from 0: one device receives nothing, which a log axis cannot show."""
    return Panel(
        title="MB received per device and step",
        layers=[
            on(series.line, _of_scaling(rows, scaling), megabytes, place=place, exact=True, between=between)
            for place, rows in enumerate(groups.values())
            for scaling, between in _STYLES.items()
        ],
        axes=[on(scales.whole_zero), on(devices_axis, series.counts(row for rows in groups.values() for row in rows))],
    )


def megabytes(row: Row) -> Estimate:
    return exact(series.received_bytes(row) / 1e6)


def _tensor_notes(timed: Sequence[Row], sent: Sequence[Row]) -> list[str]:
    both = {row.point.scaling for row in sent} == set(_STYLES)
    received = f"MB received: results of all collectives of a step; {notes.EXACT}"
    sentences = [*series.remarks(timed, sent), received + ("; solid: strong, dotted: weak" if both else "")]
    if timed:
        sentences.append(notes.cited(f"{published.read(WEAK).project}, Tables 1 and 8, Figure 5: V100s"))
    over = base(_of_scaling(timed, "strong"))
    if over != 1:
        sentences.append(f"published speed-ups are not drawn: they are over 1 device, these over {devices(over)}")
    return sentences


@plot("pipeline", views=("training/pipeline", "levers/pipeline"))
def draw_pipeline(run: RunReport) -> Figure | None:
    """K stages, M micro-batches of one global batch. Left: the share of slots without work in the executed schedule
    (the bubble), with the theoretical line. Middle: throughput relative to gpipe at K = 2, M = 1, with published values
    and the limit set by idle slots alone. Right: scratch memory of the compiled step at the largest K. More micro-
    batches are smaller ones, so memory need not grow with M; it depends on how many a stage keeps."""
    rows = [row for row in series.compiled(run.rows) if row.point.strategy == "pipeline"]
    if not rows:
        return None
    styles = {m: i for i, m in enumerate(sorted({micro_batches(row) for row in rows}))}
    schedules = [name for name in _PIPELINE_BETWEEN if any(schedule(row) == name for row in rows)]
    sheet = Sheet(1, 3, heights=2.2)
    left, middle, right = sheet.panels[0]
    _draw_idle_share(left, rows, styles)
    over = _throughput(middle, rows, styles)
    _pipeline_memory(right, rows, schedules)
    remarks = [
        *series.remarks(rows, rows),
        "idle share and scratch memory are exact, so their marks are filled with more devices than cores, too",
        "line style: schedule; colour and marker: M (in the right panel: schedule)",
    ]
    if {"gpipe", "1f1b"} <= set(schedules):
        remarks.append("gpipe and 1f1b have the same idle slots, so their idle shares are equal")
    if over:
        remarks.append(notes.cited(f"{published.read(GPIPE).project}, Table 2, Transformer on TPUs"))
    title = f"{run.experiment}: pipelines and their idle share"
    return sheet.finish(title, _pipeline_handles(styles, schedules, compared=over), remarks)


def schedule(row: Row) -> str:
    """The pipeline's schedule; gpipe for runs recorded before the setting existed."""
    return SCHEDULE.of(row.point.levers).name


def micro_batches(row: Row) -> int:
    """M, the number of micro-batches."""
    return ACCUMULATE.of(row.point.levers)


def relative(rows: Sequence[Row]) -> dict[str, Estimate]:
    """Throughput by point, divided by that of gpipe at K = 2, M = 1; {} if that was not measured."""
    timed = [row for row in rows if row.timing.step_s.known]
    at = ("gpipe", 2, 1)  # the base of Huang et al.'s table, which is drawn over these
    bases = [row for row in timed if (schedule(row), row.point.devices, micro_batches(row)) == at and not row.wrong]
    if not bases:
        return {}
    base, ratios = bases[0], {}
    for row in timed:
        work = row.point.global_batch / base.point.global_batch
        value = paired_ratio.ratio(base, row).times(work)
        ratios[row.point_id] = value.alone() if row is base else value  # its own ratio is 1 without noise
    return ratios


def _draw_idle_share(axes: Axes, rows: Sequence[Row], styles: Mapping[int, int]) -> None:
    counts = series.counts(rows)
    span = _between(min(counts), max(counts))
    for parts, chunks in _shapes(rows):
        axes.plot(span, [100 * idle_share(k, parts, chunks) for k in span], **_THEORY)
    for (parts, name), members in _families(rows).items():
        series.line(axes, members, _idle_share, place=styles[parts], between=_PIPELINE_BETWEEN[name], exact=True)
    axes.set_ylim(-4, 104)  # marks at 0 and at 100 % are not cut
    devices_axis(axes, counts, label="stages K")
    entitle(axes, "idle share of the schedule, %")


def _throughput(axes: Axes, rows: Sequence[Row], styles: Mapping[int, int]) -> bool:
    """Draws the throughput panel. Returns whether K = 2, M = 1 was timed, so that there is a reference."""
    counts, values = series.counts(rows), relative(rows)
    entitle(axes, "throughput, K = 2, M = 1 is 1")
    if not values:
        devices_axis(axes, counts, label="stages K")
        return False
    span = _between(2, max(8, *counts))
    for parts, chunks in _shapes(rows):
        busy = [k * (1 - idle_share(k, parts, chunks)) for k in span]  # stages that work; 1 at K = 2, M = 1, one chunk
        axes.plot(span, busy, **_THEORY)
    for (parts, name), members in _families(rows).items():
        value = lambda row: values.get(row.point_id, UNKNOWN)  # noqa: E731
        series.line(axes, members, value, place=styles[parts], between=_PIPELINE_BETWEEN[name])
    for parts, xs, ys in others():
        marks.published(axes, xs, ys, shape=marks.series_style(styles[parts])[1] if parts in styles else _UNMATCHED)
    log_axis(axes, "y", base=2, show=plain)
    devices_axis(axes, sorted({*counts, 2, 4, 8}), label="stages K")
    return True


def others() -> list[tuple[int, list[int], list[float]]]:
    """(M, stages, throughputs) as published, divided by the throughput at K = 2, M = 1."""
    frame, stages = published.read(GPIPE).frame.set_index("M"), [2, 4, 8]
    return [(int(m), stages, [float(frame.loc[m, f"transformer_K{k}"]) for k in stages]) for m in frame.index]


def _pipeline_memory(axes: Axes, rows: Sequence[Row], schedules: Sequence[str]) -> None:
    stages = max(series.counts(rows))
    for name in schedules:
        members = [row for row in rows if schedule(row) == name and row.point.devices == stages]
        made = marks.of(members, micro_batches, lambda row: exact(row.point.temp_bytes), exact=True)
        marks.line(axes, made, place=_pipeline_style(name), between=_PIPELINE_BETWEEN[name])
    log_axis(axes, "x", base=2, show=plain, max_ticks=6)
    axes.set_xticks(sorted({micro_batches(row) for row in rows}))
    log_axis(axes, "y", show=bytes_tick, max_ticks=5)
    entitle(axes, f"scratch memory a stage, K = {stages}", x="micro-batches M")


def _pipeline_style(name: str) -> int:
    return _FIRST + list(_PIPELINE_BETWEEN).index(name)


def _idle_share(row: Row) -> Estimate:
    return exact(100 * (1 - row.point.fact("busy_share")))


def _shapes(rows: Sequence[Row]) -> list[tuple[int, int]]:
    """(M, chunks) of all rows with more than one stage: with K, they determine the theoretical line."""
    return sorted({(micro_batches(row), SCHEDULE.of(row.point.levers).chunks) for row in rows if row.point.devices > 1})


def _families(rows: Sequence[Row]) -> dict[tuple[int, str], list[Row]]:
    """Rows by (M, schedule)."""
    groups: dict[tuple[int, str], list[Row]] = {}
    for row in rows:
        if schedule(row) in _PIPELINE_BETWEEN:
            groups.setdefault((micro_batches(row), schedule(row)), []).append(row)
    return groups


def _between(low: float, high: float) -> list[float]:
    """Stage counts (not whole numbers) for a smooth line on a logarithmic axis."""
    return [low * (high / low) ** (i / 40) for i in range(41)]


def _pipeline_handles(styles: Mapping[int, int], schedules: Sequence[str], *, compared: bool) -> list[Line2D]:
    entries = [marks.handle(style, f"M = {parts}") for parts, style in styles.items()]
    entries += [marks.handle(_pipeline_style(name), name, between=_PIPELINE_BETWEEN[name]) for name in schedules]
    entries.append(marks.style_handle("idle slots alone", color=GREY, linewidth=0.6))
    if compared:
        entries.append(marks.published_handle(marks.series_style(0)[1], "Huang et al., same markers"))
        unmatched = [m for m, *_ in others() if m not in styles]
        entries += [marks.published_handle(_UNMATCHED, f"Huang et al., M = {m}") for m in unmatched]
    return entries


@plot("context", views=("training/context", "levers/context"))
def draw_context(run: RunReport) -> Figure | None:
    """Left: the longest sequence with a compiled step that fits the memory limit per device, over the number of
    devices; dashed: proportional to devices. Middle: compiled memory at each length that was tried. Right: time per
    step at a fixed length, over the number of devices."""
    longest = studies.read_longest(run.path)
    searched = longest.rows if longest is not None else ()
    timed = [row for row in series.compiled(run.rows) if row.point.scaling == "strong" and row.timing.step_s.known]
    if not searched and not timed:
        return None
    counts = sorted({row.devices for row in searched} | set(series.counts(timed)))
    sheet = Sheet(1, 2 * bool(searched) + bool(timed))
    panels = list(sheet.panels[0])
    if longest is not None and searched:
        _longest(panels[0], searched, counts)
        _tried(panels[1], searched, counts, longest.limit_bytes)
    if timed:
        _times(panels[-1], timed, counts)
    handles = [marks.handle(place, devices(count)) for place, count in enumerate(counts)]
    handles += [*_strategies(timed), marks.guide_handle("perfect")]
    return sheet.finish(f"{run.experiment}: long sequences over devices", handles, _context_notes(longest, timed))


def _strategies(timed: Sequence[Row]) -> list[Line2D]:
    """Legend entries for the line styles of the strategies, if there are several."""
    names = list(series.families(timed))
    styles = [_CONTEXT_BETWEEN[place % len(_CONTEXT_BETWEEN)] for place in range(len(names) if len(names) > 1 else 0)]
    return [marks.style_handle(short(n, 28), color=GREY, linestyle=s) for s, n in zip(styles, names, strict=False)]


def _longest(axes: Axes, searched: Sequence[LongestOn], counts: Sequence[int]) -> None:
    """Draws a point per device count, and the ideal of dividing every byte. Numbers are to the lower right."""
    rows = sorted(searched, key=lambda row: row.devices)
    x, y = [row.devices for row in rows], [row.longest for row in rows]
    marks.guide(axes, x, [y[0] * n / x[0] for n in x])
    axes.plot(x, y, color=GREY, linewidth=0.9, zorder=2)
    paper: marks.Style = dict(facecolor="white", edgecolor="none", pad=0.4)
    for n, length in zip(x, y, strict=True):
        axes.plot([n], [length], linestyle="none", **_context_style(counts, n), zorder=3)
        marks.write(axes, n, length, f"{length}", xytext=(5, -2), va="top", bbox=paper, zorder=2.5)
    log_axis(axes, "y", base=2, show=plain)
    devices_axis(axes, x)
    axes.set_xlim(right=2.1 * x[-1])  # room for the number of the last point
    axes.set_ylim(bottom=axes.get_ylim()[0] / 1.2)
    entitle(axes, "longest sequence that fits")


def _context_style(counts: Sequence[int], n: int) -> marks.Style:
    """The style of a device count, which is the same in every panel."""
    colour, marker = marks.series_style(counts.index(n))
    return dict(color=colour, marker=marker)


def _tried(axes: Axes, searched: Sequence[LongestOn], counts: Sequence[int], limit: float) -> None:
    """Draws the memory of every compiled length, a line per device count, and the limit."""
    axes.axhline(limit, color="black", linewidth=0.8, zorder=1)
    for row in searched:
        lengths, peaks = zip(*sorted(row.tried), strict=True)
        axes.plot(lengths, peaks, **_context_style(counts, row.devices), zorder=3)
    log_axis(axes, "x", base=2, show=plain, max_ticks=5)
    log_axis(axes, "y", show=bytes_tick, max_ticks=5, span=(limit,))
    entitle(axes, f"peak memory; line: limit {bytes_tick(limit)}", x="sequence length")


def _times(axes: Axes, timed: Sequence[Row], counts: Sequence[int]) -> None:
    """Draws strong scaling: a line per strategy, through points in the style of their device count."""
    for place, rows in enumerate(series.families(timed).values()):
        good = [row for row in rows if not row.wrong]
        x, y = [row.point.devices for row in good], [row.timing.step_s.value for row in good]
        axes.plot(x, y, color=GREY, linewidth=0.9, linestyle=_CONTEXT_BETWEEN[place % len(_CONTEXT_BETWEEN)], zorder=2)
        if good and not good[0].point.oversubscribed:  # an ideal from a time that means nothing would mean nothing
            marks.guide(axes, x, [y[0] * x[0] / n for n in x])
        for row in rows:
            series.line(axes, [row], lambda row: row.timing.step_s, place=counts.index(row.point.devices))
    log_axis(axes, "y", show=scales.seconds_tick, max_ticks=5)
    devices_axis(axes, series.counts(timed))
    entitle(axes, "time per step, strong scaling")


def _context_notes(longest: Longest | None, timed: Sequence[Row]) -> list[str]:
    remarks, ideals = [], []
    if longest is not None and longest.rows:
        remarks.append(f"limit: {longest.limit_bytes:,} bytes per device ({longest.limit_source})")
        to = (
            f"the longest sequence is known to within 1/{longest.sharpness}"
            if longest.sharpness > 1
            else "the search only doubled the length (search_sharpness=1), so up to twice this length may fit"
        )
        remarks.append(f"memory as compiled; {to}; {notes.EXACT}")
        ideals.append("twice the length")
    if timed:
        ideals.append("half the time")
    remarks.append(f"perfect, on twice the devices: {' and '.join(ideals)}")
    return [*remarks, *series.remarks(timed, timed)]


@plot("hybrid", views=("training/hybrid", "levers/hybrid"))
def draw_hybrid(run: RunReport) -> Chart | None:
    """Each row is one mesh of the same devices. Left: time per step. Middle: compiled memory of one device, split into
    its shard of the model's state and everything else. Right: bytes received, the size of all collective results of a
    step on one device."""
    meshes = ranked(series.compiled(run.rows))
    if not meshes:
        return None
    sizes = [exact(received_bytes(row) / 1e6) for row in meshes]
    state, rest = "model and optimizer state", "everything else, mostly scratch"
    return shapes.rows(
        [name(row, meshes) for row in meshes],
        [
            _bars(meshes, [row.timing.step_s.times(1e3) for row in meshes], title="time per step, ms"),
            _hybrid_memory(meshes),
            _bars(meshes, sizes, title="received per step, MB", exactly=True),
        ],
        title=f"{run.experiment}: meshes of {', '.join(map(devices, series.counts(meshes)))}",
        widths=[1, 1.15, 1],
        handles=[marks.bar_handle(1, state), marks.bar_handle(4, rest)],
        remarks=[*_mesh_remarks(meshes), *failures(run.rows)],
    )


def ranked(rows: Sequence[Row]) -> list[Row]:
    """Rows sorted by time, rows without a time last; by received bytes if all times are oversubscribed."""
    by_bytes = not trusted(rows)

    def key(row: Row) -> tuple[bool, float]:
        value = received_bytes(row) if by_bytes else row.timing.step_s.value
        return math.isnan(value), value

    return sorted(rows, key=key)


def trusted(rows: Sequence[Row]) -> bool:
    """Whether any time was measured without oversubscription (on at most as many devices as cores)."""
    return any(row.timing.step_s.known and not row.point.oversubscribed for row in rows)


def mesh(row: Row) -> str:
    """Such as "data=2, tensor=2"; the strategy's name if the strategy chose the mesh."""
    value = row.point.levers.get("mesh", "strategy")
    return row.point.strategy if value == "strategy" else value.replace(",", ", ")


def name(row: Row, rows: Sequence[Row]) -> str:
    """The mesh, and any settings that distinguish it from other rows with the same mesh."""
    label = mesh(row)
    same = [other for other in rows if other is not row and mesh(other) == label]
    if any(other.point.devices != row.point.devices for other in same):
        label = f"{label} on {row.point.devices}"
    levers = {lever: value for lever, value in row.point.levers.items() if lever != "mesh"}  # the mesh is the name
    differing = [value for lever, value in levers.items() if any(o.point.levers.get(lever) != value for o in same)]
    return short(", ".join([label, *differing]), 34)


def failures(rows: Sequence[Row]) -> list[str]:
    """One footnote on the meshes that did not compile, each with the first words of the reason."""
    reasons = []
    for row in (row for row in rows if row.point.record is None):
        reason = row.point.failure.reason if row.point.failure is not None else row.point.reason
        reasons.append(f"{mesh(row)}: {textwrap.shorten(reason, 91, placeholder=' …') or 'not measured'}")
    return [f"not drawn: {'; '.join(dict.fromkeys(reasons))}"] if reasons else []


def _hybrid_memory(meshes: Sequence[Row]) -> Panel:
    """Stacked bars of state and everything else, with their sum as a number."""
    sizes = [(row, row.point.peak_bytes / 1e6, row.point.fact("state_bytes") / 1e6) for row in meshes]
    known = [(place, *each) for place, each in enumerate(sizes) if math.isfinite(each[1])]
    return Panel(
        title="memory per device, MB",
        layers=[on(_memory_bar, *each) for each in known],
        axes=[on(scales.zero_axis, "x", max((peak for _, _, peak, _ in known), default=0.0), room=1.3, max_ticks=4)],
    )


def _memory_bar(axes: Axes, place: int, row: Row, peak: float, state: float) -> None:
    if row.wrong:
        marks.cross(axes, peak, place)
        return
    # The compiler may alias state and outputs, and so count less than the arrays hold.
    shard = min(state, peak) if math.isfinite(state) else 0.0
    marks.write(axes, marks.stack(axes, place, [(shard, 1), (peak - shard, 4)]), place, digits(peak))


def _bars(meshes: Sequence[Row], values: Sequence[Estimate], *, title: str, exactly: bool = False) -> Panel:
    """A bar per row. exactly: the values do not depend on speed, so no bar is hollow."""
    made = [
        Mark(at=place, value=value, state=marks.state(row, exact=exactly), text=digits(value.value))
        for place, (row, value) in enumerate(zip(meshes, values, strict=True))
        if value.known
    ]
    top = max((mark.end for mark in made), default=0.0)
    axis = on(scales.zero_axis, "x", top, room=1.3, max_ticks=4)
    return Panel(title=title, layers=[on(marks.hbars, made)], axes=[axis])


def _mesh_remarks(rows: Sequence[Row]) -> list[str]:
    notes = series.remarks(rows, rows)
    if trusted(rows):
        notes.append("sorted by time per step")
    else:
        notes.append("sorted by bytes received: times with more devices than cores do not show which mesh is faster")
    notes.append("memory and bytes are exact, so their marks are filled with more devices than cores, too")
    idle = [100 * (1 - row.point.fact("busy_share")) for row in rows]  # NaN for meshes without stages
    if shares := {round(share) for share in idle if math.isfinite(share)}:
        low, high = min(shares), max(shares)
        between = f"{low} %" if low == high else f"{low} to {high} %"
        notes.append(f"meshes with stages leave {between} of their schedule idle")
    return notes


@plot("moe", views=("training/moe", "levers/moe"), title="a mixture of experts over devices")
def draw_moe(run: RunReport) -> Chart | None:
    """Left: model and optimizer state on one device; grey: divided evenly. Right: bytes that one device receives per
    step, by kind of collective (the size of the results, including the device's own part). Either tokens travel to
    their experts and back (all-to-all), or parameters travel to the tokens (all-gather)."""
    compiled = series.compiled(run.rows)
    if not compiled:
        return None
    groups = series.families(compiled)
    several = {name: [row for row in members if row.point.devices > 1] for name, members in groups.items()}
    kinds = _kinds([row for members in several.values() for row in members])
    bars = [marks.bar_handle(style, kind) for kind, style in kinds.items()]
    alone = any(row.point.devices == 1 for row in compiled)
    received = Panel(title="received by a device in a step, MB", layers=[on(_received, several, kinds)])
    return Chart(
        panels=[[_state_panel(groups), received]],
        widths=[1, max(1.0, min(2.2, 0.25 * sum(map(len, several.values()))))],
        heights=2.4,
        handles=[*series.handles(groups), marks.guide_handle("divided evenly"), *bars],
        remarks=[
            notes.EXACT,
            *_dropped(groups),
            *[notes.WRONG] * any(row.wrong for row in compiled),
            *["on one device nothing is received"] * alone,
        ],
    )


def _kinds(rows: Sequence[Row]) -> dict[str, int]:
    """The style of each kind of collective in the rows. A known kind has the same style in every run."""
    seen = {kind for row in rows for kind, size in received(row).items() if size}
    every = [*KINDS, *sorted(seen - set(KINDS))]
    return {kind: style for style, kind in enumerate(every, start=2) if kind in seen}  # the left panel's lines use 0, 1


def _state_panel(groups: Mapping[str, Sequence[Row]]) -> Panel:
    sizes = [(row.point.devices, row.point.fact("state_bytes")) for members in groups.values() for row in members]
    counts, known = sorted({n for n, _ in sizes}), [(n, size) for n, size in sizes if math.isfinite(size)]
    layers = [on(series.lines, groups, lambda row: exact(row.point.fact("state_bytes")), exact=True)]
    whole = [size for n, size in known if n == counts[0]]
    if whole and len(counts) > 1:  # the largest, because a strategy may shard its state on the fewest devices already
        layers.append(on(marks.guide, counts, [max(whole) * counts[0] / count for count in counts]))
    axes: list[Layer] = [Log("y", bytes_tick, max_ticks=5), on(devices_axis, counts)]
    return Panel(title="state per device", layers=layers, axes=axes)


def _received(axes: Axes, groups: Mapping[str, Sequence[Row]], kinds: Mapping[str, int]) -> None:
    """Draws a stacked bar per point, with a gap between families."""
    at, top, ticks = 0.0, 0.0, {}
    for family, rows in groups.items():
        for place, row in enumerate(rows):
            top = max(top, _stack(axes, at + place, row, kinds))
            ticks[at + place] = str(row.point.devices)
        if rows:
            below: marks.Style = dict(xycoords=("data", "axes fraction"), xytext=(0, -18), ha="center", va="top")
            marks.write(axes, at + (len(rows) - 1) / 2, 0, short(family, 24), size=7.5, **below)
            at += len(rows) + 0.7
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.tick_params(axis="x", length=0)
    axes.grid(False, axis="x")
    scales.zero_axis(axes, "y", top)
    axes.set_xlabel("devices", labelpad=15)


def _stack(axes: Axes, at: float, row: Row, kinds: Mapping[str, int]) -> float:
    """Draws one stacked bar with its height written above it. Returns the height in MB."""
    sizes = received(row)
    total = sum(sizes.values()) / 1e6
    if row.wrong:
        marks.cross(axes, at, total)
        return total
    parts = [(sizes[kind] / 1e6, style) for kind, style in kinds.items() if sizes.get(kind)]
    marks.write(axes, at, marks.stack(axes, at, parts, thick=0.8, upright=True), digits(total), above=True)
    return total


def _dropped(groups: Mapping[str, Sequence[Row]]) -> list[str]:
    """A note on the share of tokens dropped because their expert was full: per family, over all device counts."""
    ranges = []
    for family, rows in groups.items():
        dropped = [100 * row.point.fact("dropped") for row in rows if not row.wrong]
        if shares := [share for share in dropped if math.isfinite(share)]:
            low, high = (f"{value:.1f}" for value in (min(shares), max(shares)))
            ranges.append(f"{short(family, 24)} {low} %" if low == high else f"{short(family, 24)} {low} to {high} %")
    return [f"tokens dropped because their expert was full: {', '.join(ranges)}"] if ranges else []
