# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench audit`: do the numbers of a printed table agree?"""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from jaxbench.errors import UserError
from jaxbench.verbs import Verb

VERB = Verb(
    usage="audit TABLE.csv",
    help="do the printed numbers of a table of training results agree?",
    group="compare",
    details="audit takes facts of the table's caption: seq_len=4096 device=H100, or tokens/s/gpu=@COLUMN for a column.",
    argument="...",
    flags=("workdir",),
    examples=(
        "audit results.csv",
        "audit results.csv seq_len=4096 device=H100",
        "audit results.csv model=gpt2-124m tokens/s/gpu=@speed",
    ),
)


def main(arguments: list[str], workdir: Path, console: Console) -> int:
    from jaxbench.features.audit import page

    if not arguments:
        raise UserError("jaxbench audit takes a table: a CSV file or a Markdown table, such as results.csv.")
    return 0 if page.audit(Path(arguments[0]), arguments[1:], workdir, console) else 1
