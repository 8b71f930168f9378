# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Figures of whole trainings, and of several runs or cards."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator

from jaxbench.catalog import published
from jaxbench.features.comparison import sentences as words
from jaxbench.features.comparison.comparison import Comparison
from jaxbench.features.comparison.judge import CANNOT_TELL, FASTER, SAME, SLOWER, Answer, Answers, Metric
from jaxbench.features.time_to_target.analysis import Curve, SeedGroup
from jaxbench.features.training import goodput
from jaxbench.features.training.goodput import Costs
from jaxbench.features.training.trainings import ACCURACY, LABELS, LearningCurve
from jaxbench.report.drawing import marks, notes
from jaxbench.report.drawing.axes import (
    devices_axis,
    efficiency_axis,
    entitle,
    log_axis,
    plain,
    round_ticks,
    seconds_tick,
    si,
)
from jaxbench.report.drawing.canvas import Sheet, short
from jaxbench.report.drawing.marks import COLOURS, GREY, Mark
from jaxbench.report.drawing.plot import plot

OVER = {"steps": si, "examples": si, "seconds": plain}


@plot("learning")
def draw_learning(sides: Mapping[str, Sequence[LearningCurve]], *, title: str) -> Figure | None:
    """Loss and accuracy on the test set over steps, examples and seconds of work (without compiling). Dotted: training
    loss, a mean over the steps since the last evaluation. Dashed: the target."""
    every = [one for trained in sides.values() for one in trained]
    if not any(one.rows for one in every):
        return None
    other = next((one.metric for one in every if one.metric != "loss"), ACCURACY)  # the metric of the lower panels
    sheet = Sheet(2, len(OVER), heights=1.7)
    for column, (over, show) in enumerate(OVER.items()):
        loss, accuracy = sheet.panels[:, column]
        for place, trained in enumerate(sides.values()):
            for one in trained:
                _learning_line(loss, one, "train_loss", over, place, dotted=True)
                _learning_line(loss, one, "test_loss", over, place)
                _learning_line(accuracy, one, f"test_{other}", over, place)
        for metric, target in {(one.metric, one.target) for one in every}:
            marks.unity(loss if metric == "loss" else accuracy, at=target, along="y")
        log_axis(loss, "y", show=plain, max_ticks=5)
        for axes in (loss, accuracy):
            log_axis(axes, "x", show=show, max_ticks=4)
        entitle(loss, "loss" if column == 0 else "")
        entitle(accuracy, f"test {other}" if column == 0 else "", x=over)
    handles = [marks.handle(place, short(name)) for place, name in enumerate(sides)]
    handles += [marks.style_handle("in training", color=GREY, linestyle=":"), marks.guide_handle("target")]
    return sheet.finish(title, handles)


def _learning_line(axes: Axes, one: LearningCurve, what: str, over: str, place: int, *, dotted: bool = False) -> None:
    colour, marker = marks.series_style(place)
    x, y = one.series(what, over)
    few = len(x) <= 40
    axes.plot(x, y, color=colour, linestyle=":" if dotted else "-", marker="" if dotted or not few else marker)


_BETWEEN: Any = ("-", (0, (6, 1.5, 1, 1.5)), ":", marks.DASHED)  # a line style per learning-rate rule


