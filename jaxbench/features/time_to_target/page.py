# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The page, the figure and targets.csv of a time-to-target run over batch sizes.

The figure has steps and seconds over batch sizes and devices.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.typing import LineStyleType
from rich.console import Console

from jaxbench.core.store import RunFolder, write_atomic
from jaxbench.digits import digits
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
from jaxbench.report.table import ALWAYS, TEXT, Column, fill, to_csv
from jaxbench.statistics.bootstrap import Estimate

_BETWEEN: tuple[LineStyleType, ...] = ("-", (0, (6, 1.5, 1, 1.5)), ":", marks.DASHED)  # one per learning-rate rule
PAGE, CSV, DEFINITION = "report.html", "targets.csv", "time-to-target"
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
    handles = [marks.handle(place, f"{n} device{'s' if n > 1 else ''}") for place, n in enumerate(counts)]
    rules = [marks.style_handle(f"learning rate: {rule}", color=GREY, linestyle=s) for rule, s in styles.items()]
    seeds = [(len(place.trained),) for curve in curves for place in curve.places]
    what = "geometric mean over seeds"
    what += f"; {notes.BARS} of the mean; {notes.n_of(seeds)}" if max(seeds) > (1,) else "; n = 1 seed"
    said = [f"marks: {what}; time by the trainings' own clocks", "knee: the batch that needs twice the fewest steps"]
    if any(place.censored for curve in curves for place in curve.places):
        said.append("hollow with an arrow: a lower limit, as a seed did not reach the target")
    return sheet.finish(title, [*handles, *rules, marks.guide_handle("1/batch, or 1/devices")], said)


def _steps(axes: Axes, curves: Sequence[Curve], styles: Mapping[str, LineStyleType], counts: Sequence[int]) -> None:
    for curve in curves:
        for devices in curve.counts:
            place, between = counts.index(devices), styles[curve.rule]
            _targets_line(axes, curve.on(devices), lambda one: one.steps, place=place, between=between)
    # The guide starts at the smallest batch, where doubling the batch still halves the steps if it ever does.
    drawn = [place for place in curves[0].on(curves[0].counts[0]) if not place.censored]
    batches = np.array([place.batch for curve in curves for place in curve.places], float)
    if drawn:
        first = drawn[0]
        lowest = min(place.steps.value for place in curves[0].places)
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
        _targets_line(axes, of_count, lambda one: one.seconds, place=counts.index(devices), between=between)
    log_axis(axes, "y", show=seconds_tick, max_ticks=6)
    _batch_axis(axes, np.array([place.batch for place in curve.places], float))


def _targets_devices(
    axes: Axes, curves: Sequence[Curve], styles: Mapping[str, LineStyleType], counts: Sequence[int]
) -> None:
    for curve in curves:
        best = [place for count in curve.counts if (place := curve.fastest(count))]
        at, times = [place.devices for place in best], [place.seconds.value for place in best]
        # Grey, because the marks have the colours of their device counts.
        axes.plot(at, times, color=GREY, linestyle=styles[curve.rule], zorder=2)
        for place in best:
            _targets_line(
                axes, [place], lambda one: one.seconds, at=lambda one: one.devices, place=counts.index(place.devices)
            )
            marks.write(axes, place.devices, place.seconds.value, f"batch {place.batch}", above=True)
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
    between: LineStyleType = "-",
    at: Any = lambda one: one.batch,
) -> None:
    """Draws one series; groups that missed the target are hollow, with an arrow upward."""
    known = [one for one in places if value(one).known]
    made = [Mark(at=at(one), value=value(one), state="hollow" if one.censored else "solid") for one in known]
    marks.line(axes, [mark for mark in made if mark.state == "solid"], place=place, between=between)
    # Not joined: a line through a lower limit would be a curve that nobody measured.
    marks.line(axes, [mark for mark in made if mark.state == "hollow"], place=place, between="none")
    colour, _ = marks.series_style(place)
    for one in known:
        if one.censored:
            marks.write(axes, at(one), value(one).value, "\N{UPWARDS ARROW}", above=True, size=9, color=colour)


def _batch_axis(axes: Axes, batches: np.ndarray) -> None:
    log_axis(axes, "x", base=2, show=plain, max_ticks=6, span=batches.tolist())


def figure(folder: Path) -> Figure | None:
    """The figure of a folder of trainings."""
    return draw_targets(analysis.curves(trainings.read_trained(folder)), title=_title(folder))


def write(folder: Path, console: Console | None = None, *, look: Mapping[str, object] | None = None) -> None:
    """Writes targets.csv, report.html and figures/targets. With a `console`, it also prints the page.

    Raises UserError if the folder has no trainings to a target.
    """
    trained = trainings.read_trained(folder)
    curves = analysis.curves(trained)
    config = RunFolder(folder).config()
    title = _title(folder)
    files = canvas.render(lambda: draw_targets(curves, title=title), canvas.look_of(config, look))
    pictures = [Picture(name=draw_targets.name, svg=files["svg"], caption=draw_targets.caption)] if files else []
    made = page_of(folder, trained, pictures)
    write_atomic(folder / CSV, csv_of(trained))
    canvas.write(files, folder / "figures", draw_targets.name)
    write_atomic(folder / PAGE, page.render(made))
    if console is not None:
        page.show(made, console)
        console.print(f"\nPage, figure and table: {folder / PAGE}", highlight=False, soft_wrap=True)


def csv_of(trained: Sequence[Trained]) -> str:
    """targets.csv: every training."""
    return to_csv(_FILE, trained)


