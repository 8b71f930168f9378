# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Figures of the comparison of XLA with NumPy and Python."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from jaxbench.analysis.case_comparisons import SPLIT_NAMES, CallSplit
from jaxbench.analysis.quantities import seconds
from jaxbench.analysis.run_rows import Row
from jaxbench.catalog import published
from jaxbench.digits import digits
from jaxbench.report.drawing import marks, notes, series
from jaxbench.report.drawing.axes import seconds_tick
from jaxbench.report.drawing.canvas import plot, short
from jaxbench.report.drawing.marks import Mark
from jaxbench.report.drawing.shapes import Chart, Layer, Log, Panel, on, rows
from jaxbench.report.run_report import RunReport
from jaxbench.statistics import paired_ratio

BASE = "numpy"
# By operation: (the published job of the same kind, its source).
PUBLISHED = {"gbdt": ("boosted trees", "XGBoost's notes"), "resnet164": ("ResNet-164", "DAWNBench, 2017")}
MOST = 16  # implementations in the figure; more are not read
ROOM = 24  # percent of a panel that the name of a part needs to fit inside its bar


@plot("versus", views=("cases/versus",), order=-1, title="speed-up over NumPy, for the smallest and the largest batch")
def draw_versus(run: RunReport) -> Chart | None:
    """Speed-up over NumPy on one core. Left: the time of a call with the smallest batch (latency). Right: rows per
    second with the largest batch (throughput). Of many implementations, XLA's alone, on the most cores and on an
    accelerator; the table has all. Below, hollow: published speed-ups of an accelerator over CPUs with the same kind of
    model, from other machines and drawn unscaled."""
    timed = [row for row in run.rows if row.point.elements and row.timing.step_s.known]
    # Python uses one core, however many it is given.
    measured = [row for row in timed if row.point.impl != "python" or row.point.cores == 1]
    names = series.naming(measured, ("impl", "platform", "cores"))
    every = _speedups(measured, names)
    if not every:
        return None
    lines = _main(every, measured, names) if len(every) > MOST else every
    sources = dict(PUBLISHED[op] for op in series.operations(measured) if op in PUBLISHED)  # only of what was measured
    pairs = [pair for pair in published.processor_and_accelerator() if pair.job.startswith(tuple(sources))]
    cited, theirs = [notes.cited("; ".join(sources.values()))] * bool(pairs), _theirs(pairs, first=len(lines))
    titles = ("smallest batch: latency", "largest batch: throughput")
    panels = [
        Panel(
            title=title,
            x="speed-up over NumPy on one core",
            layers=[on(marks.dots, [mark for line in lines.values() for mark in line[column]])],
            axes=[Log("x", max_ticks=5, span=[0.0005, 2000.0]), on(marks.unity)],  # the same in every run
            extra=theirs * column,
        )
        for column, title in enumerate(titles)
    ]
    labels = [*lines, *(short(f"{pair.job}, {pair.hardware}") for pair in pairs)]
    rest = notes.rest(len(lines), len(every), "implementations")
    return rows(labels, panels, remarks=[*notes.of_marks(measured), *rest, *cited])


def _speedups(rows: Sequence[Row], names: Mapping[str, str]) -> dict[str, list[list[Mark]]]:
    """By label: (marks of the smallest batch, marks of the largest batch)."""
    lines: dict[str, list[list[Mark]]] = {}
    for style, op in enumerate(series.operations(rows)):
        of_op = [row for row in rows if row.point.op == op]
        for column, size in enumerate((min(map(series.elements, of_op)), max(map(series.elements, of_op)))):
            here = [row for row in of_op if row.point.elements == size]
            base = next((row for row in here if row.point.impl == BASE and row.point.cores == 1), None)
            for row in here:
                if base is not None and row is not base:
                    label, ratio = short(f"{op}: {names[row.point_id]}"), paired_ratio.ratio(base, row)
                    made = lines.setdefault(label, [[], []])[column]  # a label has a line even if no ratio is known
                    if ratio.known:
                        at, text = list(lines).index(label), f"{digits(ratio.value, 2)} x"
                        made.append(Mark(at=at, value=ratio, state=marks.state(row), style=style, text=text))
    return lines


def _theirs(pairs: Sequence[published.PublishedSpeedup], *, first: int) -> list[Layer]:
    """Published speed-ups, in the rows from `first` on."""
    places, values = list(range(first, first + len(pairs))), [pair.speedup for pair in pairs]
    written = [on(marks.write, v, at, f"{digits(v, 2)} x") for at, v in zip(places, values, strict=True)]
    return [on(marks.published, values, places, shape="D", joined=False), *written]