@plot("targets")
def draw_targets(curves: Sequence[Curve], *, title: str) -> Figure | None:
    """Left: steps to the target over the global batch. Dashed: twice the batch in half the steps. Dotted: the knee, the
    batch that needs twice the least number of steps. Shaded: the measured gradient noise scale, which should predict
    the knee. Middle: time of these steps. Right: time at the fastest batch (written at the mark), over devices. Colour
    shows the device count, line style the learning-rate rule. Arrows: target not reached within the budget, so the mark
    is a lower limit."""
    models = list(dict.fromkeys(curve.model for curve in curves))
    if not models:
        return None
    sheet = Sheet(len(models), 3, widths=[1.25, 1.15, 0.8])
    styles = {rule: _BETWEEN[i % len(_BETWEEN)] for i, rule in enumerate(dict.fromkeys(one.rule for one in curves))}
    counts = sorted({count for curve in curves for count in curve.counts})
    for row, model in zip(sheet.panels, models, strict=True):
        of_model = [curve for curve in curves if curve.model == model]
        _steps(row[0], of_model, styles, counts)
        _seconds(row[1], of_model, styles, counts)
        _targets_devices(row[2], of_model, styles, counts)
        entitle(row[0], f"{model}: steps to the target", x="global batch")
        entitle(row[1], "time to the target", x="global batch")
        entitle(row[2], "time, fastest batch", x="devices")
    handles = [marks.handle(place, f"{n} device{'s' if n > 1 else ''}") for place, n in enumerate(counts)]
    rules = [marks.style_handle(f"learning rate: {rule}", color=GREY, linestyle=s) for rule, s in styles.items()]
    seeds = [(len(place.trained),) for curve in curves for place in curve.places]
    what = "geometric mean over seeds"
    what += f"; {notes.BARS} of the mean; {notes.n_of(seeds)}" if max(seeds) > (1,) else "; n = 1 seed"
    note = f"marks: {what}; time by the trainings' own clocks"
    return sheet.finish(title, [*handles, *rules, marks.guide_handle("1/batch, or 1/devices")], [note])


def _steps(axes: Axes, curves: Sequence[Curve], styles: Mapping[str, Any], counts: Sequence[int]) -> None:
    for curve in curves:
        for devices in curve.counts:
            place, between = counts.index(devices), styles[curve.rule]
            _targets_line(axes, curve.on(devices), lambda one: one.steps, place=place, between=between)
    drawn = [place for place in curves[0].on(curves[0].counts[0]) if not place.censored]
    batches = np.array([place.batch for curve in curves for place in curve.places], float)
    if drawn:
        first = drawn[0]
        lowest = min(place.steps.value for place in curves[0].places)
        ends = np.array([first.batch, min(batches.max(), 2 * first.batch * first.steps.value / lowest)])
        marks.guide(axes, ends, first.steps.value * first.batch / ends)
    for number, curve in enumerate(curve for curve in curves if curve.knee.known):
        axes.axvline(curve.knee.value, color="black", linewidth=0.9, linestyle=":", zorder=1)
        text = f"knee {curve.knee.value:.3g}" + (f" ({curve.rule})" if len(curves) > 1 else "")
        high: dict[str, Any] = dict(xycoords=("data", "axes fraction"), xytext=(3, 0), va="top")
        marks.write(axes, curve.knee.value, 0.99 - 0.09 * number, text, **high)
    scale = next((curve.noise_scale for curve in curves if curve.noise_scale.known), None)
    if scale is not None:
        low, high_end = (scale.lo, scale.hi) if scale.has_interval else (scale.value / 1.05, scale.value * 1.05)
        axes.axvspan(low, high_end, color=GREY, alpha=0.18, linewidth=0, zorder=0)
        left = scale.value**2 < batches.min() * batches.max()  # in the axis's left half: the text goes to the right
        beside: dict[str, Any] = dict(xycoords=("data", "axes fraction"), color=GREY, va="bottom")
        beside |= dict(ha="left", xytext=(5, 2)) if left else dict(ha="right", xytext=(-5, 2))
        marks.write(axes, scale.value, 0.0, f"noise scale {scale.value:.3g}", **beside)
    log_axis(axes, "y", show=si, max_ticks=6)
    _batch_axis(axes, batches)


def _seconds(axes: Axes, curves: Sequence[Curve], styles: Mapping[str, Any], counts: Sequence[int]) -> None:
    """Draws the times of the first rule only: those of several rules would cover each other."""
    curve = curves[0]
    for devices in curve.counts:
        of_count, between = curve.on(devices), styles[curve.rule]
        _targets_line(axes, of_count, lambda one: one.seconds, place=counts.index(devices), between=between)
    log_axis(axes, "y", show=seconds_tick, max_ticks=6)
    _batch_axis(axes, np.array([place.batch for place in curve.places], float))


