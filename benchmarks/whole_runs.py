# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Whole runs of `jaxbench run` in sequence, resumable, for `precision` and `repeatability`.

A JSON file next to the run folders keeps each run that has ended, so that the same command continues after an
interruption. An interrupted run starts again, because otherwise its wall time would not be that of one run.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from jaxbench.core.store import write_json


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run that has ended. seconds: wall time from the command to its end. efficiencies: [value, lo, hi] by
    point."""

    name: str
    seconds: float
    efficiencies: dict[str, list[float]]

    def half_width(self, point: str) -> float:
        _, lo, hi = self.efficiencies[point]
        return (hi - lo) / 2


class Runs:
    """The runs of a benchmark. document: the content of its JSON file, including "runs"."""

    def __init__(self, folder: Path, about: dict[str, Any], console: Console):
        """Raises SystemExit: the folder has runs of other settings."""
        self.folder, self.path, self.console = folder, folder / "runs.json", console
        folder.mkdir(parents=True, exist_ok=True)
        self.document: dict[str, Any] = {**about, "runs": []}
        if self.path.exists():
            self.document = json.loads(self.path.read_text())
            other = [name for name, value in about.items() if self.document.get(name) != value]
            if other:
                there, here = self.document.get(other[0]), about[other[0]]
                raise SystemExit(
                    f"'{folder}' has runs with {other[0]} {there!r}, not {here!r}: choose another --workdir."
                )

    @property
    def done(self) -> dict[str, Run]:
        return {run["name"]: Run(**run) for run in self.document["runs"]}

    def measure(self, name: str, words: list[str], environment: Mapping[str, str] | None = None) -> Run:
        """The run of this name; it starts unless it has ended before. words: after `jaxbench run`."""
        if name in self.done:
            return self.done[name]
        place = self.folder / name
        shutil.rmtree(place, ignore_errors=True)
        log = self.folder / f"{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        # -P: the current folder may have another copy of the package than the environment
        command = [sys.executable, "-P", "-m", "jaxbench", "run", *words, f"--workdir={place}"]
        began = time.monotonic()
        with log.open("w") as output:
            done = subprocess.run(
                command, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **(environment or {})}, check=False
            )
        run = Run(name=name, seconds=time.monotonic() - began, efficiencies=efficiencies(place / "summary.csv"))
        if not run.efficiencies:
            raise SystemExit(f"{name} has no efficiency (exit code {done.returncode}): see '{log}'.")
        self.document["runs"].append(asdict(run))
        write_json(self.path, self.document)
        found = ", ".join(f"{point} {_shown(values)}" for point, values in run.efficiencies.items())
        self.console.print(f"{name}: {run.seconds:.0f} s; {found}", highlight=False, soft_wrap=True)
        return run

    def write(self, name: str, value: Any) -> None:
        """Writes a result next to the runs."""
        self.document[name] = value
        write_json(self.path, self.document)


def efficiencies(summary: Path) -> dict[str, list[float]]:
    """Efficiencies of all points except bases and points that share cores; {} without a table."""
    if not summary.exists():
        return {}
    found = {}
    for row in csv.DictReader(summary.read_text().splitlines()):
        claims = row["oversubscribed"] == "false" and row["base_devices"] not in ("", row["devices"])
        if claims and row["efficiency_lo"]:
            name = "/".join(row[field] for field in ("strategy", "scaling", "devices"))
            found[name] = [float(row[f"efficiency{end}"]) for end in ("", "_lo", "_hi")]
    return found


def _shown(values: list[float]) -> str:
    value, lo, hi = (100 * each for each in values)
    return f"{value:.0f} % [{lo:.0f}, {hi:.0f}]"
