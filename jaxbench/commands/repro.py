# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench repro`: reruns a result card and compares."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from jaxbench import jax_import
from jaxbench.verbs import FLAGS, Verb

VERB = Verb(
    usage="repro --card=FILE",
    help="rerun a result card: is the result within 20 %?",
    group="compare",
    flags=("card", "margin", "workdir", "share_machine"),
    required=("card",),
    answers=True,
    examples=(
        "repro --card=cards/a.json",
        "repro --card=cards/a.json --margin=0.1",
        "repro --card=cards/a.json --workdir=results/again",
    ),
)


def check() -> None:
    """Raises UserError for a card that cannot be run here."""
    from jaxbench.features.cards import card, repro
    from jaxbench.features.comparison import judge

    judge.margin_of(FLAGS.margin)
    read = card.read(Path(FLAGS.card))
    repro.config_of(read, repro.source(read))


def main(arguments: list[str], workdir: Path, console: Console) -> int:
    jax_import.require("jaxbench repro")
    from jaxbench.features.cards import repro
    from jaxbench.features.cards.repro import MARGIN
    from jaxbench.features.comparison import judge

    # The flag's default is for runs of one machine. A card is usually from another.
    asked = judge.margin_of(FLAGS.margin) if FLAGS["margin"].present else MARGIN
    return repro.repro(Path(FLAGS.card), workdir, console, margin=asked)
