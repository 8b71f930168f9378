# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The page of a machine: the runs of `jaxbench machine`, and the machine profile made from them."""

from __future__ import annotations

import dataclasses
import os
import urllib.parse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from jaxbench.analysis import machine_card
from jaxbench.errors import UserError
from jaxbench.records.store import RunFolder, write_atomic
from jaxbench.report import card_table, case_findings, page, terminal, views
from jaxbench.report.build import RunOutcome
from jaxbench.report.case_findings import CaseFindings
from jaxbench.report.drawing import canvas
from jaxbench.report.drawing.roofline_points import of_cases
from jaxbench.report.figures import roofline
from jaxbench.report.page import Page, Picture, Purpose, Section

PAGE = "machine.html"
# The views with figures that characterise a machine, in the order of the page.
_KEY = ("stream", "matmul", "dispatch", "transfer", "collectives")
_SHOWN = {"collectives": ("busbw", "alpha_beta")}
Run = tuple[Path, CaseFindings]


def write(
    folder: str | os.PathLike[str], runs: Sequence[Path], card: dict[str, Any], console: Console | None = None
) -> RunOutcome:
    """Writes `machine.html` and its roofline into `folder`. With a `console`, it also prints the profile.

    The other figures are taken from the reports of the single runs.

    Args:
      runs: the run folders, in `folder` or next to it, each with its report.
      card: the machine profile, from `machine_card.build`.

    Raises:
      UserError: a run folder is damaged or is not one, or `folder` cannot be written.
    """
    folder = Path(folder)
    analysed = [(path, case_findings.find(RunFolder(path))) for path in runs]
    try:
        pictures = [*_roofline(folder, analysed, card), *_pictures(analysed)]
        made = _page(folder, analysed, card, pictures)
        write_atomic(folder / PAGE, page.render(made))
    except OSError as error:
        raise UserError(f"cannot write the page into '{folder}' ({error.strerror}).") from error
    sentences = _shortfalls(analysed) if analysed else ["No run was measured."]
    if console is not None:
        terminal.show(made, console)
    return RunOutcome(ok=not sentences, sentences=sentences)


def _page(folder: Path, runs: Sequence[Run], card: dict[str, Any], pictures: Sequence[Picture]) -> Page:
    results = _of_runs(runs, lambda findings: findings.headlines)  # only on the page: the terminal has the table
    normal = _of_runs(runs, lambda findings: [verdict.sentence for verdict in findings.normal])
    refused = _of_runs(runs, lambda findings: case_findings.refusals(findings.rows))
    sections = [
        Section(heading="Incomplete or failed", sentences=_shortfalls(runs), purpose=Purpose.SHORTFALL),
        Section(heading="Doubts about this profile", sentences=machine_card.doubts(card)),
        Section(heading="Results of the runs", sentences=results, purpose=Purpose.DETAIL),
        Section(heading="Refused by the gates", sentences=refused, definition="gates"),
        Section(heading="Not measured", sentences=_of_runs(runs, lambda findings: findings.left_out)),
        Section(heading="Is this normal?", sentences=normal, definition="is-this-normal"),
        Section(heading="Notes", sentences=_of_runs(runs, lambda findings: findings.repairs)),
    ]
    name = card_table.machine_name(card["machine"])
    return Page(
        name=name,
        heading=f"{name}: machine profile",
        headlines=card_table.headlines(card),
        pictures=pictures,
        table=card_table.table(card),
        brief=card_table.brief(card),
        definition="machinejson",
        sections=[section for section in sections if section.sentences],
        links=[(_address(folder, path), f"{findings.experiment}: every number and sample") for path, findings in runs],
        sources=[("Machine profile", card)],
        made_from="machine.json and the runs that it links to",
    )


def _address(folder: Path, run: Path) -> str:
    """The URL of a run's page, relative to the machine's page."""
    relative = os.path.relpath(run.resolve() / "report.html", folder.resolve())
    return urllib.parse.quote(Path(relative).as_posix())


def _of_runs(runs: Sequence[Run], say: Any) -> list[str]:
    """The sentences of all runs, each after its experiment's name."""
    return [f"{findings.experiment}: {sentence}" for _, findings in runs for sentence in say(findings)]


def _shortfalls(runs: Sequence[Run]) -> list[str]:
    nothing = ["The plan asks for no points."]
    return _of_runs(runs, lambda findings: findings.shortfalls() if findings.rows else nothing)


def _roofline(folder: Path, runs: Sequence[Run], card: dict[str, Any]) -> list[Picture]:
    """The roofline: every kernel of all runs under the profile's ceilings."""
    spots = of_cases([row for _, findings in runs for row in findings.rows])
    title = f"{card_table.machine_name(card['machine'])}: kernels under this machine's ceilings"
    files = canvas.render(lambda: roofline.under(spots, card=card, title=title, dtype="float32"))
    canvas.write(files, folder / "figures", "roofline")
    return [Picture(name="roofline", svg=files["svg"], caption=roofline.CAPTION)] if files else []


def _pictures(runs: Sequence[Run]) -> list[Picture]:
    """The figures in the runs' folders, which their own reports drew."""
    pictures = []
    for view in _KEY:
        for path, findings in runs:
            for figure in _SHOWN.get(view, (view,)) if findings.view == view else ():
                file = path / "figures" / f"{figure}.svg"
                if file.is_file():
                    picture = views.picture(figure, file.read_bytes(), findings)
                    pictures.append(dataclasses.replace(picture, name=f"{findings.experiment}-{figure}"))
    return pictures
