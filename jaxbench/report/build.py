# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The report of a run folder: summary.csv, the figures, report.html, and the table on the terminal."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from jaxbench.errors import UserError, did_you_mean
from jaxbench.records.store import RunFolder, write_atomic
from jaxbench.report import (
    case_findings,
    compiled_page,
    findings,
    lever_findings,
    page,
    terminal,
    views,
)
from jaxbench.report.findings import Findings


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Whether every requested point was measured and passed every check; if not, `sentences` say why."""

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


def _report(found: Findings, console: Console | None) -> list[str]:
    """Writes summary.csv, the figures and the page, and prints it. Returns what is amiss."""
    write_atomic(found.path / "summary.csv", found.csv())
    made = found.page(views.pictures(found))
    write_atomic(found.path / "report.html", page.render(made))
    if console is not None:
        terminal.show(made, console)
    return found.shortfalls() if found.rows else ["The plan asks for no points."]


def _training(run: RunFolder, console: Console | None) -> list[str]:
    """The report on how training scales."""
    return _report(findings.find(run), console)


def _cases(run: RunFolder, console: Console | None) -> list[str]:
    """The report on what the machine can do."""
    return _report(case_findings.find(run), console)


def _levers(run: RunFolder, console: Console | None) -> list[str]:
    """The report on what levers change."""
    return _report(lever_findings.find(run), console)


_KINDS = {"": _training, "cases": _cases, "levers": _levers, "compiled": compiled_page.write}
