# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Figures of swept levers: time, throughput, memory and accuracy of the arms of a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxbench.analysis import lever_results
from jaxbench.analysis.arms import ArmGroup, arms_of
from jaxbench.analysis.lever_results import PHASE_NAMES, PREFIXES, Knee, Phases, bound
from jaxbench.analysis.quantities import interval, scaled, seconds
from jaxbench.analysis.run_rows import Row
from jaxbench.catalog import published
from jaxbench.levers import ACCUMULATE, TRAININGS
from jaxbench.report.drawing import marks, notes, shapes
from jaxbench.report.drawing.axes import Show, bytes_tick, entitle, plain, seconds_tick, si, zero_axis
from jaxbench.report.drawing.canvas import Sheet, plot, short
from jaxbench.report.drawing.marks import Mark, exact
from jaxbench.report.drawing.shapes import Chart, Curve, Layer, Log, Panel, bars_from_zero, lines, on, rows
from jaxbench.report.run_report import RunReport, unit
from jaxbench.statistics.bootstrap import UNKNOWN, Estimate

LIMIT = 40  # rows that stay readable on a page; the table has all arms
DEVICE = "device"  # the input that is already there, so that a step never waits for it
SERIES = "micikevicius_table1"


@plot("arms", views=("levers/arms", "levers/compiler"), title="what each setting costs")
def draw_arms(run: RunReport) -> Chart | None:
    """Time per example divided by the baseline's. The baseline is the first setting of the same strategy, scaling and
    device count. Settings left of the dashed line are faster; if a confidence interval crosses the line, the comparison
    is inconclusive. The scale is logarithmic."""
    known = [(group, number, arm) for number, group in enumerate(run.groups) for arm in group.arms if arm.ratio.known]
    if not any(arm.against is not None for _, _, arm in known):
        return None
    if run.view == "compiler":  # sets of compiler options have no natural order, so they are ranked by cost
        known.sort(key=lambda each: (each[1], each[2].against is not None, cost(each[2]).value))
    shown = [
        ArmCost(
            name=", ".join(filter(None, [arm.label, group.name if len(run.groups) > 1 else ""])),
            value=cost(arm),
            state=marks.state(arm),
            style=style,
            verdict="baseline" if arm.against is None else arm.verdict,
        )
        for group, style, arm in known[:LIMIT]
    ]
    return of_costs(
        shown,
        handles=shapes.arm_handles(run.groups),
        remarks=[*notes.rest(len(shown), len(known), "settings, the first"), *shapes.arm_remarks(run.groups)],
    )


@dataclass(frozen=True, kw_only=True)
class ArmCost:
    """A row of `of_costs`. value: over the baseline's. style: number of its group. verdict: as in summary.csv."""

    name: str
    value: Estimate
    state: str
    style: int
    verdict: str


def of_costs(costs: Sequence[ArmCost], *, handles: Sequence[Artist], remarks: Sequence[str]) -> Chart:
    """Draws a row for each cost, with its number at the right."""
    made = [Mark(at=y, value=each.value, state=each.state, style=each.style) for y, each in enumerate(costs)]
    ends = [end for mark in made for end in (mark.drawn.lo, mark.end)]

    verdicts = [on(marks.write_at_right, m.at, _in_words(c.verdict, m.drawn)) for m, c in zip(made, costs, strict=True)]
    axis = Log("x", max_ticks=8, span=[*ends, 1.0])
    title = "time per example over the baseline's"
    panel = Panel(x=title, layers=[on(marks.dots, made)], level=1.0, axes=[axis], extra=verdicts)
    return rows([short(each.name, 46) for each in costs], [panel], handles=handles, remarks=remarks)


def cost(arm: Row) -> Estimate:
    """Time per example divided by the baseline's."""
    return arm.ratio.times(arm.baseline.point.examples / arm.point.examples)


def _in_words(verdict: str, value: Estimate) -> str:
    if verdict == "baseline":  # its ratio is 1 by definition
        return verdict
    return interval(value, "{:.2f}".format) + ("  inconclusive" if verdict == "cannot tell" else "")


