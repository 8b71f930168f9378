# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A comparison in the terminal, readable at 100 columns."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from jaxbench.report.verdicts import notes, words
from jaxbench.verdicts.comparison import Comparison
from jaxbench.verdicts.judge import CANNOT_TELL, FASTER, SAME, SLOWER, Answer, Answers

STYLES = {FASTER: "green", SLOWER: "bold red", SAME: "", CANNOT_TELL: "yellow"}


def show(comparison: Comparison, console: Console) -> None:
    """Prints the verdict in a sentence, the table, what would help, and every note."""
    console.print()
    console.print(Text(words.headline(comparison), style=STYLES[comparison.verdict] or "bold"))
    console.print()
    console.print(_table(comparison.answers))
    console.print()
    for heading, sentences in [("What would help", words.help_lines(comparison)), *notes.sections(comparison)]:
        if sentences:
            console.print(Text(heading, style="bold"))
            console.print(*(Padding(Text(sentence), (0, 0, 0, 2)) for sentence in sentences), sep="")


def _table(answers: Answers) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("point", overflow="fold")
    for name in ("A", "B", notes.ratio_heading(answers)):
        table.add_column(Text(name), justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for answer in answers.points:
        table.add_row(*_cells(answer, answers))
    if len(answers.points) > 1:
        table.add_section()
        table.add_row(*_cells(answers.overall, answers), style="bold")
    return table


def _cells(answer: Answer, answers: Answers) -> list[Text]:
    """As texts: strings would be read as markup."""
    values = (words.value(number, answers.metric) for number in (answer.a, answer.b))
    cells = [words.named(answer.name), *values, words.ratio(answer.ratio)]
    return [*map(Text, cells), Text(answer.verdict, style=STYLES[answer.verdict])]
