# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench paper`: does what a paper claims hold on this machine?"""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from jaxbench import jax_import
from jaxbench.verbs import FLAGS, Verb

VERB = Verb(
    usage="paper ID",
    help="does what this paper claims hold here? (paper list: all of them; --preset=paper: its own size)",
    group="explain",
    argument="paper, or list",
    example="jaxbench paper rajbhandari2020",
    flags=("preset", "workdir", "dry_run", "share_machine"),
    examples=(
        "paper goyal2017",
        "paper list",
        "paper rajbhandari2020 --preset=paper",
    ),
)


def check(id: str) -> None:
    """Raises UserError for an unknown paper or size."""
    from jaxbench.suites.papers import session

    session.wanted(id, FLAGS.preset)


def main(arguments: list[str], workdir: Path, console: Console) -> int:
    from jaxbench.suites.papers import session

    (id,) = arguments
    if id == "list":
        session.show_list(console)
        return 0
    if FLAGS.dry_run:
        session.dry_run(id, FLAGS.preset, console)
        return 0
    jax_import.require("jaxbench paper")
    return 0 if session.paper(id, FLAGS.preset, workdir, console) else 1