@plot("accumulate", views=("levers/accumulate",), title="gradient accumulation")
def draw_accumulate(run: RunReport) -> Chart | None:
    """The global batch is the same at every point; a step splits it into more, smaller micro-batches. Left: step time
    divided by the baseline's. Right: compiled memory per device: total, and scratch memory alone."""
    if not shapes.any_timed(run.groups):
        return None
    base, dashed = short(run.rows[0].label, 12), {"between": marks.DASHED}
    memory: list[Curve] = [lambda arm: exact(arm.point.peak_bytes), (lambda arm: exact(arm.point.temp_bytes), dashed)]
    return lines(
        run.groups,
        lambda arm: ACCUMULATE.of(arm.point.levers),
        [
            Panel(title=f"step time over that of {base}", values=[lambda arm: arm.ratio], level=1.0),
            Panel(title="memory per device", values=memory, axes=[Log("y", bytes_tick, max_ticks=6)]),
        ],
        x="micro-batches per step",
        remarks=shapes.arm_remarks(run.groups),
        handles=[marks.style_handle("all memory"), marks.style_handle("scratch", linestyle=marks.DASHED)],
    )


@plot("batch", views=("levers/batch",), title="what a larger batch buys")
def draw_batch(run: RunReport) -> Chart | None:
    """Time per step, throughput and compiled memory over the global batch. The knee is the smallest measured batch with
    at least 90 % of the best throughput; beyond it a larger batch mostly makes each step longer."""
    if not shapes.any_timed(run.groups):
        return None
    panels = [
        Panel(title=title, values=[value], axes=[Log("y", show, max_ticks=6)], extra=extra)
        for title, value, show, extra in (
            ("time per step", lambda arm: arm.timing.step_s, seconds_tick, [on(_knees, run.knees, named=False)]),
            (f"{short(unit(run.rows))}/s", lambda arm: arm.timing.examples_per_s, si, [on(_knees, run.knees)]),
            ("memory per device", lambda arm: exact(arm.point.peak_bytes), bytes_tick, []),
        )
    ]
    return lines(
        run.groups,
        lambda arm: arm.point.global_batch,
        panels,
        x="global batch",
        axis=Log("x", base=2, max_ticks=6),
        remarks=shapes.arm_remarks(run.groups, paired=False),
    )


def _knees(axes: Axes, every: Sequence[Knee], *, named: bool = True) -> None:
    """Draws a vertical line at each knee."""
    knees = [knee for knee in every if knee.arm.quotable and not knee.rising]
    for number, batch in enumerate(dict.fromkeys(knee.arm.point.global_batch for knee in knees)):
        axes.axvline(batch, color=marks.GREY, linewidth=0.8, linestyle=":", zorder=1)
        if not named:
            continue
        low, high = axes.get_xlim()
        right = batch * batch > low * high  # in the right half of the logarithmic axis: the text goes to the left
        near = "" if all(knee.certain for knee in knees if knee.arm.point.global_batch == batch) else " (or near)"
        marks.write(
            axes,
            batch,
            0.03 + 0.08 * number,
            f"knee {batch}{near}",
            xycoords=("data", "axes fraction"),
            xytext=(-3 if right else 3, 0),
            color=marks.GREY,
            ha="right" if right else "left",
            va="bottom",
        )


@plot("freeze", views=("levers/freeze",), title="frozen parameters")
def draw_freeze(run: RunReport) -> Chart | None:
    """Step time and compiled FLOPs, each divided by the baseline's, and gradient bytes per step, over the share of
    frozen parameters. Gradient bytes are those that the compiled step reduces; on one device, 4 per trained parameter.
    Gradients still pass through frozen layers above trained ones."""
    timed = [group for group in run.groups if shapes.any_timed([group])]
    if not timed:
        return None
    shares = {arm.point_id: 100 * frozen(arm, most(group)) for group in timed for arm in group.arms}

    zero = on(_from_zero)
    return lines(
        timed,
        lambda arm: shares[arm.point_id],
        [
            Panel(title="step time over baseline", values=[lambda arm: arm.ratio], axes=[zero], level=1.0),
            Panel(title="compiled FLOPs over baseline", values=[_flops_ratio], axes=[zero], level=1.0),
            Panel(
                title="gradient bytes",
                values=[lambda arm: exact(gradient(arm))],
                axes=[on(_from_zero, show=bytes_tick)],
            ),
        ],
        x="parameters frozen, %",
        axis=on(Axes.set_xlim, -5, 105),
        remarks=[*shapes.arm_remarks(timed), _frozen_shares(timed[0])],
    )


