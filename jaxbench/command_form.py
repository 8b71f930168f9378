# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The verbs by name. Messages name commands as `jaxbench VERB`; an error adds how to type them under make."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path

FORM = "JAXBENCH_FORM"  # "make" in the processes that the Makefile starts


@functools.cache
def verbs() -> dict[str, str]:
    """The module of each verb by its name. A verb is a file in `commands`."""
    files = sorted(file.stem for file in (Path(__file__).parent / "commands").glob("[!_]*.py"))
    return {stem.rstrip("_").replace("_", "-"): f"jaxbench.commands.{stem}" for stem in files}


def by_make() -> bool:
    return os.environ.get(FORM) == "make"


def for_make(text: str) -> str:
    """How to type under make what a message names, in brackets; "" without make, or if it names nothing."""
    if not by_make() or not ("--" in text or "jaxbench " in text):
        return ""
    command = os.path.relpath(Path(sys.executable).parent / "jaxbench")
    return f" (In a shell jaxbench is {command}; make takes a flag as ARGS=--flag=value.)"


def with_extra(name: str) -> str:
    """How to install an extra. The package is in no index, so it comes from a clone or from a wheel file."""
    if by_make():
        return f"add EXTRAS={name}"
    return f"pip install '.[{name}]' in a clone, or 'FILE.whl[{name}]' for a wheel"
