# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench card`: a run as one document, its result card."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from jaxbench.verbs import FLAGS, Verb

VERB = Verb(
    usage="card --run=DIR",
    help="write a run as one document, its result card",
    group="compare",
    flags=("run",),
    required=("run",),
    examples=(
        "card --run=results/a",
        "card --run=results/a && jaxbench cards",
        "card --run=results/a && git add cards",
    ),
)


def main(arguments: list[str], workdir: Path, console: Console) -> int:
    from jaxbench.features.cards import card, gallery

    return card.save(Path(FLAGS.run), gallery.FOLDER, console)