def _from_zero(axes: Axes, show: Show = plain) -> None:
    top = axes.dataLim.y1
    # The limits are not finite where nothing is known.
    zero_axis(axes, "y", top if math.isfinite(top) else 0, show=show, room=1.1, max_ticks=7)


def most(group: ArmGroup) -> float:
    """Trained parameters of the arm that trains the most; NaN if no arm was compiled."""
    counts = [arm.point.compile_report.parameters for arm in group.arms if arm.point.compile_report is not None]
    return float(max(counts, default=0)) or math.nan


def frozen(arm: Row, whole: float) -> float:
    """Share (0 to 1) of `whole` parameters that this arm does not train; NaN if unknown."""
    return 1 - arm.point.compile_report.parameters / whole if arm.point.compile_report is not None else math.nan


def gradient(arm: Row) -> float:
    """Bytes of gradient per step and device; NaN if unknown."""
    report = arm.point.compile_report
    if report is None:
        return math.nan
    # One device reduces nothing. Its float32 gradients show what several would send.
    return float(arm.gradient_bytes or 0) if arm.point.devices > 1 else 4.0 * report.parameters


def _flops_ratio(arm: Row) -> Estimate:
    report, other = arm.point.compile_report, arm.baseline.point.compile_report
    if report is None or other is None:
        return UNKNOWN
    flops, base = report.product_flops_per_step, other.product_flops_per_step
    return exact(flops / base) if flops and base else UNKNOWN


def _frozen_shares(group: ArmGroup) -> str:
    whole = most(group)
    shares = [f"{short(a.label, 30)} {100 * frozen(a, whole):.3g} %" for a in group.arms if a.timing.step_s.known]
    return f"frozen: {', '.join(shares)}"


@plot(
    "inference",
    views=("levers/inference", "levers/phases", "levers/arms"),
    order=1,
    title="inference, latency against throughput",
)
def draw_inference(run: RunReport) -> Chart | None:
    """Left: wall time of a single call from start to result: median and 99th percentile with confidence intervals.
    Right: examples per second. The 99th percentile needs at least 100 single calls; with fewer it is left out."""
    if not shapes.any_timed(run.latencies):
        return None
    calls: list[Curve] = [lambda arm: arm.p50, (lambda arm: arm.p99, {"between": marks.DASHED, "shape": "^"})]
    return lines(
        run.latencies,
        lambda arm: arm.point.global_batch,
        [
            Panel(title="latency of one call", values=calls, axes=[Log("y", seconds_tick, max_ticks=6)]),
            Panel(
                title=f"{short(unit(run.rows))}/s",
                values=[lambda arm: arm.timing.examples_per_s],
                axes=[Log("y", si, max_ticks=6)],
            ),
        ],
        x="global batch",
        axis=Log("x", base=2, max_ticks=6),
        handles=[marks.style_handle("p50", marker="o"), marks.style_handle("p99", marker="^", linestyle=marks.DASHED)],
        remarks=[*_inference_notes(run), *shapes.arm_remarks(run.latencies, paired=False)],
    )


def _inference_notes(run: RunReport) -> list[str]:
    """Notes on missing percentiles: each reason with its batches."""
    batches: dict[str, list[str]] = {}
    for arm in arms_of(run.latencies):
        if arm.why_no_p99 and arm.timing.step_s.known:
            batches.setdefault(arm.why_no_p99, []).append(str(arm.point.global_batch))
    return [f"no p99 at batch {', '.join(dict.fromkeys(sizes))}: {why}" for why, sizes in batches.items()]


