# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench cards`: all result cards as one table and one figure."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from jaxbench.verbs import Verb

VERB = Verb(
    usage="cards [FIELD=VALUE ...]",
    help="show all result cards as one table",
    group="compare",
    argument="...",
    examples=(
        "cards",
        "cards experiment=cnn",
        "cards experiment=cnn,gpt scaling=strong devices=2",
    ),
)


def main(arguments: list[str], workdir: Path, console: Console) -> int:
    from jaxbench.features.cards import gallery

    return gallery.cards(gallery.FOLDER, arguments, console)
