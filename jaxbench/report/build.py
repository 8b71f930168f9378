# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The report of a run folder: summary.csv, the figures, report.html, and the table on the terminal.

The figures of a run: every `Plot` in `figures/` and in a feature's `figures.py` that has one of the run's views.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure
from rich.console import Console

from jaxbench import features
from jaxbench.analysis import launched
from jaxbench.core.store import RunFolder, write_atomic
from jaxbench.errors import UserError, did_you_mean
from jaxbench.report import compiled_report, page, run_report
from jaxbench.report.drawing import canvas
from jaxbench.report.drawing.canvas import Plot
from jaxbench.report.page import Picture
from jaxbench.report.run_report import RunReport

_FOLDER, _FIGURES = Path(__file__).with_name("figures"), "jaxbench.report.figures"
NOTHING = "The figure '{name}' is not drawn: too little was measured for any of its panels."
KINDS = ("cases", "levers", "compiled", "decode")  # what a plan measures; "" are steps over device counts


@functools.cache  # one report asks for it several times
def figures() -> dict[str, Plot]:
    """Every figure by name, in the order of a page."""
    modules = [importlib.import_module(f"{_FIGURES}.{file.stem}") for file in _FOLDER.glob("[!_]*.py")]
    modules += features.providing("figures")
    plots = [value for module in modules for value in vars(module).values() if isinstance(value, Plot)]
    return {plot.name: plot for plot in sorted(plots, key=lambda plot: (plot.order, plot.name))}


def views_of(kind: str) -> list[str]:
    """The views of one kind of run that have a figure."""
    every = (view for plot in figures().values() for view in plot.views)
    return sorted({view.removeprefix(f"{kind}/") for view in every if view.startswith(f"{kind}/")})


def figures_of(run: RunReport) -> dict[str, Plot]:
    """The figures for the run by name. Raises UserError for a view without a figure."""
    kind, view, section = run.kind, run.view, run.config.get("report")  # older configs have no such section
    asked_for = section.get("view", "") if isinstance(section, dict) else ""
    legal = sorted({*views_of("training"), *views_of(kind)})
    if asked_for and asked_for not in legal:
        raise UserError(f"the run's report.view={asked_for} is unknown: {did_you_mean(asked_for, legal)}")
    if kind == "cases" and view not in views_of(kind):
        raise UserError(f"the run's view '{view}' is unknown to this jaxbench: {did_you_mean(view, views_of(kind))}")
    asked = {kind, f"{kind}/{view}", f"{kind}/{asked_for}"}
    return {name: plot for name, plot in figures().items() if asked.intersection(plot.views)}


def pictures(run: RunReport) -> list[Picture]:
    """Draws the figures of a run into its folder, and returns those that were drawn."""
    shown, look = [], canvas.look_of(run.config)
    for name, plot in figures_of(run).items():
        made: list[Figure | None] = []

        def draw(plot: Plot = plot, made: list[Figure | None] = made) -> Figure | None:
            made.append(plot(run))
            return made[-1]

        files = canvas.render(draw, look)
        canvas.write(files, run.path / "figures", name)  # without files it removes those of an earlier report
        if files:
            narrow = b"" if plot.diagnostic else canvas.for_phone(draw, look)
            shown.append(dataclasses.replace(picture(name, files["svg"], run), narrow=narrow))
        elif made and made[-1] is not None and canvas.is_empty(made[-1]):  # it is for this run, and no panel has data
            shown.append(Picture(name=name, svg=b"", caption=NOTHING.format(name=name)))
    return shown


def picture(name: str, svg: bytes, run: RunReport) -> Picture:
    """A drawn figure with its caption."""
    plot = figures()[name]
    caption = f"{plot.caption} {plot.more(run) if plot.more else ''}".strip()
    return Picture(name=name, svg=svg, caption=caption, folded=plot.diagnostic)


@dataclass(frozen=True, kw_only=True)
class RunOutcome:
    """What a command needs for its exit code."""

    ok: bool  # every requested point was measured and passed every check
    sentences: list[str]  # why not


def write(
    run_path: str | os.PathLike[str], console: Console | None = None, *, look: Mapping[str, object] | None = None
) -> RunOutcome:
    """Rebuilds the report of a run folder from its records. With a `console`, it also prints the table.

    look: settings of the figures that replace those in the run's config (`report.*`).

    Raises:
      UserError: the folder does not exist, is not a run folder, is damaged, has another schema, or cannot be written.
    """
    path = Path(run_path)
    found = find(path)
    if look is not None:
        found.config["report"] = {**found.config.get("report", {}), **look}
    try:
        write_atomic(path / "summary.csv", found.csv())  # before the figures, which take the most time
        made = found.page(pictures(found))
        write_atomic(path / "report.html", page.render(made))
    except OSError as error:
        raise UserError(f"cannot write the report into '{path}' ({error.strerror}).") from error
    if console is not None:
        page.show(made, console)
    sentences = found.shortfalls()
    return RunOutcome(ok=not sentences, sentences=sentences)


def find(path: Path) -> RunReport:
    """Reads and analyses a run folder of any kind. Raises UserError if it is not one, or is damaged or unreadable."""
    if not path.is_dir():
        raise UserError(f"'{path}' is not a folder: give the results folder of a 'jaxbench run'.")
    if launched.is_launched(path):
        launched.gather(path)  # each time, because its jobs may have measured more since
    run = RunFolder(path)
    plan = run.manifest().get("plan")
    kind = str(plan.get("measures", "")) if isinstance(plan, dict) else ""
    if kind not in ("", *KINDS):
        raise UserError(f"'{path}' measures '{kind}': {did_you_mean(kind, KINDS)}")
    return compiled_report.find(run) if kind == "compiled" else run_report.find(run)
