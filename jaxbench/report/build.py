# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Everything a run folder's report is: summary.csv, the figures, report.html, and the table on the terminal."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from jaxbench.analysis import summary
from jaxbench.errors import UserError
from jaxbench.records.store import RunFolder, write_atomic
from jaxbench.report import figures, page, tables
from jaxbench.report.findings import find


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
    findings = find(RunFolder(path))
    section = findings.config.get("report")
    overlay = section.get("overlay") or "" if isinstance(section, dict) else ""
    title = f"{findings.experiment}: training throughput from device to device"
    try:
        write_atomic(path / "summary.csv", summary.to_csv(summary.table(findings.rows)))
        files = figures.write(findings.rows, path / "figures", title=title, overlay=str(overlay))
        write_atomic(path / "report.html", page.render(findings, files["svg"]))
    except OSError as error:
        raise UserError(f"cannot write the report into '{path}' ({error.strerror}).") from error
    if console is not None:
        tables.show(findings, console)
    sentences = findings.shortfalls() if findings.rows else ["The plan asks for no points."]
    return Outcome(ok=not sentences, sentences=sentences)
