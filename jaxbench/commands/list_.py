# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench list`: the experiments and presets."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from jaxbench.verbs import Verb

VERB = Verb(usage="list", help="list the experiments and presets", group="about")


def main(arguments: list[str], workdir: Path, console: Console) -> int:
    from jaxbench import discovery

    for title, files in (("experiments", discovery.experiments()), ("presets", discovery.presets())):
        console.print(title, style="bold")
        width = max(map(len, files))
        for name, path in files.items():
            console.print(f"  {name:<{width}} {discovery.describe(path)}", highlight=False, soft_wrap=True)
    return 0