@plot("inputs", views=("levers/inputs",), title="is the step waiting for data?")
def draw_inputs(run: RunReport) -> Chart | None:
    """Left: throughput relative to data that are already on the devices. Right: the share of the step spent on input, 1
    - T(device) / T(kind), with its confidence interval, and the share of time in which the step's thread waited for its
    next batch. If the first is larger, input also costs time without waiting, by copies or shared cores."""
    if not shapes.any_timed(run.groups):
        return None
    base, style = short(run.rows[0].label, 14), marks.Style(marker="|", color="black", markersize=7, linestyle="none")
    waits = [
        (100 * arm.point.outcome("waited_share"), y + 0.24)
        for arm, _, y in shapes.side_by_side(run.groups, shapes.arm_labels(run.groups), apart=0.5)
        if math.isfinite(arm.point.outcome("waited_share"))
    ]

    def waited(axes: Axes) -> None:
        if waits:
            axes.plot(*zip(*waits, strict=True), **style)
        axes.set_xlim(min(-5.0, axes.dataLim.x0 - 3), max(20.0, 1.25 * axes.dataLim.x1))

    rates = shapes.arm_marks(run.groups, lambda arm: arm.gain, partial(interval, show="{:.2f}".format))
    shares = shapes.arm_marks(run.groups, share, lambda value: f"{value.value:z.0f} %", apart=0.5)
    bars = on(bars_from_zero, rates, room=1.45, thick=0.68 / len(run.groups))
    remarks = [] if base == DEVICE else [f"the baseline is {base}, not data on the device: shares are relative to it"]
    return rows(
        shapes.arm_ticks(run.groups),
        [
            Panel(title=f"throughput over {base}", layers=[bars], level=1.0),
            Panel(title="input-bound share of the step, %", layers=[on(marks.dots, shares)], level=0.0, extra=[waited]),
        ],
        abreast=len(run.groups),
        widths=[1.1, 1],
        remarks=[*remarks, *shapes.arm_remarks(run.groups)],
        handles=[*shapes.arm_handles(run.groups), *[marks.style_handle("measured waiting", **style)] * bool(waits)],
    )


def share(arm: Row) -> Estimate:
    """Percent of the step spent on input; UNKNOWN for the baseline."""
    return UNKNOWN if arm.against is None or not arm.ratio.known else bound(arm).times(100)


@plot("ladder", views=("levers/ladder",), title="what each rung gains")
def draw_ladder(run: RunReport) -> Chart | None:
    """Each rung includes the rungs above it. The throughput is divided by the first rung's; in parentheses, by that of
    the rung before. Rungs that differ tenfold or more are marks on a logarithmic axis, else bars from 0."""
    compared = [group for group in run.groups if any(arm.gain.known for arm in group.arms)]
    if not compared:
        return None
    what = "rung: speed-up over the rung before it, with its 95 % confidence interval; ?: it contains 1"
    return Chart(
        panels=[
            [
                Panel(
                    title=group.name if len(compared) > 1 else "",
                    x="speed-up over the first rung" if group is compared[-1] else "",
                    layers=_rungs(group),
                    names=[short(arm.label, 32) for arm in group.arms],
                )
            ]
            for group in compared
        ],
        remarks=[what, *shapes.arm_remarks(compared)],
    )


def factors(group: ArmGroup) -> list[Estimate]:
    """Speed-up of each rung over the one before; UNKNOWN for the first rung and next to a rung without times."""
    speedups = [UNKNOWN]
    for before, arm in zip(group.arms, group.arms[1:], strict=False):
        speedups.append(group.speedup(arm, before) if before.usable and arm.usable else UNKNOWN)
    return speedups


