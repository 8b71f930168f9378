# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench version`."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

from rich.console import Console

from jaxbench import __version__
from jaxbench.verbs import Verb

VERB = Verb(
    usage="version",
    help="the versions of jaxbench and jax",
    group="about",
    examples=(
        "version",
        "--version",
        "version && python --version",
    ),
)


def main(arguments: list[str], workdir: Path, console: Console) -> int:
    # From its metadata: importing jax takes a second, and fails if its installation is broken.
    try:
        jax = metadata.version("jax")
    except metadata.PackageNotFoundError:
        jax = "not installed"
    console.print(f"jaxbench {__version__}, jax {jax}", highlight=False)
    return 0
