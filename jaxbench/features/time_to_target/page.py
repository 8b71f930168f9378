# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The page, the figure and targets.csv of a time-to-target run over batch sizes.

The figure has steps and seconds over batch sizes and devices.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.typing import LineStyleType
from rich.console import Console

from jaxbench.core.store import RunFolder, write_atomic
from jaxbench.digits import counted, digits
from jaxbench.features.time_to_target import analysis
from jaxbench.features.time_to_target.analysis import Curve, SeedGroup
from jaxbench.features.training import trainings
from jaxbench.features.training.trainings import Trained
from jaxbench.report import page
from jaxbench.report.drawing import canvas, marks, notes
from jaxbench.report.drawing.axes import devices_axis, entitle, log_axis, plain, seconds_tick, si
from jaxbench.report.drawing.canvas import Sheet, plot
from jaxbench.report.drawing.marks import GREY, Mark
from jaxbench.report.page import Page, Picture, Purpose, Section
from jaxbench.report.pictures import pictured
from jaxbench.report.table import ALWAYS, TEXT, Column, fill, to_csv
from jaxbench.statistics.bootstrap import Estimate

_BETWEEN: tuple[LineStyleType, ...] = ("-", (0, (6, 1.5, 1, 1.5)), ":", marks.DASHED)  # one per learning-rate rule
PAGE, CSV, DEFINITION = "report.html", "targets.csv", "time-to-target"
# What the page says, by what the trainings show.
SENTENCES = {
    "title": "{experiment}: steps and time to a target",
    "knee": "{of}: steps to the target fall as 1/batch up to a knee of about {knee} examples. At the knee, the "
    "training needs twice the least number of steps, {least}.",
    "few batches": "{of}: too few batches reached the target for a knee.",
    "above": "{of}: steps fall as 1/batch over all batches that reached the target, at most {most}: the knee is above "
    "them.",
    "below": "{of}: steps do not fall with the batch: the knee is below the smallest.",
    "seeds": "{of}: the seeds do not agree on a knee.",
    "noise": " The measured gradient noise scale is {scale} examples",
    "fastest": "{model}, {rule}: the fastest batch reaches the target in {times}.",
    "not reached": "{model}, {rule}, batch {batch}, {devices}: {lost} of {seeds} did not reach it in {steps}{diverged}"
    ": this number counts as a lower limit.",
}
# Other programs read these names; new ones are appended.
_FILE = tuple(
    Column(name, name)
    for name in (
        "model",
        "batch",
        "devices",
        "seed",
        "learning_rate",
        "rule",
        "steps",
        "reached",
        "accuracy",
        "noise_scale",
        "seconds",
        "step_s",
        "target",
        "diverged",
        "folder",
        "joules",
        "price_per_hour",
        "cost",
    )
)
_number = partial(Column, kind=TEXT, terminal=ALWAYS, definition=DEFINITION)
_COLUMNS = (
    Column("model", "model", kind=TEXT, terminal=ALWAYS),
    Column("rule", "rule", kind=TEXT, terminal=ALWAYS),
    Column("devices", "devices", terminal=ALWAYS),
    Column("batch", "batch", terminal=ALWAYS),
    Column("learning rate", lambda group: group.trained[0].learning_rate, digits),
    Column("seeds", lambda group: len(group.trained)),
    Column("reached", lambda group: len(group.trained) - group.censored, terminal=ALWAYS),
    _number("steps", lambda group: _shown(group, "steps")),
    Column("accuracy", lambda group: _accuracy(group), lambda share: f"{share:.4f}", definition=DEFINITION),
    _number("noise scale", lambda group: _shown(group, "noise_scale")),
    _number("seconds", lambda group: _shown(group, "seconds")),
    _number("joules", lambda group: _rare(group, "joules")),
    _number("cost", lambda group: _rare(group, "cost")),
)


