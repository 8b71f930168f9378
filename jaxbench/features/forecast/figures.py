# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Figures of programs that were compiled but not run, and of forecasts from them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from jaxbench.analysis.compiled import gigabytes
from jaxbench.catalog import published
from jaxbench.core.schema import COLLECTIVES, CompiledRecord
from jaxbench.features.forecast.advice import Offer, TrainingBudget
from jaxbench.features.forecast.columns import clock
from jaxbench.features.forecast.forecasts import COMPILED, ForecastRecord
from jaxbench.report.compiled_report import CompiledReport
from jaxbench.report.drawing import marks, notes
from jaxbench.report.drawing.axes import devices_axis
from jaxbench.report.drawing.canvas import plot, short
from jaxbench.report.drawing.marks import Mark
from jaxbench.report.drawing.shapes import Chart, Layer, Log, Panel, on, rows

LIMIT = 48  # most points that fit in the figure: names are unreadable below a line each
_PUBLISHED = {"TPU v5 lite": ("maxtext_v5e", "chips", {"16B": "s", "32B": "^", "64B": "D", "128B": "v"})}
_AS_LARGE = 0.1  # largest relative difference in parameters at which a published model counts as equally large
_MARGIN = 1.25  # factor by which the axis of devices extends beyond the first and the last count
_BETWEEN = ("--", "-.", ":", (0, (1, 3)))  # bands of several families overlap, and must stay apart without colour


@plot("compiled", views=("compiled",))
def draw_compiled(run: CompiledReport) -> Chart | None:
    """Compiled for hardware that this machine does not have; nothing was run. Left: memory that a step needs on one
    device; dashed: a device's capacity. Right: bytes that one device sends per step, by kind of collective. A cross
    marks a point with other communication than expected."""
    compiled = [(row, row.record) for row in run.compiled if row.record is not None]
    if not compiled:
        return None
    shown = compiled[:LIMIT]
    sent = [_sent(record) for _, record in shown]
    kinds = [kind for kind in COLLECTIVES if any(kind in each for each in sent)]
    # From style 1 on: the left panel has style 0, and both share a legend.
    parts = [[(each.get(kind, 0), style) for style, kind in enumerate(kinds, start=1)] for each in sent]
    wire = [
        on(_stack, at, part, row.right is False) for at, ((row, _), part) in enumerate(zip(shown, parts, strict=True))
    ]
    memory = _memory_panel([(record.peak_bytes or 0) / 1e9 for _, record in shown], shown[0][0].memory_bytes / 1e9)
    return rows(
        [short(row.name, 44) for row, _ in shown],
        [memory, Panel(x="sent by a device in a step, MB", layers=wire)],
        title=run.title,
        handles=[marks.bar_handle(style, kind) for style, kind in enumerate(["memory per device", *kinds])],
        remarks=notes.rest(len(shown), len(compiled), "points, the first"),
    )


def _stack(axes: Axes, at: int, parts: Sequence[tuple[float, int]], wrong: bool) -> None:
    """Draws a bar, with a cross if the point has other communication than expected."""
    end = marks.stack(axes, at, parts)
    if wrong:
        marks.cross(axes, end, at)


def _sent(record: CompiledRecord) -> dict[str, float]:
    """MB that one device sends per step, by kind of collective."""
    sizes: dict[str, float] = {}
    for each in record.collectives:
        sizes[each.kind] = sizes.get(each.kind, 0) + each.wire_bytes / 1e6
    return sizes


def _memory_panel(needed: Sequence[float], has: float) -> Panel:
    bars = [on(marks.stack, place, [(size, 0)]) for place, size in enumerate(needed)]
    label, capacity = "memory per device, GB", f"a device has {gigabytes(1e9 * has)}"
    if max(needed) <= has / 50:  # the capacity would squeeze all bars to nothing
        return Panel(x=f"{label} ({capacity})", layers=bars)
    style: marks.Style = dict(xycoords=("data", "axes fraction"), fontsize=6, ha="center")
    return Panel(x=label, layers=[*bars, on(marks.unity, at=has), on(Axes.annotate, capacity, (has, 1.01), **style)])


# forecast: Forecasts over the number of devices: utilisation as a hatched band; below it, memory and bytes per
# device. A forecast must not look like a measurement: it is a band or a dashed bound, never points with error bars.

Family = tuple[str, str, str, str]


