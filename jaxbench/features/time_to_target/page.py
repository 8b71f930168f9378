# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The page, the figure and targets.csv of a time-to-target run over batch sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from jaxbench.core.store import RunFolder, write_atomic
from jaxbench.digits import digits
from jaxbench.features.time_to_target import analysis
from jaxbench.features.time_to_target.analysis import Curve, SeedGroup
from jaxbench.features.time_to_target.figures import draw_targets
from jaxbench.features.training import trainings
from jaxbench.features.training.trainings import Trained
from jaxbench.report import page
from jaxbench.report.drawing import canvas
from jaxbench.report.page import Page, Picture, Purpose, Section
from jaxbench.report.table import ALWAYS, TEXT, Column, fill, to_csv
from jaxbench.statistics.bootstrap import Estimate

PAGE, CSV, DEFINITION = "report.html", "targets.csv", "time-to-target"
# Other programs read these names; new ones are appended.
_FILE = tuple(
    Column(name, name) for name in (
        "model", "batch", "devices", "seed", "learning_rate", "rule", "steps", "reached", "accuracy", "noise_scale",
        "seconds", "step_s", "target", "diverged", "folder", "joules", "price_per_hour", "cost",
    )
)  # fmt: skip


def write(folder: Path, console: Console | None = None, *, look: Mapping[str, Any] | None = None) -> None:
    """Writes targets.csv, report.html and figures/targets. With a `console`, it also prints the page.

    Raises UserError if the folder has no trainings to a target.
    """
    trained = trainings.read_trained(folder)
    curves = analysis.curves(trained)
    config = RunFolder(folder).config()
    title = f"{config.get('experiment', folder.name)}: steps and time to a target"
    files = canvas.render(lambda: draw_targets(curves, title=title), canvas.title_of(config, look))
    made = _page(folder, title, trained, curves, files)
    write_atomic(folder / CSV, to_csv(_FILE, trained))
    canvas.write(files, folder / "figures", draw_targets.name)
    write_atomic(folder / PAGE, page.render(made))
    if console is not None:
        page.show(made, console)
        console.print(f"\nPage, figure and table: {folder / PAGE}", highlight=False, soft_wrap=True)


def _page(
    folder: Path, title: str, trained: Sequence[Trained], curves: Sequence[Curve], files: dict[str, bytes]
) -> Page:
    pictures = [Picture(name=draw_targets.name, svg=files["svg"], caption=draw_targets.caption)] if files else []
    places = [place for curve in curves for place in curve.places]
    sections = []
    # A mean with a censored seed is only a lower limit, and a reader must know that before comparing batches.
    if lost := [_not_reached(place) for place in places if place.censored]:
        sections.append(Section("Not reached", lost, Purpose.NOTE, DEFINITION))
    # The tries are in no mean: the best of several is too good. They are listed, so that the choice can be followed.
    if tried := [trainings.trained_sentence(one) for one in trained if one.rule == trainings.GRID]:
        sections.append(Section("The grid of the tuned learning rates", tried, Purpose.NOTE, DEFINITION))
    return Page(
        name=folder.name, heading=title,
        headlines=[sentence for curve in curves for sentence in (_knee(curve), *_seconds(curve))], pictures=pictures,
        table=fill(_COLUMNS, places, group=lambda place: (place.model, place.rule, place.devices)), sections=sections,
        definition=DEFINITION, made_from=f"{trainings.TARGETS} and config.json",
        links=[(CSV, "every training, as CSV")],
    )  # fmt: skip


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