@plot("targets")
def draw_targets(curves: Sequence[Curve], *, title: str) -> Figure | None:
    """Left: steps to the target over the global batch. Dashed: twice the batch in half the steps. Dotted: the knee, the
    batch that needs twice the least number of steps. Shaded: the measured gradient noise scale, which should predict
    the knee. Middle: time of these steps. Right: time at the fastest batch (written at its mark), over devices. Colour
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
        _seconds_of(row[1], of_model, styles, counts)
        _targets_devices(row[2], of_model, styles, counts)
        entitle(row[0], f"{model}: steps to the target", x="global batch")
        entitle(row[1], "time to the target", x="global batch")
        entitle(row[2], "time, fastest batch", x="devices")
    handles = [marks.handle(style, f"{n} device{'s' if n > 1 else ''}") for style, n in enumerate(counts)]
    rules = [marks.style_handle(f"learning rate: {rule}", color=GREY, linestyle=s) for rule, s in styles.items()]
    seeds = [(len(group.trained),) for curve in curves for group in curve.groups]
    what = "geometric mean over seeds"
    what += f"; {notes.BARS} of the mean; {notes.n_of(seeds)}" if max(seeds) > (1,) else "; n = 1 seed"
    said = [f"marks: {what}; time by the trainings' own clocks", "knee: the batch that needs twice the fewest steps"]
    if any(group.censored for curve in curves for group in curve.groups):
        said.append("hollow with an arrow: a lower limit, as a seed did not reach the target")
    return sheet.finish(title, [*handles, *rules, marks.guide_handle("1/batch, or 1/devices")], said)


def _steps(axes: Axes, curves: Sequence[Curve], styles: Mapping[str, LineStyleType], counts: Sequence[int]) -> None:
    """Draws steps to the target over batches, with a line of constant examples."""
    for curve in curves:
        for devices in curve.counts:
            between = styles[curve.rule]
            _targets_line(axes, curve.on(devices), lambda one: one.steps, style=counts.index(devices), between=between)
    # The guide starts at the smallest batch, where doubling the batch still halves the steps if it ever does.
    drawn = [group for group in curves[0].on(curves[0].counts[0]) if not group.censored]
    batches = np.array([group.batch for curve in curves for group in curve.groups], float)
    if drawn:
        first = drawn[0]
        lowest = min(group.steps.value for group in curves[0].groups)
        ends = np.array([first.batch, min(batches.max(), 2 * first.batch * first.steps.value / lowest)])
        marks.guide(axes, ends, first.steps.value * first.batch / ends)
    for number, curve in enumerate(curve for curve in curves if curve.knee.known):
        axes.axvline(curve.knee.value, color="black", linewidth=0.9, linestyle=":", zorder=1)
        text = f"knee {digits(curve.knee.value)}" + (f" ({curve.rule})" if len(curves) > 1 else "")
        # Each one lower than the one before, because knees of several rules may be close.
        high: marks.Style = dict(xycoords=("data", "axes fraction"), xytext=(3, 0), va="top")
        marks.write(axes, curve.knee.value, 0.99 - 0.09 * number, text, **high)
    scale = next((curve.noise_scale for curve in curves if curve.noise_scale.known), None)
    if scale is not None:
        # Without an interval a narrow band: a line would look like another knee.
        low, high_end = (scale.lo, scale.hi) if scale.has_interval else (scale.value / 1.05, scale.value * 1.05)
        axes.axvspan(low, high_end, color=GREY, alpha=0.18, linewidth=0, zorder=0)
        left = scale.value**2 < batches.min() * batches.max()  # in the axis's left half: the text goes to the right
        style: marks.Style = dict(xycoords=("data", "axes fraction"), color=GREY, va="bottom")
        style |= dict(ha="left", xytext=(5, 2)) if left else dict(ha="right", xytext=(-5, 2))
        marks.write(axes, scale.value, 0.0, f"noise scale {digits(scale.value)}", **style)
    log_axis(axes, "y", show=si, max_ticks=6)
    _batch_axis(axes, batches)


def _seconds_of(
    axes: Axes, curves: Sequence[Curve], styles: Mapping[str, LineStyleType], counts: Sequence[int]
) -> None:
    curve = curves[0]  # the times of the first rule only: those of several rules would cover each other
    for devices in curve.counts:
        of_count, between = curve.on(devices), styles[curve.rule]
        _targets_line(axes, of_count, lambda one: one.seconds, style=counts.index(devices), between=between)
    log_axis(axes, "y", show=seconds_tick, max_ticks=6)
    _batch_axis(axes, np.array([group.batch for group in curve.groups], float))


def _targets_devices(
    axes: Axes, curves: Sequence[Curve], styles: Mapping[str, LineStyleType], counts: Sequence[int]
) -> None:
    for curve in curves:
        best = [group for count in curve.counts if (group := curve.fastest(count))]
        at, times = [group.devices for group in best], [group.seconds.value for group in best]
        # Grey, because the marks have the colours of their device counts.
        axes.plot(at, times, color=GREY, linestyle=styles[curve.rule], zorder=2)
        for group in best:
            _targets_line(
                axes, [group], lambda one: one.seconds, at=lambda one: one.devices, style=counts.index(group.devices)
            )
            marks.write(axes, group.devices, group.seconds.value, f"batch {group.batch}", above=True)
        if best and curve is curves[0]:
            ends = np.array([best[0].devices, max(curve.counts)], float)
            marks.guide(axes, ends, best[0].seconds.value * best[0].devices / ends)
    devices_axis(axes, sorted({count for curve in curves for count in curve.counts}))
    log_axis(axes, "y", show=seconds_tick, max_ticks=5)


def _targets_line(
    axes: Axes,
    groups: Sequence[SeedGroup],
    value: Any,
    *,
    style: int,
    between: LineStyleType = "-",
    at: Any = lambda one: one.batch,
) -> None:
    """Draws one series; groups that missed the target are hollow, with an arrow upward."""
    known = [one for one in groups if value(one).known]
    made = [Mark(at=at(one), value=value(one), state="hollow" if one.censored else "solid") for one in known]
    marks.line(axes, [mark for mark in made if mark.state == "solid"], place=style, between=between)
    # Not joined: a line through a lower limit would be a curve that nobody measured.
    marks.line(axes, [mark for mark in made if mark.state == "hollow"], place=style, between="none")
    colour, _ = marks.series_style(style)
    for one in known:
        if one.censored:
            marks.write(axes, at(one), value(one).value, "\N{UPWARDS ARROW}", above=True, size=9, color=colour)


def _batch_axis(axes: Axes, batches: np.ndarray) -> None:
    log_axis(axes, "x", base=2, show=plain, max_ticks=6, span=batches.tolist())


def figure(folder: Path) -> Figure | None:
    """The figure of a folder of trainings."""
    return draw_targets(analysis.curves(trainings.read_trained(folder)), title=_page_title(folder))


def write(folder: Path, console: Console | None = None, *, look: Mapping[str, object] | None = None) -> None:
    """Writes targets.csv, report.html and figures/targets. With a `console`, it also prints the page.

    Raises UserError if the folder has no trainings to a target.
    """
    trained = trainings.read_trained(folder)
    curves = analysis.curves(trained)
    config = RunFolder(folder).config()
    title = _page_title(folder)
    files, shown = pictured(
        draw_targets.name,
        lambda: draw_targets(curves, title=title),
        draw_targets.caption,
        canvas.look_of(config, look),
    )
    made = page_of(folder, trained, shown)
    write_atomic(folder / CSV, csv_of(trained))
    canvas.write(files, folder / "figures", draw_targets.name)
    write_atomic(folder / PAGE, page.render(made))
    if console is not None:
        page.show(made, console)
        console.print(f"\nPage, figure and table: {folder / PAGE}", highlight=False, soft_wrap=True)


def csv_of(trained: Sequence[Trained]) -> str:
    """targets.csv: every training."""
    return to_csv(_FILE, trained)


def _page_title(folder: Path) -> str:
    return SENTENCES["title"].format(experiment=RunFolder(folder).config().get("experiment", folder.name))


def page_of(folder: Path, trained: Sequence[Trained], pictures: Sequence[Picture] = ()) -> Page:
    """The page of the trainings in `folder`."""
    curves = analysis.curves(trained)
    groups = [group for curve in curves for group in curve.groups]
    sections = []
    # A mean with a censored seed is only a lower limit, and a reader must know that before comparing batches.
    if lost := [_not_reached(group) for group in groups if group.censored]:
        sections.append(Section("Not reached", lost, Purpose.NOTE, DEFINITION))
    # The tries are in no mean: the best of several is too good. They are listed, so that the choice can be followed.
    if tried := [trainings.trained_sentence(one) for one in trained if one.rule == trainings.GRID]:
        sections.append(Section("The grid of the tuned learning rates", tried, Purpose.NOTE, DEFINITION))
    return Page(
        name=folder.name,
        heading=_page_title(folder),
        headlines=[sentence for curve in curves for sentence in (*_seconds(curve), _knee(curve))],
        pictures=pictures,
        table=fill(_COLUMNS, groups, group=lambda group: (group.model, group.rule, group.devices)),
        sections=sections,
        definition=DEFINITION,
        made_from=f"{trainings.TARGETS} and config.json",
        links=[(CSV, "every training, as CSV")],
    )


def _knee(curve: Curve) -> str:
    """Where more examples per step stop saving steps, as a sentence."""
    of, scale = f"{curve.model}, learning rate {curve.rule}", curve.noise_scale
    noise = SENTENCES["noise"].format(scale=_text(scale)) if scale.known else ""
    if curve.knee.known:
        ratio = f"; knee over noise scale is {_text(curve.ratio)}" if curve.ratio.known else ""
        said = SENTENCES["knee"].format(of=of, knee=_text(curve.knee), least=_text(curve.least))
    else:
        ratio = ""
        said = SENTENCES[_why_no_knee(curve)].format(of=of, most=max(group.batch for group in curve.groups))
    return f"{said}{noise}{ratio}{'.' * bool(noise or ratio)}"


def _why_no_knee(curve: Curve) -> str:
    """Without a knee the reader still learns on which side of the batches it is, if that is known."""
    if curve.straight:
        return "above"
    if curve.flat:
        return "below"
    reached = {group.batch for group in curve.groups if not group.censored}
    return "seeds" if len(reached) >= analysis.LEAST_BATCHES else "few batches"


def _seconds(curve: Curve) -> list[str]:
    """The fastest batch on each number of devices, as a sentence."""
    each = []
    for devices in curve.counts:
        if best := curve.fastest(devices):
            each.append(f"{_text(best.seconds)} s on {devices} device{'s' if devices > 1 else ''} (batch {best.batch})")
    return [SENTENCES["fastest"].format(model=curve.model, rule=curve.rule, times=", ".join(each))] if each else []


def _not_reached(group: SeedGroup) -> str:
    blown = sum(one.diverged is not None for one in group.trained)
    steps = max(one.steps for one in group.trained if not one.reached)  # those of the budget, also if it diverged
    return SENTENCES["not reached"].format(
        model=group.model,
        rule=group.rule,
        batch=group.batch,
        devices=counted(group.devices, "device"),
        lost=group.censored,
        seeds=counted(len(group.trained), "seed"),
        steps=counted(steps, "step"),
        diverged=f", {blown} of them diverged" if blown else "",
    )


def _text(value: Estimate) -> str:
    """A value with its interval: "120 [80, 170]"."""
    if not value.known:
        return "unknown"
    ends = f" [{digits(value.lo)}, {digits(value.hi)}]" if value.has_interval else ""
    return f"{digits(value.value)}{ends}"


def _shown(group: SeedGroup, number: str) -> str:
    """A number with its interval; a lower limit if a seed is censored."""
    limited = number in ("steps", "seconds", "joules", "cost")  # what a longer training would have more of
    value: Estimate = getattr(group, number)
    return f"at least {_text(value)}" if limited and group.censored and value.known else _text(value)


def _rare(group: SeedGroup, number: str) -> str:
    """As `_shown`, but empty if it is not known: a column without entries is left out."""
    return _shown(group, number) if getattr(group, number).known else ""


def _accuracy(group: SeedGroup) -> float | None:
    """The mean over seeds with an evaluation; None without any."""
    # A seed may diverge before its first evaluation. Unknown is not 0.
    known = [one.accuracy for one in group.trained if one.accuracy is not None]
    return math.fsum(known) / len(known) if known else None