@plot("forecast")
def draw_forecast(records: Sequence[ForecastRecord], *, title: str) -> Chart | None:
    """Forecasts, not measurements. Top: the tinted band reaches from all communication hidden to none hidden; nine in
    ten similar published runs lay between the thin lines. A line with marks that point down is a bound: real steps are
    slower.
    Hollow marks are published results: black for a model of similar size, grey for others. Below: memory that a step
    needs on one device, with the device's capacity, and bytes sent per step. Filled marks were compiled; hollow marks
    are extrapolated from them."""
    families = _families(records)
    every = [record for line in families.values() for record in line]
    if len(every) < 2:  # a single point is a line of the table
        return None
    # Without FLOPs, as of a user's own step, there is no utilisation to show.
    efficient = all(record.utilisation(record.low_s) is None for record in every)
    counts = sorted({record.devices for record in every})
    series = [] if efficient else _published(records, counts)
    wide: list[Layer] = [on(Axes.set_xlim, counts[0] / _MARGIN, counts[-1] * _MARGIN)]
    bands = [on(_band, line, place, efficient=efficient) for place, line in enumerate(families.values())]
    top = Panel(
        y="efficiency, %" if efficient else "model FLOP utilisation, %",
        layers=[*bands, *(layer for layer, _ in series)],
        axes=[on(devices_axis, counts, label=""), *wide, lambda axes: axes.set_ylim(0, 1.08 * axes.dataLim.y1)],
    )
    named = enumerate(", ".join(filter(None, family)) for family in families)
    cited = [handle for _, handle in series]
    return Chart(
        title=title,
        panels=[[top], *([panel] for panel in _sizes(families.values(), records, counts, wide))],
        heights=[2.4, 1.5, 1.5],
        handles=[*(marks.handle(place, name, between=":") for place, name in named), *cited],
        remarks=_forecast_notes(records, cited),
    )


def _sizes(
    families: Collection[Sequence[ForecastRecord]],
    records: Sequence[ForecastRecord],
    counts: Sequence[int],
    wide: Sequence[Layer],
) -> list[Panel]:
    """The panels of memory and of bytes sent. wide: sets the ends of their axes."""
    shown: list[tuple[str, Callable[[ForecastRecord], float], list[Layer], str]] = [
        ("memory, GB", _memory_gb, [on(_draw_capacities, records)], ""),
        ("sent in a step, GB", _wire_gb, [], "devices"),
    ]
    return [
        Panel(
            y=y,
            layers=[*_lines(families, value), *more],
            axes=[Log("y", max_ticks=4), on(devices_axis, counts, label=label), *wide],
        )
        for y, value, more, label in shown
    ]


def _families(records: Sequence[ForecastRecord]) -> dict[Family, list[ForecastRecord]]:
    """The records that were compiled or extrapolated, by target, strategy, scaling and arm, and then by devices."""
    families: dict[Family, list[ForecastRecord]] = {}
    for record in sorted(records, key=lambda record: record.devices):
        if record.status == "ok":
            key = record.target.partition(":")[0], record.strategy, record.scaling, record.arm
            families.setdefault(key, []).append(record)
    return families


def _memory_gb(record: ForecastRecord) -> float:
    return (record.peak_bytes or 0) / 1e9


def _wire_gb(record: ForecastRecord) -> float:
    return record.wire_bytes / 1e9


def _lines(families: Iterable[Sequence[ForecastRecord]], value: Callable[[ForecastRecord], float]) -> list[Layer]:
    """A line for each family."""
    made = [
        [Mark(at=r.devices, value=marks.exact(value(r)), state=_mark_state(r)) for r in line if value(r)]
        for line in families
    ]
    return [on(marks.line, line, place=place, between=":") for place, line in enumerate(made)]


def _mark_state(record: ForecastRecord) -> str:
    return "solid" if record.basis == COMPILED else "hollow"


def _band(axes: Axes, line: Sequence[ForecastRecord], place: int, *, efficient: bool) -> None:
    """Draws what one family may take, from all communication hidden to none, and its band; or its bound."""
    colour, _ = marks.series_style(place)
    known = [record for record in line if record.low_s]
    at: list[float] = [record.devices for record in known]

    def heights(seconds: Callable[[ForecastRecord], float | None]) -> list[float]:
        return [100 * _height(record, seconds(record), known, efficient) for record in known]

    most = heights(lambda record: record.low_s)
    if all(record.high_s for record in known) and known:
        ends = [most, heights(lambda r: r.high_s), heights(lambda r: r.hidden_s), heights(lambda r: r.bare_s)]
        if len(at) == 1:  # a band over one device count would have no width
            at, ends = [at[0] / 1.1, at[0] * 1.1], [2 * end for end in ends]
        # The wide band is two thin lines: an area would swallow the forecast and the published marks.
        for end in ends[:2]:
            axes.plot(at, end, color=colour, linewidth=0.8, linestyle=_BETWEEN[place % len(_BETWEEN)], zorder=1)
        axes.fill_between(at, ends[3], ends[2], facecolor=colour, alpha=0.45, linewidth=0)
    elif known:
        axes.plot(at, most, color=colour, linestyle=(0, (5, 2)), linewidth=1.0)
        axes.plot(at, most, color=colour, linestyle="none", marker=7, markersize=4.5)  # points down: no higher