def _rungs(group: ArmGroup) -> list[Layer]:
    """Bars of the rungs, a line at the first, and why a rung has no bar."""
    made, missing = [], []
    for y, (arm, factor) in enumerate(zip(group.arms, factors(group), strict=True)):
        alone = factor.alone() if arm.point.oversubscribed else factor  # as marks do
        text = f"{arm.gain.value:.2f} x" + (f"   {_rung_factor(alone)}" if factor.known else "")
        if arm.gain.known:
            made.append(Mark(at=y, value=arm.gain, state=marks.state(arm), text=text))
        else:
            why = arm.point.status if arm.point.status in ("failed", "unsupported") else "not measured"
            missing.append((y, why))
    reasons = [lambda axes, y=y, why=why: marks.write(axes, axes.get_xlim()[0], y, why) for y, why in missing]
    return [on(shapes.bars, made, show=plain, room=0.42), on(marks.unity), *reasons]


def _rung_factor(value: Estimate) -> str:
    if not value.has_interval:
        return f"(rung {value.value:.2f} x)"
    sure = "" if value.lo > 1 or value.hi < 1 else " ?"
    return f"(rung {value.value:.2f} x [{value.lo:.2f}, {value.hi:.2f}]{sure})"


@plot("phases", views=("levers/phases",), title="where the step's time goes")
def draw_phases(run: RunReport) -> Chart | None:
    """Each phase is the difference in time of two programs, measured in the same rounds, where the second does one
    phase more: backward = gradient - forward, update = local - gradient, communication = step - local. Left: time; the
    error bar at the end of a phase is that phase's own. Right: share of the step."""
    stacks = run.phases
    if not stacks:
        return None
    longest = max(stack.whole.hi if stack.whole.has_interval else stack.whole.value for stack in stacks)
    drawn = {style for stack in stacks for phase in stack.phases for style in phase.indices}
    time = Panel(
        title="time per step",
        layers=[on(_stack, place, stack) for place, stack in enumerate(stacks)],
        axes=[on(zero_axis, "x", longest, show=seconds_tick, room=1.16, max_ticks=6)],
    )
    return rows(
        [short(stack.name, 26) or "step" for stack in stacks],
        [time, _shares(stacks)],
        abreast=max(len(stack.phases) for stack in stacks),
        widths=[1.35, 1],
        handles=[marks.bar_handle(style, name) for style, name in enumerate(PHASE_NAMES) if style in drawn],
        remarks=[*_phases_notes(stacks), *shapes.arm_remarks(run.groups, paired=False)],
    )


def _stack(axes: Axes, place: int, stack: Phases) -> None:
    """Draws one stack. A negative phase has no length; the notes name it."""
    parts = [(max(0.0, phase.step_s.value), phase.indices[-1]) for phase in stack.phases]
    end = marks.stack(axes, place, parts, thick=0.62, hollow=not stack.quotable)
    at = 0.0
    for (width, style), phase in zip(parts, stack.phases, strict=True):
        at += width
        if phase.step_s.has_interval and stack.quotable:
            reach = [[max(0.0, width - max(0.0, phase.step_s.lo))], [max(0.0, phase.step_s.hi - width)]]
            axes.errorbar(
                [at],
                [place + 0.12 * (style - 1.5)],  # apart in height: the bars of short phases would overlap
                xerr=reach,
                linestyle="none",
                ecolor="black",
                elinewidth=0.8,
                capsize=1.8,
                capthick=0.8,
                zorder=4,
            )
    marks.write(axes, max(end, stack.whole.hi if stack.whole.has_interval else end), place, seconds(stack.whole.value))


def _shares(stacks: Sequence[Phases]) -> Panel:
    """Each phase as a point with its interval, in percent of the step, grouped by arm group."""
    made = []
    for place, stack in enumerate(stacks):
        for i, phase in enumerate(stack.phases):
            share, at = phase.share.times(100), place + (i - (len(stack.phases) - 1) / 2) * 0.19
            text = f"{share.value:z.0f} %{'' if phase.above_zero or not stack.quotable else ' ?'}"
            state = "solid" if stack.quotable else "hollow"
            made.append(Mark(at=at, value=share, style=phase.indices[-1], state=state, text=text))
    end = 1.2 * max(mark.end for mark in made)
    limits: Layer = lambda axes: axes.set_xlim(min(0.0, axes.dataLim.x0) - 3, end)  # noqa: E731
    return Panel(title="share of the step, %", layers=[on(marks.dots, made)], level=0.0, axes=[limits])