def _targets_devices(axes: Axes, curves: Sequence[Curve], styles: Mapping[str, Any], counts: Sequence[int]) -> None:
    for curve in curves:
        best = [place for count in curve.counts if (place := curve.fastest(count))]
        at, times = [place.devices for place in best], [place.seconds.value for place in best]
        axes.plot(at, times, color=GREY, linestyle=styles[curve.rule], zorder=2)
        for place in best:
            _targets_line(
                axes, [place], lambda one: one.seconds, at=lambda one: one.devices, place=counts.index(place.devices)
            )
            marks.write(axes, place.devices, place.seconds.value, f"{place.batch}")
        if best and curve is curves[0]:
            ends = np.array([best[0].devices, max(curve.counts)], float)
            marks.guide(axes, ends, best[0].seconds.value * best[0].devices / ends)
    devices_axis(axes, sorted({count for curve in curves for count in curve.counts}))
    log_axis(axes, "y", show=seconds_tick, max_ticks=5)


def _targets_line(
    axes: Axes,
    places: Sequence[SeedGroup],
    value: Any,
    *,
    place: int,
    between: Any = "-",
    at: Any = lambda one: one.batch,
) -> None:
    """Draws one series; groups that missed the target are hollow, with an arrow upward."""
    known = [one for one in places if value(one).known]
    made = [Mark(at=at(one), value=value(one), state="hollow" if one.censored else "solid") for one in known]
    marks.line(axes, [mark for mark in made if mark.state == "solid"], place=place, between=between)
    marks.line(axes, [mark for mark in made if mark.state == "hollow"], place=place, between="none")
    colour, _ = marks.series_style(place)
    for one in known:
        if one.censored:
            marks.write(axes, at(one), value(one).value, "\N{UPWARDS ARROW}", above=True, size=9, color=colour)


def _batch_axis(axes: Axes, batches: np.ndarray) -> None:
    log_axis(axes, "x", base=2, show=plain, max_ticks=6, span=batches.tolist())


MOST = 10**5  # devices
SLOW = 60.0, 600.0  # (seconds that a checkpoint blocks, seconds of a restart) of a large model: assumed, not measured
LEAST_S = 600.0  # from shorter trainings, checkpoint and restart costs cannot be carried over to large ones
_NAMED = 6  # parts of the bar with their own style; the smallest parts share one


@plot("goodput")
def draw_goodput(spent: Mapping[str, int], costs: Costs | None, *, title: str, forecast: float | None = None) -> Figure:
    """Above: the wall time of the training, over all its starts. Below, for trainings of ten minutes or more: the
    expected goodput (share of time in steps that count) with the measured costs of a checkpoint and a restart, if the
    failure of any device ends the job."""
    if sum(spent.values()) / 1e9 < LEAST_S:
        costs = None
    sheet = Sheet(2, 1, heights=[0.75, 2.2]) if costs else Sheet(heights=0.75)
    parts = _bar(sheet.panels[0, 0], spent, forecast)
    handles = [marks.bar_handle(style, label) for style, label in enumerate(parts)]
    notes = [] if forecast is None else ["dashed line: expected end of the steps that count"]
    if costs:
        notes += _goodput_devices(sheet.panels[1, 0], costs)
    return sheet.finish(title, handles, notes)


def _bar(axes: Axes, spent: Mapping[str, int], forecast: float | None) -> list[str]:
    """Draws one bar of seconds. Returns its parts by style."""
    whole = sum(spent.values()) / 1e9
    largest = sorted(spent, key=lambda name: -spent[name])[:_NAMED]
    parts = {LABELS[name]: spent[name] / 1e9 for name in spent if name in largest and spent[name]}
    if (rest := whole - sum(parts.values())) > 1e-9:
        parts["all else"] = rest
    marks.stack(axes, 0, [(size, style) for style, size in enumerate(parts.values())], thick=0.8)
    if forecast is not None:
        marks.unity(axes, at=forecast * whole)
    axes.set_yticks([])
    axes.set_xlim(0, whole)
    axes.set_ylim(-0.5, 0.5)
    axes.grid(False, axis="y")
    entitle(axes, "wall time, s")
    return list(parts)