def _height(record: ForecastRecord, seconds: float | None, line: Sequence[ForecastRecord], efficient: bool) -> float:
    """Model FLOP utilisation; without FLOP counts, throughput per device over that at the smallest device count."""
    if not efficient:
        return record.utilisation(seconds) or 0.0
    base = line[0]
    alone = (base.rate(base.scheduled_s) or 1.0) / base.devices
    return (record.rate(seconds) or 0.0) / record.devices / alone


def _draw_capacities(axes: Axes, records: Sequence[ForecastRecord]) -> None:
    known = {record.target.partition(":")[0]: record.memory_bytes for record in records if record.memory_bytes}
    for name, size in known.items():
        axes.axhline(size / 1e9, color=marks.GREY, linewidth=0.9, linestyle=(0, (1, 1.5)))
        marks.write_at_right(axes, size / 1e9, f"{name} has\n{size / 1e9:.3g} GB", color=marks.GREY)


def _published(records: Sequence[ForecastRecord], counts: Sequence[int]) -> list[tuple[Layer, Line2D]]:
    """Utilisation as published for the same kind of device, at device counts within the axis, and its legend."""
    drawn = []
    for kind in dict.fromkeys(record.device_kind for record in records if record.device_kind in _PUBLISHED):
        table, across, shapes = _PUBLISHED[kind]
        found = published.read(table)
        shown = found.frame[found.frame[across].between(counts[0], counts[-1])]  # others would stretch the axis
        for size, shape in shapes.items() if len(shown) else ():
            parameters = 1e9 * float(size.removesuffix("B"))
            same = any(abs(record.parameters / parameters - 1) < _AS_LARGE for record in records)
            style: marks.Style = dict(marker=shape, linestyle="none", markerfacecolor="white" if same else "none")
            style |= {"color": "black" if same else marks.GREY, "markersize": 6 if same else 4}
            layer = on(Axes.plot, shown[across], shown[f"mfu_{size}"], zorder=3 if same else 4, **style)
            drawn.append((layer, marks.style_handle(f"{size}, {found.project.partition(' ')[0]}", **style)))
    return drawn


def _forecast_notes(records: Sequence[ForecastRecord], cited: Sequence[Line2D]) -> list[str]:
    sentences = []
    if any(record.high_s for record in records):
        sentences.append(
            "tinted: forecast, from all communication hidden to none; nine in ten similar runs lie between thin lines"
        )
    if any(record.low_s and record.high_s is None for record in records):
        plain = " for this program with plain attention" if any(record.only_plain for record in records) else ""
        sentences.append(f"dashed, with marks that point down: a bound (at best){plain}")
    if any(record.status == "ok" and record.basis != COMPILED for record in records):
        sentences.append("hollow marks: extrapolated from compiled points, not compiled")
    if cited:
        sentences.append(
            "black: published for a model of similar size; grey: for others; unscaled, masked attention counted"
        )
    return sentences


