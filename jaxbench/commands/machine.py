# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench machine`: this machine's peaks, launch cost and links."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from jaxbench import jax_import
from jaxbench.verbs import FLAGS, Verb

VERB = Verb(
    usage="machine",
    help="measure this machine: peaks, launch cost and links; writes its profile, machine.json",
    group="measure",
    flags=("preset", "workdir", "share_machine"),
    examples=(
        "machine",
        "machine --preset=smoke",
        "machine --workdir=results/machine",
    ),
)


def main(arguments: list[str], workdir: Path, console: Console) -> int:
    jax_import.require("jaxbench machine")
    from jaxbench.features.machine_profile import machine_command

    outcome = machine_command.machine(workdir, preset=FLAGS.preset, console=console)
    console.print(f"\nPage and card: {workdir / 'machine.html'}, {workdir / 'machine.json'}", soft_wrap=True)
    return 0 if outcome.ok else 1