def _goodput_devices(axes: Axes, costs: Costs) -> list[str]:
    """Draws expected goodput over devices: best interval, this training's interval, and higher costs.

    Returns:
      The footnotes.
    """
    known = published.interruptions()
    counts = np.unique(np.geomspace(1, MOST, 120).astype(int))
    slow = replace(costs, checkpoint_s=SLOW[0], latency_s=SLOW[0], restart_s=SLOW[1])
    for style, of_line in enumerate((costs, slow)):
        axes.plot(
            counts, [_best(of_line, int(n))[1] for n in counts], color=marks.COLOURS[style], linestyle="-:"[style]
        )
        for power in range(3 * style, int(math.log10(MOST)) + 1):  # only where the lines are apart enough for text
            at, share = _best(of_line, 10**power)
            axes.plot([10**power], [share], marker=marks.MARKERS[style], color=marks.COLOURS[style])
            side: Any = dict(xytext=(0, -3), va="top") if style else {}
            marks.write(axes, 10**power, share, _duration(at), above=True, **side)
    used = [100 * goodput.expected_goodput(costs, goodput.HOUR_S / (int(n) * known.per_device_hour)) for n in counts]
    axes.plot(counts, used, color=marks.COLOURS[0], linestyle=marks.DASHED)
    marks.published(axes, [known.devices], [100 * known.goodput], shape="^", joined=False)
    marks.write(axes, known.devices, 100 * known.goodput, "Llama 3 (> 90 %)", xytext=(0, 10), color=GREY)
    efficiency_axis(axes)
    log_axis(axes, "x", show=si)
    entitle(axes, "expected goodput, %", x="devices")
    return [
        "solid: checkpoints at the best interval (Daly 2006), written at each mark; dashed: "
        f"{_duration(costs.interval_s)} apart, as in this training; dotted: at the best interval, if a checkpoint "
        f"blocked {SLOW[0]:g} s and a restart took {SLOW[1]:g} s (assumed)",
        f"failures: one per {1 / known.per_device_hour:,.0f} device-hours, the rate of {known.project}, "
        "arXiv:2407.21783",
        f"measured here, assumed for any number of devices: a checkpoint blocks {costs.checkpoint_s:.3g} s, is sealed "
        f"{costs.latency_s:.3g} s later, a restart takes {costs.restart_s:.3g} s, and {1 - costs.useful:.1%} of "
        "progress is waiting for input and evaluating",
    ]


def _best(costs: Costs, devices: int) -> tuple[float, float]:
    """(best seconds between checkpoints, expected goodput in percent)."""
    rate = published.interruptions().per_device_hour
    at, share = goodput.at_devices(costs, devices=devices, failures_per_device_hour=rate)
    return at, 100 * share


def _duration(seconds: float) -> str:
    """Two digits and a unit, such as "0.44 s", "34 s", "5.7 min" or "3.4 h"."""
    size, unit = next((pair for pair in ((3600, "h"), (60, "min")) if seconds >= 2 * pair[0]), (1, "s"))
    return f"{float(f'{seconds / size:.2g}'):g} {unit}"


LIMIT = 40
BAND = "#e8e8e8"
_VERDICTS_STYLES: dict[str, tuple[str, str, str]] = {  # colour, marker, inside
    SLOWER: (COLOURS[1], "s", COLOURS[1]),
    FASTER: (COLOURS[2], "^", COLOURS[2]),
    SAME: (COLOURS[0], "o", COLOURS[0]),
    CANNOT_TELL: (GREY, "o", "white"),
}


@plot("verdicts")
def draw_verdicts(comparison: Comparison) -> Figure | None:
    """B's value divided by A's, for each point and overall (the geometric mean). Differences within the grey band count
    as the same. Verdicts may use wider intervals than those drawn, to keep false alarms rare in the whole table. The
    scale is logarithmic."""
    answers = comparison.answers
    shown = selected(answers.points)
    if not any(answer.ratio.known for answer in shown):
        return None
    rows = [*shown, answers.overall] if len(answers.points) > 1 else shown
    sheet = Sheet()
    axes = sheet.only()
    _axis(axes, rows, answers)
    for y, answer in enumerate(rows):
        _row(axes, y, answer, overall=answer is answers.overall)
    sheet.names(axes, [short(drawable(words.named(answer.name)), 36) for answer in rows])
    if len(rows) > len(shown):
        axes.axhline(len(shown) - 0.5, color="black", linewidth=0.6)
        axes.get_yticklabels()[-1].set_fontweight("bold")
    slow = words.deciding(comparison)
    at = f" at {len(slow)} of {len(answers.points)} points" if slow else ""
    title = f"{words.called(answers.metric)}, B over A: {answers.verdict}{at}"
    return sheet.finish(title, _verdicts_handles(rows, answers.margin), _verdicts_notes(comparison, shown))


