# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The figures of a run. A figure is a file in `figures/`, and its file name is its only registration.

It defines ``CAPTION`` (and optionally ``caption(run)``), ``VIEWS`` and ``draw(run) -> Figure | None``. `VIEWS` names
the runs that it is for: a kind ("training", "levers", "cases", "compiled"), or a kind with the view of the experiment
or of the swept lever ("cases/stream", "levers/remat"). `draw` gets the run's findings and returns None if there is
nothing to draw. The optional ``ORDER`` (default 0) sets its place on the page.
"""

from __future__ import annotations

import functools
import importlib
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import ModuleType

from jaxbench.errors import UserError, did_you_mean
from jaxbench.report.drawing import canvas
from jaxbench.report.findings import Findings
from jaxbench.report.page import Picture

_FOLDER = Path(__file__).with_name("figures")


@functools.cache
def figures() -> dict[str, ModuleType]:
    """Every figure by name, in the order of a page."""
    names = sorted(file.stem for file in _FOLDER.glob("*.py") if file.stem != "__init__")
    modules = {name: importlib.import_module(f"jaxbench.report.figures.{name}") for name in names}
    return dict(sorted(modules.items(), key=lambda entry: (getattr(entry[1], "ORDER", 0), entry[0])))


def views(kind: str) -> list[str]:
    """The views of one kind of run that have a figure."""
    every = (view for module in figures().values() for view in module.VIEWS)
    return sorted({view.removeprefix(f"{kind}/") for view in every if view.startswith(f"{kind}/")})


def of(run: Findings) -> dict[str, ModuleType]:
    """The figures for the run by name. Raises UserError for a view without a figure."""
    kind = str(run.manifest["plan"].get("measures") or "training")
    view, section = getattr(run, "view", ""), run.config.get("report")
    asked_for = section.get("view", "") if isinstance(section, dict) else ""
    legal = sorted({*views("training"), *views(kind)})
    if asked_for and asked_for not in legal:
        raise UserError(f"the run's report.view={asked_for} is unknown: {did_you_mean(asked_for, legal)}")
    if kind == "cases" and view not in views(kind):
        raise UserError(f"the run's view '{view}' is unknown to this jaxbench: {did_you_mean(view, views(kind))}")
    asked = {kind, f"{kind}/{view}", f"{kind}/{asked_for}"}
    return {name: module for name, module in figures().items() if asked.intersection(module.VIEWS)}


def pictures(run: Findings) -> list[Picture]:
    """Draws the figures of a run into its folder, and returns those that were drawn."""
    shown, modules = [], of(run)
    for name, files in zip(modules, _drawn(run, list(modules.values())), strict=True):
        canvas.write(files, run.path / "figures", name)
        if files:
            shown.append(picture(name, files["svg"], run))
    return shown


def _drawn(run: Findings, modules: Sequence[ModuleType]) -> list[dict[str, bytes]]:
    """The files of each figure, by suffix. Figures are drawn on all cores: a reader waits for them after each run.

    Only Linux forks a process that has loaded fonts safely.
    """
    look = canvas.look_of(run.config)

    def draw(number: int) -> dict[str, bytes]:
        return canvas.render(lambda: modules[number].draw(run), look)

    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1
    if min(cores, len(modules)) < 2 or threading.active_count() > 1:  # a lock that another thread holds stays locked
        return [draw(number) for number in range(len(modules))]
    global _draw  # inherited by the forked processes: neither a run nor a figure can be pickled
    _draw = draw
    with ProcessPoolExecutor(min(cores, len(modules)), mp_context=multiprocessing.get_context("fork")) as pool:
        return list(pool.map(_draw_one, range(len(modules))))


_draw: Callable[[int], dict[str, bytes]]


def _draw_one(number: int) -> dict[str, bytes]:
    return _draw(number)


def picture(name: str, svg: bytes, run: Findings) -> Picture:
    """A drawn figure with its caption."""
    module = figures()[name]
    return Picture(name=name, svg=svg, caption=module.caption(run) if hasattr(module, "caption") else module.CAPTION)
