# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The figures of a run: every `Plot` in `figures/` and in a feature's `figures.py` that has one of the run's views."""

from __future__ import annotations

import functools
import importlib
from pathlib import Path

from jaxbench import features
from jaxbench.errors import UserError, did_you_mean
from jaxbench.report.drawing import canvas
from jaxbench.report.drawing.canvas import Plot
from jaxbench.report.page import Picture
from jaxbench.report.run_report import RunReport

_FOLDER, _FIGURES = Path(__file__).with_name("figures"), "jaxbench.report.figures"


@functools.cache  # one report asks for it several times
def figures() -> dict[str, Plot]:
    """Every figure by name, in the order of a page."""
    modules = [importlib.import_module(f"{_FIGURES}.{file.stem}") for file in _FOLDER.glob("[!_]*.py")]
    modules += features.providing("figures")
    plots = [value for module in modules for value in vars(module).values() if isinstance(value, Plot)]
    return {plot.name: plot for plot in sorted(plots, key=lambda plot: (plot.order, plot.name))}


def views(kind: str) -> list[str]:
    """The views of one kind of run that have a figure."""
    every = (view for plot in figures().values() for view in plot.views)
    return sorted({view.removeprefix(f"{kind}/") for view in every if view.startswith(f"{kind}/")})


def of(run: RunReport) -> dict[str, Plot]:
    """The figures for the run by name. Raises UserError for a view without a figure."""
    kind, view, section = run.kind, run.view, run.config.get("report")  # older configs have no such section
    asked_for = section.get("view", "") if isinstance(section, dict) else ""
    legal = sorted({*views("training"), *views(kind)})
    if asked_for and asked_for not in legal:
        raise UserError(f"the run's report.view={asked_for} is unknown: {did_you_mean(asked_for, legal)}")
    if kind == "cases" and view not in views(kind):
        raise UserError(f"the run's view '{view}' is unknown to this jaxbench: {did_you_mean(view, views(kind))}")
    asked = {kind, f"{kind}/{view}", f"{kind}/{asked_for}"}
    return {name: plot for name, plot in figures().items() if asked.intersection(plot.views)}


def pictures(run: RunReport) -> list[Picture]:
    """Draws the figures of a run into its folder, and returns those that were drawn."""
    shown, named = [], canvas.title_of(run.config)
    for name, plot in of(run).items():
        files = canvas.render(lambda plot=plot: plot(run), named)  # type: ignore[misc]
        canvas.write(files, run.path / "figures", name)  # without files it removes those of an earlier report
        if files:
            shown.append(picture(name, files["svg"], run))
    return shown


def picture(name: str, svg: bytes, run: RunReport) -> Picture:
    """A drawn figure with its caption."""
    plot = figures()[name]
    return Picture(name=name, svg=svg, caption=f"{plot.caption} {plot.more(run) if plot.more else ''}".strip())
