# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench help`: all verbs by what they are for, and the flags."""

from __future__ import annotations

import textwrap
from pathlib import Path

from rich.console import Console

from jaxbench.verbs import Verb, verbs

VERB = Verb(usage="help", help="this list", group="about", argument="...")

GROUPS = ("measure", "explain", "compare", "bring your own", "absent hardware", "clusters", "about")
COMMON = """\
Flags: --preset=auto|smoke|paper, --workdir=DIR (continues the run in it), --dry_run, --verbosity=1 (stack traces),
--version, --share_machine (measure although another measurement runs on this machine),
--dry_run --target=h100:8 (compile for absent hardware; also v5e:4x4, v5p:2x2x2, v6e:2x4, a100, h200, b200),
--coordinator=host:port --processes=2 --process=0 (started once per process; srun and mpirun need no flags),
--config.<field>=<value>, such as --config.mesh.devices=1,2,4 --config.strategy=all --config.scaling=strong,weak
--config.batch=64 --config.measure.rounds=10 --config.model.width=32. A run's config.json has every field."""
CODES = "Exit codes of compare, ab, bisect, check and repro: 0 same or faster, 1 slower, 2 inconclusive, 3 no answer."


def main(arguments: list[str], workdir: Path, console: Console) -> int:
    every = verbs()
    # Longer ones stand out instead of pushing all others to the right.
    width = max(len(verb.usage) for verb in every.values() if len(verb.usage) < 32)
    console.print("jaxbench VERB ...", highlight=False)
    for group in GROUPS:
        console.print(f"\n{group}", style="bold", highlight=False)
        # First the verb that most people came for.
        for verb in sorted(every.values(), key=lambda verb: verb.usage != "run EXPERIMENT"):
            if verb.group == group:
                console.print(f"  {verb.usage:<{width}}  {verb.help}", highlight=False, soft_wrap=True)
    console.print(f"\n{COMMON}", highlight=False, soft_wrap=True)
    for verb in every.values():
        if verb.details:
            console.print(f"\n{textwrap.fill(verb.details, 118)}", highlight=False, soft_wrap=True)
    console.print(f"\n{CODES}", highlight=False, soft_wrap=True)
    return 0
