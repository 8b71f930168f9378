# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The report of a run folder: summary.csv, the figures, report.html, and the table on the terminal."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from jaxbench.core.store import RunFolder, write_atomic
from jaxbench.errors import UserError, did_you_mean
from jaxbench.records import launched
from jaxbench.report import compiled_report, page, run_report, views
from jaxbench.report.run_report import RunReport

KINDS = ("cases", "levers", "compiled")  # what a plan measures; "" are steps over device counts


@dataclass(frozen=True, kw_only=True)
class RunOutcome:
    """What a command needs for its exit code."""

    ok: bool  # every requested point was measured and passed every check
    sentences: list[str]  # why not


def write(
    run_path: str | os.PathLike[str], console: Console | None = None, *, look: Mapping[str, Any] | None = None
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
        made = found.page(views.pictures(found))
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
