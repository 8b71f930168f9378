# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Forecasts over the number of devices: utilisation as a hatched band, and beneath it memory and bytes per device.

A forecast is never drawn like a measurement: it has a band or a dashed bound, and no points with intervals.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxbench.catalog import published
from jaxbench.records.forecasts import COMPILED, ForecastRecord
from jaxbench.report.drawing import marks
from jaxbench.report.drawing.kit import Axes, Figure, Line2D, Mark, Sheet, devices_axis, entitle, log_axis, plain

VIEWS = ()  # `jaxbench forecast` draws it
CAPTION = (
    "Forecasts. Top: a hatched band holds what published runs took over their forecasts; a dashed line is a bound that "
    "a step cannot beat; grey hollow marks are published results. Below: the memory of a step on one device (dotted: a "
    "device's capacity), and the bytes that it sends in a step. Filled marks were compiled, hollow ones reckoned from "
    "compiled ones."
)
_PUBLISHED = {"TPU v5 lite": ("maxtext_v5e", "chips", {"16B": "s", "32B": "^", "64B": "D", "128B": "v"})}
_HATCHES = ("////", "\\\\\\\\", "....", "xxxx")
Family = tuple[str, str, str, str]


def draw(records: Sequence[ForecastRecord], *, title: str) -> Figure | None:
    """Three panels over devices. None without a point that compiled."""
    families: dict[Family, list[ForecastRecord]] = {}
    for record in sorted(records, key=lambda record: record.devices):
        if record.status == "ok":
            families.setdefault(_family(record), []).append(record)
    if not families:
        return None
    sheet = Sheet(3, 1, heights=[2.4, 1.5, 1.5])
    top, memory, wire = sheet.panels[:, 0]
    efficient = all(record.utilisation(record.low_s) is None for line in families.values() for record in line)
    for place, line in enumerate(families.values()):
        _band(top, line, place, efficient=efficient)
        _line(memory, [(record, (record.peak_bytes or 0) / 1e9) for record in line], place)
        _line(wire, [(record, record.wire_bytes / 1e9) for record in line], place)
    _capacities(memory, records)
    cited = [] if efficient else _published(top, records)
    counts = sorted({record.devices for line in families.values() for record in line})
    entitle(top, y="efficiency, %" if efficient else "model FLOP utilisation, %")
    entitle(memory, y="memory, GB")
    entitle(wire, y="sent in a step, GB")
    for axes in (memory, wire):
        log_axis(axes, "y", show=plain, max_ticks=4)
    for axes in (top, memory, wire):
        devices_axis(axes, counts, label="devices" if axes is wire else "")
    top.set_ylim(0, 1.08 * top.dataLim.y1)
    handles = [
        marks.handle(place, " ".join(filter(None, family)), between=":") for place, family in enumerate(families)
    ]
    return sheet.finish(title, [*handles, *cited], _notes(records, cited))


def _family(record: ForecastRecord) -> Family:
    return record.target.partition(":")[0], record.strategy, record.scaling, record.arm


def _line(axes: Axes, values: Sequence[tuple[ForecastRecord, float]], place: int) -> None:
    made = [Mark(at=r.devices, value=marks.exact(value), state=_state(r)) for r, value in values if value]
    marks.line(axes, made, place=place, between=":")


def _state(record: ForecastRecord) -> str:
    return "solid" if record.basis == COMPILED else "hollow"


def _band(axes: Axes, line: Sequence[ForecastRecord], place: int, *, efficient: bool) -> None:
    """The band of one family, or its bound."""
    colour, _ = marks.series_style(place)
    known = [record for record in line if record.low_s]
    at: list[float] = [record.devices for record in known]
    most = [100 * _height(record, record.low_s, known, efficient) for record in known]
    if all(record.high_s for record in known) and known:
        least = [100 * _height(record, record.high_s, known, efficient) for record in known]
        if len(at) == 1:  # a band needs a width
            at, most, least = [at[0] / 1.1, at[0] * 1.1], most * 2, least * 2
        axes.fill_between(
            at, least, most, facecolor="none", edgecolor=colour, hatch=_HATCHES[place % len(_HATCHES)], linewidth=0.7
        )
    elif known:
        axes.plot(at, most, color=colour, linestyle=(0, (5, 2)), linewidth=1.0)
        axes.plot(at, most, color=colour, linestyle="none", marker=7, markersize=4.5)  # no higher


def _height(record: ForecastRecord, seconds: float | None, line: Sequence[ForecastRecord], efficient: bool) -> float:
    """Utilisation; without FLOPs the rate of a device over that of the smallest count, at its scheduled time."""
    if not efficient:
        return record.utilisation(seconds) or 0.0
    base = line[0]
    alone = (base.rate(base.scheduled_s) or 1.0) / base.devices
    return (record.rate(seconds) or 0.0) / record.devices / alone


def _capacities(axes: Axes, records: Sequence[ForecastRecord]) -> None:
    known = {record.target.partition(":")[0]: record.memory_bytes for record in records if record.memory_bytes}
    for name, size in known.items():
        axes.axhline(size / 1e9, color=marks.GREY, linewidth=0.9, linestyle=(0, (1, 1.5)))
        axes.annotate(f"{name} has {size / 1e9:.3g} GB", (1.0, size / 1e9), xycoords=("axes fraction", "data"),
                      fontsize=6, ha="right", va="bottom", color=marks.GREY)  # fmt: skip


def _published(axes: Axes, records: Sequence[ForecastRecord]) -> list[Line2D]:
    """Published utilisation of the same kind of device, of whatever model it was: as it was published."""
    drawn = []
    for kind in dict.fromkeys(record.device_kind for record in records):
        if kind in _PUBLISHED:
            table, across, shapes = _PUBLISHED[kind]
            found = published.read(table)
            for size, shape in shapes.items():
                marks.published(axes, found.frame[across], found.frame[f"mfu_{size}"], shape=shape)
                drawn.append(marks.published_handle(shape, f"{size}, {found.project.partition(' ')[0]}"))
    return drawn


def _notes(records: Sequence[ForecastRecord], cited: Sequence[Line2D]) -> list[str]:
    sentences = []
    if any(record.high_s for record in records):
        sentences.append("hatched: a forecast, as wide as published runs missed theirs")
    if any(record.low_s and record.high_s is None for record in records):
        sentences.append("dashed, with marks that point down: at best, a bound")
    if any(record.status == "ok" and record.basis != COMPILED for record in records):
        sentences.append("hollow marks: reckoned from compiled points, not compiled")
    if cited:
        sentences.append("grey: published results of other models on these devices, as published")
    return sentences
