# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Pipelines: the share of a schedule that is idle, what throughput that leaves, and what the stages hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jaxbench.analysis import paired
from jaxbench.analysis.intervals import UNKNOWN, Estimate
from jaxbench.analysis.scaling import Row
from jaxbench.catalog import published
from jaxbench.levers.accumulate import ACCUMULATE
from jaxbench.levers.schedule import SCHEDULE
from jaxbench.report.figures import canvas, marks, spread_lines
from jaxbench.report.figures.axes import devices_axis, log_axis, plain, speedup_axis
from jaxbench.report.figures.canvas import COLOURS, GREY, MARKERS
from jaxbench.report.figures.marks import bytes_tick, exact, marker
from jaxbench.report.figures.spread_material import SpreadMaterial, fact

CAPTION = (
    "K stages, M micro-batches of one global batch. Left: the share of places in the executed schedule that did no "
    "work, on the line that theory has for it. Middle: throughput over that of gpipe at K = 2, M = 1, beside what was "
    "published and what idle places alone would leave. Right: scratch memory of the compiled step on the most stages. "
    "More micro-batches are smaller ones, so it need not grow with M: what counts is how many of them a stage keeps."
)
GPIPE = "gpipe_table2_tpu"
CHUNKS = {"interleaved": 2}  # of blocks a stage: all other schedules have 1
_BETWEEN: Any = {"gpipe": "-", "1f1b": (0, (4, 1.5)), "interleaved": ":"}
_THEORY: Any = dict(color=GREY, linewidth=0.6, zorder=1)
_FIRST = 4  # looks from here on are of schedules, so that no schedule looks like a number of micro-batches
_UNMATCHED = "*"  # published for a number of micro-batches that was not measured here


def draw(material: SpreadMaterial) -> Figure | None:
    """Three panels. None when no pipeline was compiled."""
    rows = [row for row in material.measured if row.point.strategy == "pipeline"]
    if not rows:
        return None
    looks = {m: i for i, m in enumerate(sorted({micro_batches(row) for row in rows}))}
    counts = sorted({row.point.devices for row in rows})
    schedules = [name for name in _BETWEEN if any(schedule(row) == name for row in rows)]
    figure = canvas.blank()
    panels = figure.subplots(1, 3, squeeze=False)[0]
    _idle(panels[0], rows, looks, counts)
    over = _throughput(panels[1], rows, looks, counts)
    _memory(panels[2], rows, schedules, max(counts))
    handles = _handles(looks, schedules, compared=over)
    lines = canvas.legend(figure, handles, title=f"{material.experiment}: pipelines and what of them is idle")
    notes = [
        *spread_lines.remarks(rows, rows),
        "idle share and scratch memory are exact, so they are filled also on more devices than cores",
        "the style of a line is its schedule; colour and marker are M, at the right the schedule too",
    ]
    if {"gpipe", "1f1b"} <= set(schedules):
        notes.append("gpipe and 1f1b leave the same places idle, so that their idle shares coincide")
    if over:
        source = published.read(GPIPE).project
        notes.append(f"hollow, dashed: published by others, not measured here. {source}, Table 2, Transformer on TPUs")
    below = canvas.footnotes(figure, notes)
    figure.set_figheight(2.3 + 0.16 * lines + 0.12 * below)
    return figure


def schedule(row: Row) -> str:
    """Of the pipeline; runs from before there was a choice had gpipe."""
    return SCHEDULE.of(row.point.levers)


def micro_batches(row: Row) -> int:
    """M."""
    return ACCUMULATE.of(row.point.levers)


def idle(stages: float, parts: float, chunks: int = 1) -> float:
    """The share of a schedule's places that theory leaves idle, of the total and not of the work."""
    return (stages - 1) / (chunks * parts + stages - 1)


def relative(rows: Sequence[Row]) -> dict[str, Estimate]:
    """Throughput over that of gpipe at K = 2, M = 1, by point; {} where that was not measured."""
    timed = [row for row in rows if row.timing.step_s.known]
    at = ("gpipe", 2, 1)
    bases = [row for row in timed if (schedule(row), row.point.devices, micro_batches(row)) == at and row.believed]
    if not bases:
        return {}
    base, found = bases[0], {}
    for row in timed:
        work = row.point.global_batch / base.point.global_batch
        value = paired.ratio(base, row).times(work)
        found[row.point.point] = value.alone() if row is base else value
    return found


def _idle(axes: Axes, rows: Sequence[Row], looks: Mapping[int, int], counts: list[int]) -> None:
    span = _between(min(counts), max(counts))
    for parts, chunks in _shapes(rows):
        axes.plot(span, [100 * idle(k, parts, chunks) for k in span], **_THEORY)
    for (parts, name), mine in _families(rows).items():
        spread_lines.line(axes, mine, _idle_share, look=looks[parts], between=_BETWEEN[name], exact=True)
    axes.set_ylim(-4, 104)
    _stages_axis(axes, counts)
    axes.set_title("idle share of the schedule, %", loc="left")


