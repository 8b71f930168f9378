# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Everything a run folder's report is: summary.csv, the figures, report.html, and the table on the terminal."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from jaxbench.analysis import largest_batch, longest
from jaxbench.analysis.largest_batch import Search
from jaxbench.analysis.scaling import Row, dtype_of
from jaxbench.errors import UserError, did_you_mean
from jaxbench.records.store import RunFolder, write_atomic
from jaxbench.report import (
    case_findings,
    compiled_page,
    findings,
    lever_findings,
    page,
    siblings,
    terminal,
    views,
)
from jaxbench.report.case_findings import CaseFindings
from jaxbench.report.figures import canvas, profile, roofline, scaling, search
from jaxbench.report.figures.spots import of_training
from jaxbench.report.figures.spread_material import SpreadMaterial
from jaxbench.report.findings import Findings
from jaxbench.report.page import Picture


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Whether every asked point was measured and passed every check; if not, `sentences` say what is amiss."""

    ok: bool
    sentences: list[str]


def write(run_path: str | os.PathLike[str], console: Console | None = None) -> Outcome:
    """Rebuilds the report of a run folder from its records, and prints the table if there is a `console`.

    Raises:
      UserError: the folder does not exist, is no run folder, is damaged, has another schema, or cannot be written.
    """
    path = Path(run_path)
    if not path.is_dir():
        raise UserError(f"'{path}' is not a folder: give the results folder of a 'jaxbench run'.")
    run = RunFolder(path)
    report = _KINDS.get(_measures(run))
    if report is None:
        raise UserError(
            f"'{path}' measures '{_measures(run)}': {did_you_mean(_measures(run), [kind for kind in _KINDS if kind])}"
        )
    try:
        sentences = report(run, console)
    except OSError as error:
        raise UserError(f"cannot write the report into '{path}' ({error.strerror}).") from error
    return Outcome(ok=not sentences, sentences=sentences)


def _measures(run: RunFolder) -> str:
    """What kind of run it is: "" for training."""
    plan = run.manifest().get("plan")
    return str(plan.get("measures", "")) if isinstance(plan, dict) else ""


def _report(found: Findings, pictures: Sequence[Picture], console: Console | None) -> list[str]:
    """Writes the table, the page and what the terminal shows. Returns what is amiss."""
    write_atomic(found.path / "summary.csv", found.csv())
    made = found.page(pictures)
    write_atomic(found.path / "report.html", page.render(made))
    if console is not None:
        terminal.show(made, console)
    return found.shortfalls() if found.rows else ["The plan asks for no points."]


def _training(run: RunFolder, console: Console | None) -> list[str]:
    """The report on how training scales."""
    found = findings.find(run)
    section = found.config.get("report")
    overlay = section.get("overlay") or "" if isinstance(section, dict) else ""
    title = f"{found.experiment}: training throughput from device to device"
    files = scaling.write(found.rows, run.path / "figures", title=title, overlay=str(overlay))
    pictures = [*_spread(found.rows, run, found.experiment), Picture(name="scaling", svg=files["svg"])]
    pictures += _roofline(found, run)
    pictures += _profile(found.rows, run, found.experiment)
    pictures += _search(largest_batch.read(run.path), run, found.experiment)
    return _report(found, pictures, console)


def _roofline(findings: Findings, run: RunFolder) -> list[Picture]:
    """The run's training steps under this machine's ceilings, where the folder holds the machine's card."""
    if findings.card is None:
        return []
    spots = of_training(findings.rows)
    if not spots:
        return []
    dtype = dtype_of(findings.rows[0].point, findings.config) or "float32"
    title, card = f"{findings.experiment}: training steps under this machine's ceilings", findings.card
    files = canvas.render(lambda: roofline.draw(spots, card=card, title=title, dtype=dtype))
    canvas.write(files, run.path / "figures", "roofline")
    return [Picture(name="roofline", svg=files["svg"], caption=roofline.CAPTION)] if files else []


def _cases(run: RunFolder, console: Console | None) -> list[str]:
    """The report on what the machine can do."""
    found = case_findings.find(run)
    return _report(found, draw(found, run.path), console)


def draw(findings: CaseFindings, path: Path) -> list[Picture]:
    """Draws the figures of the run's view into its folder, and returns those that had something to show."""
    others = siblings.spots(path) if findings.card is not None else []  # without a card there is no roofline
    material = findings.material(others=others)
    pictures = []
    for drawing in views.drawings(findings.view):
        files = canvas.render(lambda drawing=drawing: drawing.draw(material))  # type: ignore[misc]
        canvas.write(files, path / "figures", drawing.name)
        if files:
            pictures.append(Picture(name=drawing.name, svg=files["svg"], caption=drawing.caption))
    return pictures


def _levers(run: RunFolder, console: Console | None) -> list[str]:
    """The report on what levers change."""
    found = lever_findings.find(run)
    material, pictures = found.material(), _spread(found.rows, run, found.experiment)
    for drawing in views.LEVER_VIEWS[found.view]:
        files = canvas.render(lambda drawing=drawing: drawing.draw(material))  # type: ignore[misc]
        canvas.write(files, run.path / "figures", drawing.name)
        if files:
            pictures.append(Picture(name=drawing.name, svg=files["svg"], caption=drawing.caption))
    pictures += _profile(found.rows, run, found.experiment)
    pictures += _search(found.search, run, found.experiment)
    return _report(found, pictures, console)


def _spread(rows: Sequence[Row], run: RunFolder, experiment: str) -> list[Picture]:
    """What the run says of how its model is spread over devices, if its config names such a view."""
    section = run.config().get("report")
    drawing = views.SPREAD_VIEWS.get(section.get("view", "") if isinstance(section, dict) else "")
    if drawing is None:
        return []
    found = longest.read(run.path)
    material = SpreadMaterial(experiment=experiment, rows=rows, longest=found)
    files = canvas.render(lambda: drawing.draw(material))
    canvas.write(files, run.path / "figures", drawing.name)
    return [Picture(name=drawing.name, svg=files["svg"], caption=drawing.caption)] if files else []


def _profile(rows: Sequence[Row], run: RunFolder, experiment: str) -> list[Picture]:
    """What traced steps are made of, where the run was asked for it."""
    files = canvas.render(lambda: profile.draw(rows, title=f"{experiment}: what a step's operations are"))
    canvas.write(files, run.path / "figures", "profile")
    return [Picture(name="profile", svg=files["svg"], caption=profile.CAPTION)] if files else []


def _search(found: Search | None, run: RunFolder, experiment: str) -> list[Picture]:
    """The search for the largest batch, where the run began with one."""
    if found is None:
        return []
    files = canvas.render(lambda: search.draw(found, experiment=experiment))
    canvas.write(files, run.path / "figures", "search")
    return [Picture(name="search", svg=files["svg"], caption=f"{search.CAPTION} {found.sentence}")] if files else []


_KINDS = {"": _training, "cases": _cases, "levers": _levers, "compiled": compiled_page.write}