def selected(points: Sequence[Answer]) -> list[Answer]:
    """At most LIMIT points, in their order: slower points are kept first, then the most changed ones."""
    ranked = sorted(points, key=lambda answer: (answer.verdict != SLOWER, -_change(answer)))[:LIMIT]
    chosen = {id(answer) for answer in ranked}
    return [answer for answer in points if id(answer) in chosen]


def drawable(text: str) -> str:
    """The text with a question mark for each character that the figures' font lacks."""
    known = font_manager.get_font(font_manager.findfont("DejaVu Sans")).get_charmap()
    return "".join(letter if ord(letter) in known else "?" for letter in words.clean(text))


def _change(answer: Answer) -> float:
    return abs(math.log(answer.ratio.value)) if answer.ratio.known else -1.0


def _axis(axes: Axes, rows: Sequence[Answer], answers: Answers) -> None:
    """Sets a logarithmic axis around 1 and draws the margin's band. Ticks are round numbers."""
    inside = 1 / (1 + answers.margin), 1 + answers.margin
    ends = [end for row in rows for end in (row.ratio.value, row.ratio.lo, row.ratio.hi) if math.isfinite(end)]
    log_axis(axes, "x", show=lambda value: plain(round(value, 6)))
    low, high = min(*ends, inside[0]), max(*ends, inside[1])
    room = max((high / low) ** 0.06, 1.005)
    axes.set_xlim(low / room, high * room)
    axes.xaxis.set_major_locator(FixedLocator(ticks(low / room, high * room)))
    axes.axvspan(*inside, color=BAND, linewidth=0, zorder=0)
    marks.unity(axes)
    entitle(axes, x=f"{words.called(answers.metric)}, B over A  ({_ways(answers.metric)})")


def ticks(low: float, high: float) -> list[float]:
    """At most 9 ticks: multiples of a round step for a short axis, else round numbers of each decade."""
    if high / low > 4:
        return round_ticks(low, high)
    for step in (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0):
        multiples = [step * n for n in range(math.ceil(low / step), math.floor(high / step) + 1)]
        if len(multiples) <= 9:
            return multiples
    return round_ticks(low, high)


def _ways(metric: Metric) -> str:
    left, right = (SLOWER, FASTER) if metric.more_is_better else (FASTER, SLOWER)
    return f"left: B is {left}, right: B is {right}"


def _row(axes: Axes, y: int, answer: Answer, *, overall: bool) -> None:
    """Draws one interval, with verdict and numbers right of the panel. Overall is a large diamond in bold."""
    colour, marker, inside = _VERDICTS_STYLES[answer.verdict]
    ratio, weight = answer.ratio, "bold" if overall else "normal"
    if ratio.known:
        ends = [[ratio.value - ratio.lo], [ratio.hi - ratio.value]] if ratio.has_interval else None
        axes.errorbar(
            [ratio.value], [y], xerr=ends, color=colour, marker="D" if overall else marker, linestyle="none",
            markersize=6 if overall else 4.5, markerfacecolor=inside, markeredgewidth=0.9, capsize=1.8, zorder=3,
            elinewidth=1.8 if overall else 0.9, capthick=0.8,
        )  # fmt: skip
    ink = "#333333" if answer.verdict == CANNOT_TELL else colour
    marks.beside(axes, y, answer.verdict, color=ink, fontweight=weight)
    marks.beside(axes, y, words.ratio(ratio), right=52, fontweight=weight)


def _verdicts_handles(rows: Sequence[Answer], margin: float) -> list[Line2D | Patch]:
    """Legend entries of the verdicts that occur, and of the band."""
    styles = {
        verdict: style for verdict, style in _VERDICTS_STYLES.items() if any(row.verdict == verdict for row in rows)
    }
    return [
        *(
            Line2D([], [], label=verdict, linestyle="none", color=colour, marker=marker, markerfacecolor=inside)
            for verdict, (colour, marker, inside) in styles.items()
        ),
        Patch(color=BAND, label=f"within {100 * margin:.3g} %"),
    ]