def _throughput(axes: Axes, rows: Sequence[Row], looks: Mapping[int, int], counts: list[int]) -> bool:
    """Returns whether there was a K = 2, M = 1 to compare with."""
    axes.set_title("throughput, K = 2, M = 1 is 1", loc="left")
    values = relative(rows)
    if not values:
        _stages_axis(axes, counts)
        axes.set_yticks([])
        axes.text(0.5, 0.5, "K = 2, M = 1\nwas not timed", transform=axes.transAxes, ha="center", color=GREY)
        return False
    span = _between(2, max(8, *counts))
    for parts, chunks in _shapes(rows):
        axes.plot(span, [k * (1 - idle(k, parts, chunks)) for k in span], **_THEORY)  # 1 at K = 2, M = 1, one chunk
    for (parts, name), mine in _families(rows).items():
        spread_lines.line(
            axes, mine, lambda row: values.get(row.point.point, UNKNOWN), look=looks[parts], between=_BETWEEN[name]
        )
    for parts, xs, ys in others():
        spread_lines.others(axes, xs, ys, shape=marker(looks[parts]) if parts in looks else _UNMATCHED)
    speedup_axis(axes, axes.get_title(loc="left"))
    _stages_axis(axes, sorted({*counts, 2, 4, 8}))
    return True


def others() -> list[tuple[int, list[int], list[float]]]:
    """(M, stages, throughputs) as published, each over K = 2, M = 1."""
    frame, stages = published.read(GPIPE).frame.set_index("M"), [2, 4, 8]
    return [(int(m), stages, [float(frame.loc[m, f"transformer_K{k}"]) for k in stages]) for m in frame.index]


def _memory(axes: Axes, rows: Sequence[Row], schedules: Sequence[str], most: int) -> None:
    for name in schedules:
        mine = [row for row in rows if schedule(row) == name and row.point.devices == most]
        look = _FIRST + list(_BETWEEN).index(name)
        marks.line(axes, mine, micro_batches, _scratch, look=look, between=_BETWEEN[name], exact=True)
    log_axis(axes, "x", base=2, show=plain, most=6)
    parts = sorted({micro_batches(row) for row in rows})
    axes.set_xticks(parts)
    log_axis(axes, "y", show=bytes_tick, most=5)
    axes.set_xlabel("micro-batches M")
    axes.set_title(f"scratch memory a stage, K = {most}", loc="left")


def _idle_share(row: Row) -> Estimate:
    return exact(100 * (1 - fact(row, "busy_share")))


def _scratch(row: Row) -> Estimate:
    record = row.point.record
    found = record.passport.temp_bytes if record is not None else None
    return UNKNOWN if found is None else exact(float(found))


def _shapes(rows: Sequence[Row]) -> list[tuple[int, int]]:
    """(M, chunks) of all rows with more than one stage: what theory needs to know of each besides K."""
    return sorted({(micro_batches(row), CHUNKS.get(schedule(row), 1)) for row in rows if row.point.devices > 1})


def _families(rows: Sequence[Row]) -> dict[tuple[int, str], list[Row]]:
    """Rows by (M, schedule)."""
    found: dict[tuple[int, str], list[Row]] = {}
    for row in rows:
        if schedule(row) in _BETWEEN:
            found.setdefault((micro_batches(row), schedule(row)), []).append(row)
    return found


def _between(low: float, high: float) -> list[float]:
    """Numbers of stages for a smooth line on a logarithmic axis."""
    return [low * (high / low) ** (i / 40) for i in range(41)]


def _stages_axis(axes: Axes, counts: Sequence[int]) -> None:
    devices_axis(axes, counts)
    axes.set_xlabel("stages K")


def _handles(looks: Mapping[int, int], schedules: Sequence[str], *, compared: bool) -> list[Line2D]:
    found = [spread_lines.handle(look, f"M = {parts}") for parts, look in looks.items()]
    for name in schedules:
        look = _FIRST + list(_BETWEEN).index(name)
        style: Any = dict(color=COLOURS[look], marker=MARKERS[look], linestyle=_BETWEEN[name])
        found.append(Line2D([], [], label=name, **style))
    found.append(Line2D([], [], color=GREY, linewidth=0.6, label="idle places alone"))
    if compared:
        found.append(spread_lines.others_handle(MARKERS[0], "Huang et al., same markers"))
        found += [
            spread_lines.others_handle(_UNMATCHED, f"Huang et al., M = {m}") for m, *_ in others() if m not in looks
        ]
    return found