def _title(folder: Path) -> str:
    return f"{RunFolder(folder).config().get('experiment', folder.name)}: steps and time to a target"


def page_of(folder: Path, trained: Sequence[Trained], pictures: Sequence[Picture] = ()) -> Page:
    """The page of the trainings in `folder`."""
    curves = analysis.curves(trained)
    places = [place for curve in curves for place in curve.places]
    sections = []
    # A mean with a censored seed is only a lower limit, and a reader must know that before comparing batches.
    if lost := [_not_reached(place) for place in places if place.censored]:
        sections.append(Section("Not reached", lost, Purpose.NOTE, DEFINITION))
    # The tries are in no mean: the best of several is too good. They are listed, so that the choice can be followed.
    if tried := [trainings.trained_sentence(one) for one in trained if one.rule == trainings.GRID]:
        sections.append(Section("The grid of the tuned learning rates", tried, Purpose.NOTE, DEFINITION))
    return Page(
        name=folder.name,
        heading=_title(folder),
        headlines=[sentence for curve in curves for sentence in (_knee(curve), *_seconds(curve))],
        pictures=pictures,
        table=fill(_COLUMNS, places, group=lambda place: (place.model, place.rule, place.devices)),
        sections=sections,
        definition=DEFINITION,
        made_from=f"{trainings.TARGETS} and config.json",
        links=[(CSV, "every training, as CSV")],
    )


def _knee(curve: Curve) -> str:
    of, scale = f"{curve.model}, learning rate {curve.rule}", curve.noise_scale
    noise = f" The measured gradient noise scale is {_text(scale)} examples" if scale.known else ""
    if curve.knee.known:
        ratio = f"; knee over noise scale is {_text(curve.ratio)}." if curve.ratio.known else ("." if noise else "")
        return (
            f"{of}: steps to the target fall as 1/batch up to a knee of about {_text(curve.knee)} examples. At the "
            f"knee, the training needs twice the least number of steps, {_text(curve.least)}.{noise}{ratio}"
        )
    most = max(place.batch for place in curve.places)
    # Without a knee the reader still learns on which side of the batches it is, if that is known.
    knee = "too few batches reached the target for a knee"
    if curve.straight:
        knee = f"steps fall as 1/batch over all batches that reached the target, at most {most}: the knee is above them"
    elif curve.flat:
        knee = "steps do not fall with the batch: the knee is below the smallest"
    elif len({place.batch for place in curve.places if not place.censored}) >= analysis.LEAST_BATCHES:
        knee = "the seeds do not agree on a knee"
    return f"{of}: {knee}.{noise}{'.' if noise else ''}"


def _seconds(curve: Curve) -> list[str]:
    each = []
    for devices in curve.counts:
        if best := curve.fastest(devices):
            each.append(f"{_text(best.seconds)} s on {devices} device{'s' if devices > 1 else ''} (batch {best.batch})")
    return [f"{curve.model}, {curve.rule}: the fastest batch reaches the target in {', '.join(each)}."] if each else []


def _not_reached(place: SeedGroup) -> str:
    blown = sum(one.diverged is not None for one in place.trained)
    how = f", {blown} of them diverged" if blown else ""
    steps = max(one.steps for one in place.trained if not one.reached)  # those of the budget, also if it diverged
    return (
        f"{place.model}, {place.rule}, batch {place.batch}, {place.devices} "
        f"device{'s' if place.devices > 1 else ''}: {place.censored} of "
        f"{len(place.trained)} seeds did not reach it in {steps} steps{how}: this number counts as a lower limit."
    )


def _text(value: Estimate) -> str:
    """A value with its interval: "120 [80, 170]"."""
    if not value.known:
        return "unknown"
    ends = f" [{digits(value.lo)}, {digits(value.hi)}]" if value.has_interval else ""
    return f"{digits(value.value)}{ends}"


def _of(get: str, *, rare: bool = False) -> Column:
    """A column of a number; a lower limit if a seed is censored. rare: leave the column out if no group has it."""
    limited = get in ("steps", "seconds", "joules", "cost")  # what a longer training would have more of

    def text(place: SeedGroup) -> str:
        value: Estimate = getattr(place, get)
        if rare and not value.known:
            return ""
        return f"at least {_text(value)}" if limited and place.censored and value.known else _text(value)

    return Column(get.replace("_", " "), text, kind=TEXT, terminal=ALWAYS, definition=DEFINITION)


def _accuracy(place: SeedGroup) -> float | None:
    # A seed may diverge before its first evaluation. Unknown is not 0.
    known = [one.accuracy for one in place.trained if one.accuracy is not None]
    return math.fsum(known) / len(known) if known else None


_COLUMNS = (
    Column("model", "model", kind=TEXT, terminal=ALWAYS),
    Column("rule", "rule", kind=TEXT, terminal=ALWAYS),
    Column("devices", "devices", terminal=ALWAYS),
    Column("batch", "batch", terminal=ALWAYS),
    Column("learning rate", lambda place: place.trained[0].learning_rate, lambda rate: f"{rate:g}"),
    Column("seeds", lambda place: len(place.trained)),
    Column("reached", lambda place: len(place.trained) - place.censored, terminal=ALWAYS),
    _of("steps"),
    Column("accuracy", _accuracy, lambda share: f"{share:.4f}", definition=DEFINITION),
    _of("noise_scale"),
    _of("seconds"),
    _of("joules", rare=True),
    _of("cost", rare=True),
)