def _verdicts_notes(comparison: Comparison, shown: Sequence[Answer]) -> list[str]:
    """Notes on A and B, on n and the error bars, and on points that are not shown."""
    answers = comparison.answers
    wider = "95 % confidence intervals; verdicts use wider ones"
    which = "the intervals that verdicts use" if words.paired(answers) else wider
    bars = f"error bars: {which}, see docs/STATISTICS.md" if any(a.ratio.has_interval for a in shown) else ""
    few = "no error bar: too few rounds or pairs for one" if any(not a.ratio.has_interval for a in shown) else ""
    large = "large diamond: all points together" if len(answers.points) > 1 and answers.overall.ratio.known else ""
    sentences = [*map(drawable, words.compared(comparison)), "; ".join(filter(None, [bars, few, large]))]
    sentences += notes.rest(len(shown), len(answers.points), "points: the slower ones, then the most changed")
    if comparison.left_out:
        count = len(comparison.left_out)
        sentences.append(f"{count} point{'' if count == 1 else 's'} left out, as the table says")
    return sentences


_CARDS_STYLES: dict[str, Any] = {"strong": "-", "weak": ":"}
_ACROSS = 3  # panels in a row


@dataclass(frozen=True, kw_only=True)
class CardCurve:
    """One strategy of one card in one scaling. marks: efficiency in percent over the number of devices."""

    machine: str
    experiment: str
    strategy: str
    scaling: str
    marks: tuple[Mark, ...]

    @property
    def style(self) -> tuple[str, str]:
        return self.machine, self.strategy


@plot("cards")
def draw_cards(lines: Sequence[CardCurve], *, title: str, further: Sequence[str] = ()) -> Figure | None:
    """Efficiency over devices of all result cards, as recorded in each card."""
    drawn = sorted((line for line in lines if len(line.marks) > 1), key=lambda line: (line.style, line.scaling))
    if not drawn:
        return None
    styles = list(dict.fromkeys(line.style for line in drawn))
    experiments = sorted({line.experiment for line in drawn})
    across = min(_ACROSS, len(experiments))
    sheet = Sheet(-(-len(experiments) // across), across, heights=2.2)
    panels = list(sheet.panels.flat)
    for axes, experiment in zip(panels, experiments, strict=False):
        _panel(axes, [line for line in drawn if line.experiment == experiment], styles, title=experiment)
    for axes in panels[len(experiments) :]:
        axes.set_axis_off()
    return sheet.finish(title, _cards_handles(drawn, styles), [*_cards_notes(drawn), *further], even=False)


def _panel(axes: Axes, lines: Sequence[CardCurve], styles: list[tuple[str, str]], *, title: str) -> None:
    marks.unity(axes, at=100, along="y")
    for place, line in enumerate(lines):
        factor, style = marks.dodge(place, len(lines)), _CARDS_STYLES.get(line.scaling, "-")
        made = [replace(mark, at=factor * mark.at) for mark in line.marks]
        marks.line(axes, made, place=styles.index(line.style), between=style)
    devices_axis(axes, sorted({int(mark.at) for line in lines for mark in line.marks}))
    efficiency_axis(axes)
    entitle(axes, f"{short(title, 18)}: efficiency, %")


def _cards_handles(lines: Sequence[CardCurve], styles: list[tuple[str, str]]) -> list[Line2D]:
    names = [f"{short(machine, 34)}: {short(strategy, 34)}" for machine, strategy in styles]
    scalings = [name for name in _CARDS_STYLES if any(line.scaling == name for line in lines)]
    kinds = [marks.style_handle(name, linestyle=_CARDS_STYLES[name]) for name in scalings]
    ours = [marks.handle(place, name) for place, name in enumerate(names)]
    return [*ours, *(kinds if len(kinds) > 1 else []), marks.guide_handle("ideal")]


def _cards_notes(lines: Sequence[CardCurve]) -> list[str]:
    every = [mark for line in lines for mark in line.marks]
    states = {mark.state for mark in every}
    bars = [f"{notes.BARS}; n is in each card"] if any(mark.value.has_interval for mark in every) else []
    return bars + [note for state, note in (("hollow", notes.HOLLOW), ("wrong", notes.WRONG)) if state in states]
