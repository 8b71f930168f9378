# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The answers of a comparison as one table, for the terminal and for Markdown."""

from __future__ import annotations

from jaxbench.report.table import ALWAYS, TEXT, Column, Table, fill
from jaxbench.report.verdicts import notes, words
from jaxbench.verdicts.judge import CANNOT_TELL, FASTER, SLOWER, Answer, Answers

_STYLES = {FASTER: "ok", SLOWER: "no", CANNOT_TELL: "unchecked"}


def table(answers: Answers) -> Table:
    """One line for each point and, for several points, an overall line."""

    def value(number: float) -> str:
        return words.value(number, answers.metric)

    columns = (
        Column("point", lambda answer: words.named(answer.name), kind=TEXT, terminal=ALWAYS),
        Column("A", "a", value, terminal=ALWAYS),
        Column("B", "b", value, terminal=ALWAYS),
        Column(notes.ratio_heading(answers), "ratio", words.ratio, terminal=ALWAYS),
        Column("verdict", "verdict", kind=TEXT, style=lambda word: _STYLES.get(word, ""), terminal=ALWAYS),
    )
    overall: list[Answer] = [answers.overall] if len(answers.points) > 1 else []
    return fill(columns, [*answers.points, *overall], group=lambda answer: answer is answers.overall)
