# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The formats of --export, by name: what each writes into the run folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from jaxbench.core.store import write_atomic
from jaxbench.errors import UserError, did_you_mean
from jaxbench.features.exports import markdown, mlperf, texts
from jaxbench.features.exports.source import Source

SUMMARY = "summary"
STEP_SUMMARY = "GITHUB_STEP_SUMMARY"  # GitHub Actions: the file of the job's page
FORMATS = {  # the path of each in the run folder
    SUMMARY: "summary.md",
    "bmf": "bmf.json",
    "pytest-benchmark": "pytest-benchmark.json",
    "openmetrics": "jaxbench.prom",  # node exporter reads files that end in .prom
    "mlperf": "mlperf",  # a folder
}


def files(name: str, source: Source) -> dict[str, str]:
    """The texts of a format by the name of their file in its folder; "" for a format that is a single file."""
    if name == "mlperf":
        return mlperf.logs(source)
    text: dict[str, Callable[[Source], str]] = {
        SUMMARY: lambda source: markdown.limited(source.summary()),
        "bmf": texts.bmf,
        "pytest-benchmark": texts.pytest_benchmark,
        "openmetrics": texts.openmetrics,
    }
    return {"": text[name](source)}


def asked(text: str | None, *, measures: str) -> tuple[str, ...]:
    """The names in --export, before anything is measured. measures: of the config: "targets", "cases", ...

    Raises UserError for a format that has nothing to export of what is measured.
    """
    names = parse(text) if text is not None else ()
    if "mlperf" in names and measures != "targets":
        raise UserError("--export=mlperf logs trainings to a target, as jaxbench run time_to_target does: use bmf.")
    if "pytest-benchmark" in names and measures == "targets":
        raise UserError("--export=pytest-benchmark needs timed steps, and trainings to a target have none: use bmf.")
    return names


def parse(text: str) -> tuple[str, ...]:
    """The names in --export=a,b without duplicates. Raises UserError for an unknown or an empty one."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in FORMATS:
            raise UserError(f"--export={text} names the unknown format '{name}': {did_you_mean(name, FORMATS)}")
    return names


def write(source: Source, names: Sequence[str]) -> list[Path]:
    """Writes the formats into the source's folder. Returns the path of each.

    The summary is also appended to the file that GITHUB_STEP_SUMMARY names, if it is set. Raises UserError if the
    source has not what a format needs, and then writes nothing.
    """
    made = {name: files(name, source) for name in names}  # all, before the first is written
    paths = []
    for name, written in made.items():
        path = source.folder / FORMATS[name]
        (path if "" not in written else path.parent).mkdir(parents=True, exist_ok=True)
        for file, text in written.items():
            write_atomic(path / file if file else path, text)
        paths.append(path)
    if SUMMARY in made and (page := os.environ.get(STEP_SUMMARY)):
        with open(page, "a", encoding="utf-8") as opened:
            opened.write(f"{made[SUMMARY]['']}\n")
    return paths


def export(source: Source, names: Sequence[str], console: Console) -> None:
    """`write`, and says where. Raises UserError."""
    if names:
        paths = ", ".join(str(path) for path in write(source, names))
        console.print(f"Exported: {paths}", highlight=False, soft_wrap=True)