def _main(
    lines: Mapping[str, list[list[Mark]]], rows: Sequence[Row], names: Mapping[str, str]
) -> dict[str, list[list[Mark]]]:
    """Of too many lines those of XLA on the most cores and on accelerators, moved up to the first places."""
    most = max((row.point.cores or 0 for row in rows if row.point.platform == "cpu"), default=0)
    wanted = {
        short(f"{row.point.op}: {names[row.point_id]}")
        for row in rows
        if row.point.impl.startswith("jit") and (row.point.platform != "cpu" or row.point.cores == most)
    }
    kept = {label: columns for label, columns in lines.items() if label in wanted}
    return {
        label: [[dataclasses.replace(mark, at=at) for mark in column] for column in columns]
        for at, (label, columns) in enumerate(kept.items())
    }


@plot("call_split", views=("cases/versus",), order=1, title="where the time of a call goes")
def draw_call_split(run: RunReport) -> Chart | None:
    """Each bar is one XLA call with its data on the host (jit+copies), in percent of the call's time, which is written
    next to it. Transfer: sending the arguments and fetching the result. Start: the time of a nearly empty program with
    the same arguments. Work: the rest. Without copies, data stay on the device and there is no transfer. NumPy and
    Python neither send nor start anything, so all of their time is work."""
    if not run.splits:
        return None
    places = list(dict.fromkeys((split.op, split.where) for split in run.splits))
    panels = []
    for largest, what in enumerate(("latency", "throughput")):
        shown = [split for split in run.splits if split.largest == bool(largest)]
        sizes = sorted({split.rows for split in shown})
        many = " to ".join(f"{size:,}" for size in dict.fromkeys(sizes[:1] + sizes[-1:]))
        panel = Panel(
            title=f"{many} row{'s' * (sizes != [1])}: {what}",
            x="% of the time of a call",
            layers=[on(_bar, places.index((split.op, split.where)), split) for split in shown],
            # Bars end at 100; the rest is for the time next to them.
            axes=[on(Axes.set_xlim, 0, 128), on(Axes.set_xticks, [0, 25, 50, 75, 100])],
        )
        panels.append(panel)
    untold = not all(told for split in run.splits for told in split.resolved)
    white = "white, dashed: the 95 % confidence interval of that part includes 0, so it may take no time"
    return rows(
        [short(f"{op} on {where}", 34) for op, where in places],
        panels,
        handles=[marks.bar_handle(style, name) for style, name in enumerate(SPLIT_NAMES)],
        remarks=["bars: medians", *[white] * untold],
    )


def _bar(axes: Axes, at: int, split: CallSplit) -> None:
    """Draws one bar. A part below 0 has no length; a part that may be 0 is white, with its name if that fits."""
    lengths = [max(0.0, part.value) for part in split.parts]
    parts = [100 * length / sum(lengths) for length in lengths]  # of what is drawn, so that every bar ends at 100
    for place, (name, told) in enumerate(zip(SPLIT_NAMES, split.resolved, strict=True)):
        if not told and parts[place] > ROOM:
            marks.write(axes, sum(parts[:place]), at, f"{name}?")
    styles = [style if told else None for style, told in enumerate(split.resolved)]
    marks.write(axes, marks.stack(axes, at, list(zip(parts, styles, strict=True))), at, seconds(split.whole.value))


@plot("ways_to_target", views=("cases/versus",), order=2, title="training to a target")
def draw_ways_to_target(run: RunReport) -> Chart | None:
    """Left: time from initialization to the target accuracy, without compilation; mean over seeds with its 95 %
    confidence interval. Right: speed-up over NumPy on one core, paired by seed."""
    if not run.ways:
        return None
    jobs = list(dict.fromkeys(way.job for way in run.ways))
    times, ratios = [], []
    for at, way in enumerate(run.ways):
        # A lower limit gets the small cross of a refused mark, which is on no line either.
        style, state = jobs.index(way.job), "solid" if way.reached == way.seeds else "refused"
        times.append(Mark(at=at, value=way.time, state=state, style=style, text=seconds(way.time.value)))
        if way.speedup.known:
            ratios.append(Mark(at=at, value=way.speedup, style=style, text=f"{digits(way.speedup.value, 2)} x"))
    ends = [end for mark in times for end in (mark.value.value, mark.end)]
    time_axis = Log("x", seconds_tick, max_ticks=5, span=[min(ends) / 2, 2.5 * max(ends)])
    ratio_axis = Log("x", max_ticks=5, span=[0.1, 10.0])
    missed = ["small grey x: a seed did not reach the target, so the true time is longer"]
    n = f"{notes.BARS} of the mean; {notes.n_of([(way.seeds,) for way in run.ways])}"
    return rows(
        [short(f"{way.job.removeprefix('train_')}: {way.name}", 34) for way in run.ways],
        [
            Panel(title="time to the target", layers=[on(marks.dots, times)], axes=[time_axis]),
            Panel(
                title="speed-up over NumPy on one core",
                layers=[on(marks.dots, ratios)],
                axes=[ratio_axis],
                level=1.0,
            ),
        ],
        remarks=[n, *missed * any(way.reached < way.seeds for way in run.ways)],
    )