def _phases_notes(stacks: Sequence[Phases]) -> list[str]:
    notes = []
    if any(not phase.above_zero for stack in stacks if stack.quotable for phase in stack.phases):
        notes.append("?: the interval contains 0, so the phase may take no time at all")
    every = [phase for stack in stacks for phase in stack.phases]
    if below := [f"{phase.name} {1e3 * phase.step_s.value:.2g} ms" for phase in every if phase.step_s.value < 0]:
        notes.append(f"negative, so not drawn in the stack: {', '.join(below)}")
    if any(len(phase.indices) > 1 for phase in every):
        notes.append(f"a part that was not measured is included in the next phase ({', '.join(PREFIXES)})")
    return notes


@plot("precision", views=("levers/precision",))
def draw_precision(run: RunReport) -> Figure | None:
    """Speed-up over the baseline, compiled memory of a step, accuracy after a short training from one seed, and its
    difference from the baseline's. Hollow: published differences between mixed precision and float32 in full ImageNet
    trainings; compare the sizes of the differences, not the accuracies."""
    if not shapes.any_timed(run.groups):
        return None
    trained = any(math.isfinite(arm.point.outcome("final_accuracy")) for arm in run.rows)
    widths = [1, 1, 0.9, 1] if trained else [1, 1]
    sheet = Sheet(1, len(widths), widths=widths)
    panels = sheet.panels[0]
    thick = 0.68 / len(run.groups)
    speed = shapes.arm_marks(run.groups, lambda arm: arm.gain, lambda v: f"{v.value:.2f} x")
    bars_from_zero(panels[0], speed, room=1.32, thick=thick)
    marks.unity(panels[0])
    entitle(panels[0], "speed-up")
    memory = shapes.arm_marks(
        run.groups, lambda arm: exact(arm.point.peak_bytes / 1e6), lambda v: scaled(v.value * 1e6, "B")
    )
    bars_from_zero(panels[1], memory, room=1.5, thick=thick)
    entitle(panels[1], "memory/device, MB")
    for number, axes in enumerate(panels[:3]):
        sheet.names(axes, shapes.arm_ticks(run.groups), abreast=len(run.groups), shown=number == 0)
    handles, remarks = shapes.arm_handles(run.groups, bars=True), shapes.arm_remarks(run.groups)
    if trained:
        _draw_accuracy(panels[2], run.groups)
        sheet.names(panels[3], _differences(panels[3], run.groups))
        panels[3].tick_params(axis="y", labelsize=6.5)
        handles += [
            marks.style_handle("measured", color=marks.series_style(0)[0], marker="o", linestyle="none"),
            marks.published_handle("o", "mixed precision minus float32, published"),
        ]
        remarks.append("accuracy: one short training per setting, so no error bar; a difference may be due to the seed")
        remarks.append(notes.cited(f"{published.read(SERIES).project}, Table 1"))
    return sheet.finish(f"{run.experiment}: what a number format changes", handles, remarks)


def _draw_accuracy(axes: Axes, everywhere: Sequence[ArmGroup]) -> None:
    get, show = (lambda arm: exact(arm.point.outcome("final_accuracy"))), (lambda value: f"{value.value:.3f}")
    marks.dots(axes, shapes.arm_marks(everywhere, get, show, apart=0.5))
    low, high = axes.dataLim.x0, axes.dataLim.x1
    pad = max(high - low, 0.002)  # equal accuracies still get an axis
    axes.set_xlim(low - 0.25 * pad, high + 1.1 * pad)
    axes.locator_params(axis="x", nbins=4)
    entitle(axes, "final accuracy")


def difference(arm: Row) -> Estimate:
    """Final accuracy minus the baseline's, in percentage points; UNKNOWN for the baseline and without a training."""
    if arm.against is None:
        return UNKNOWN
    return exact(100 * (arm.point.outcome("final_accuracy") - arm.baseline.point.outcome("final_accuracy")))


