# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench first-run`: everything once at a small size, on one page."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from jaxbench import jax_import
from jaxbench.verbs import FLAGS, Verb

VERB = Verb(
    usage="first-run",
    help="run everything once at a small size and write one page of results, within half an hour",
    group="measure",
    flags=("workdir", "dry_run", "share_machine"),
    examples=(
        "first-run",
        "first-run --dry_run",
        "first-run --workdir=results/first",
    ),
)


def main(arguments: list[str], workdir: Path, console: Console) -> int:
    jax_import.require("jaxbench first-run")
    from jaxbench.suites import first_run as suite

    if FLAGS.dry_run:
        suite.dry_run(console)
        return 0
    ok = suite.first_run(workdir, console)
    files = f"{workdir / 'first-run.html'}, {workdir / 'first-run.json'}"
    console.print(f"\nTo attach to an issue: {files}", soft_wrap=True)
    return 0 if ok else 1
