# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench doctor`: is this machine fit to measure on?"""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from jaxbench.verbs import Verb

VERB = Verb(
    usage="doctor",
    help="is this machine fit to measure on?",
    group="measure",
    examples=(
        "doctor",
        "doctor && jaxbench run cnn",
        "doctor || less doctor.json",
    ),
)


def main(arguments: list[str], workdir: Path, console: Console) -> int:
    from jaxbench.features.doctor import examine

    findings = examine.examine(console, folder=Path("."))
    examine.write(findings, Path(examine.FILE))
    return 0 if examine.ok(findings) else 1