def _differences(axes: Axes, everywhere: Sequence[ArmGroup]) -> list[str]:
    """Draws measured differences above, published ones below. Returns the names of the rows."""
    arms = [(arm, group, style) for style, group in enumerate(everywhere) for arm in group.arms]
    ours = [each for each in arms if difference(each[0]).known]
    measured = enumerate(ours)
    marks.dots(axes, [Mark(at=y, value=difference(a), style=s, state=marks.state(a)) for y, (a, _, s) in measured])
    frame = published.read(SERIES).frame
    for y, change in enumerate(frame["mixed"] - frame["fp32"], start=len(ours)):
        marks.published(axes, [change], [y], shape="o", joined=False)
        axes.plot([0, change], [y, y], color=marks.PALE, linewidth=0.7, linestyle="--", zorder=1)
    marks.unity(axes, at=0.0)
    axes.margins(x=0.15)
    axes.locator_params(axis="x", nbins=4)
    entitle(axes, "difference, % points")
    labels = [", ".join(filter(None, [short(arm.label, 16), short(group.name, 16)])) for arm, group, _ in ours]
    return [*labels, *map(str, frame["model"])]


@plot("sharing", views=("levers/sharing",), title="trainings that share devices")
def draw_sharing(run: RunReport) -> Chart | None:
    """Left: throughput of all trainings together, divided by the throughput when they run one after the other. Middle:
    step time divided by that of a training alone; small dots are the single trainings, the dashed line is taking turns.
    Right: Jain's fairness index: 1 if all are equally fast; dashed: its least possible value."""
    if not shapes.any_timed(run.groups):
        return None
    # Trainings that take turns and trainings that overlap are two curves, and not one with two values at each x.
    groups, counts = _by_mps(run.groups), sorted({trainings(arm) for arm in run.rows})

    each = [on(_single_trainings, groups), on(marks.guide, counts, counts)]

    def fair(axes: Axes) -> None:
        marks.guide(axes, counts, [1 / count for count in counts])
        axes.set_ylim(0, 1.08)

    return lines(
        groups,
        trainings,
        [
            Panel(title="throughput over one after the other", values=[lambda arm: arm.gain], level=1.0),
            Panel(title="time over alone", values=[lambda arm: arm.ratio], extra=each),
            Panel(title="fairness", values=[fairness], extra=[fair]),
        ],
        x="trainings at once",
        handles=[
            *[marks.handle(0, "measured")] * (len(groups) == 1),  # of several, each has its name
            marks.style_handle("a single training", marker=".", markersize=3, linestyle="none", alpha=0.6),
            marks.guide_handle("taking turns; least fairness"),
        ],
        remarks=shapes.arm_remarks(run.groups),
    )


def _single_trainings(axes: Axes, groups: Sequence[ArmGroup]) -> None:
    """Draws a small dot for each training of an arm."""
    for number, group in enumerate(groups):
        for arm in group.arms:
            found = lever_results.sharing_of(arm)
            if found is not None and arm.ratio.known:  # `ratio` is the slowest's, and `relative` is over that one
                x, y = [trainings(arm)] * len(found.relative), [arm.ratio.value * share for share in found.relative]
                axes.plot(x, y, ".", color=marks.series_style(number)[0], markersize=3, linestyle="none", alpha=0.6)


def _by_mps(found: Sequence[ArmGroup]) -> list[ArmGroup]:
    """Splits each arm group in two: trainings that take turns, and trainings that share a GPU through MPS."""
    made: list[ArmGroup] = []
    for group in found:
        for mps in (False, True):
            if arms := [arm for arm in group.arms if TRAININGS.of(arm.point.levers).mps == mps]:
                name = ", ".join(filter(None, (group.name, "with MPS" if mps else "without MPS")))
                made.append(replace(group, name=name, arms=arms))
    return made if len(made) > len(found) else list(found)


def trainings(arm: Row) -> float:
    return float(arm.point.trainings)


def fairness(arm: Row) -> Estimate:
    """Jain's index of an arm; a training alone has 1."""
    found = lever_results.sharing_of(arm)
    return found.fairness if found is not None else Estimate(value=1.0)