@plot("links")
def draw_links(records: Sequence[ForecastRecord], *, title: str) -> Chart | None:
    """What the link between GPUs costs: the forecast time of a step, divided into work and waiting for messages, with
    each link that a host may have. The link of the target is marked. The percentages are the factor "link" of an
    efficiency: work over the whole step. Whiskers lead to the slowest link of the target's kind that was measured, with
    nothing hidden."""
    shown = [record for record in records if record.by_link and record.work_s and record.status == "ok"][: LIMIT // 3]
    if not shown:
        return None
    bars = [(record, name) for record in shown for name in record.by_link]
    panel = Panel(
        x="step, ms",
        layers=[on(_link, place, record, name) for place, (record, name) in enumerate(bars)],
        axes=[lambda axes: axes.set_xlim(0, 1.12 * axes.dataLim.x1)],
    )
    own = [f"over {name}{' (its own)' if name == record.link_name else ''}" for record, name in bars]
    return rows(
        [" ".join(filter(None, (r.target, r.strategy, r.arm, text))) for (r, _), text in zip(bars, own, strict=True)],
        [panel],
        title=title,
        handles=[marks.bar_handle(0, "work"), marks.bar_handle(1, "waiting for messages")],
        remarks=notes.rest(len(shown), len(records), "points, the first"),
    )


def _link(axes: Axes, place: int, record: ForecastRecord, name: str) -> None:
    """Draws a step over one link."""
    work_ms, step_ms = 1e3 * (record.work_s or 0.0), 1e3 * record.by_link[name]
    # Extrapolated separately, a step may be shorter than its work.
    end = marks.stack(axes, place, [(min(work_ms, step_ms), 0), (max(0.0, step_ms - work_ms), 1)])
    slow_ms = 1e3 * record.slowest_s if name == record.link_name else 0.0
    if slow_ms > end:
        axes.plot([end, slow_ms], [place, place], color=marks.GREY, linewidth=0.9, marker="|", markersize=5)
    factor = record.link_factor(record.by_link[name])
    axes.annotate(f" {100 * (factor or 0.0):.0f} %", (max(end, slow_ms), place), fontsize=6, va="center")


@plot("advice")
def draw_advice(lines: Sequence[Offer], job: TrainingBudget, *, title: str) -> Chart | None:
    """Forecast cost of a training against its forecast time, on logarithmic axes; one mark per number of devices. A
    filled mark is the slow end of an estimated range, and a thin line leads to the fast end. Hollow marks with dashed
    lines are bounds: a real run is slower and costs more. Named marks are on the frontier of their grade: no cheaper
    choice is as fast."""
    if not lines:
        return None
    families: dict[str, list[Offer]] = {}
    both = len({line.grade for line in lines}) > 1  # a family may be estimated on some counts, and a bound on others
    for line in sorted(lines, key=lambda line: line.devices):
        who = f"{line.target.partition(':')[0]}, {line.provider}, {line.way}"
        families.setdefault(who + ("" if line.estimated or not both else ", at best"), []).append(line)
    unit, scale = clock(lines)
    best = [(line.sort_s / scale, line.sort_cost, line.name) for line in lines if line.frontier]
    names = [on(marks.write, *each, above=True, size=6.0) for each in best]
    deadline = [] if job.deadline_s is None else [on(_draw_deadline, job.deadline_s / scale)]
    panel = Panel(
        x=unit,
        y=f"cost, {lines[0].currency}",
        layers=[*(on(_offers, at, one, scale) for at, one in enumerate(families.values())), *names, *deadline],
        axes=[Log("x"), Log("y")],
    )
    handles = [_offer_handle(at, name, family[0]) for at, (name, family) in enumerate(families.items())]
    return Chart(title=title, panels=[[panel]], heights=3.4, handles=handles, remarks=_advice_notes(lines))


def _offers(axes: Axes, place: int, family: Sequence[Offer], scale: float) -> None:
    """Draws one hardware on its numbers of devices. scale: seconds of the axis's unit."""
    colour, marker = marks.series_style(place)
    estimated = family[0].estimated
    axes.plot(
        [line.sort_s / scale for line in family],
        [line.sort_cost for line in family],
        color=colour,
        marker=marker,
        linewidth=0.8,
        linestyle="-" if estimated else "--",
        markersize=4,
        markerfacecolor=colour if estimated else "white",
        zorder=3,
    )
    for line in family if estimated else ():
        ends = (
            [(line.low_s or 0.0) / scale, (line.high_s or 0.0) / scale],
            [line.low_cost or 0.0, line.high_cost or 0.0],
        )
        axes.plot(*ends, color=colour, linewidth=0.6, zorder=2)


def _draw_deadline(axes: Axes, at: float) -> None:
    axes.axvline(at, color=marks.GREY, linewidth=0.7, linestyle=(0, (1, 1.2)), zorder=1)
    place_of: marks.Style = dict(xycoords=("data", "axes fraction"), xytext=(-2, 0), ha="right")
    marks.write(axes, at, 0.03, "deadline", size=6.3, **place_of)


def _offer_handle(place: int, name: str, of: Offer) -> Line2D:
    handle = marks.handle(place, name, between="-" if of.estimated else "--")
    if not of.estimated:
        handle.set_markerfacecolor("white")
    return handle


def _advice_notes(lines: Sequence[Offer]) -> list[str]:
    sentences = []
    if any(line.estimated for line in lines):
        sentences.append("filled: the slow end of an estimated range; the thin line leads to its fast end")
    if not all(line.estimated for line in lines):
        bound = "lower bounds of time and cost, because nothing similar was published to estimate from"
        sentences.append(f"hollow, dashed: {bound}; do not compare them with estimates")
    if any(line.price_is_old for line in lines):
        old = sorted({line.target.partition(":")[0] for line in lines if line.price_is_old})
        sentences.append(f"prices of {', '.join(old)} are more than a year old")
    return sentences
