# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A comparison as Markdown, for the summary page of a job."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from jaxbench.report.verdicts import notes, words
from jaxbench.verdicts.comparison import Comparison
from jaxbench.verdicts.judge import SLOWER, Answer, Answers

_MARKS = re.compile(r"([\\`*_{}\[\]#~$!])")  # what Markdown reads, besides what HTML does


def markdown(comparison: Comparison, name: str) -> str:
    """The verdict, the table, and folded up how it was decided."""
    answers = comparison.answers
    lines = [f"## {escape(name)}: {comparison.verdict}", "", escape(words.headline(comparison)), ""]
    heads = ["point", "A", "B", escape(notes.ratio_heading(answers)), "verdict"]
    lines += [_row(heads), "|:--|--:|--:|--:|:--|", *(_answer(answer, answers) for answer in answers.points)]
    if len(answers.points) > 1:
        lines.append(_answer(answers.overall, answers))
    for heading, sentences in [("What would help", words.help_lines(comparison)), *notes.sections(comparison)]:
        if sentences:
            lines += ["", "<details>", f"<summary>{html.escape(heading)}</summary>", ""]
            lines += [*(f"- {escape(note)}" for note in sentences), "", "</details>"]
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    """The text itself, wherever in Markdown or in one of its tables it stands."""
    marked = _MARKS.sub(r"\\\1", words.clean(text))
    for letter, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "&#124;"), ("://", "&#58;//")):
        marked = marked.replace(letter, entity)
    return marked


def _answer(answer: Answer, answers: Answers) -> str:
    values = [words.value(number, answers.metric) for number in (answer.a, answer.b)]
    verdict = f"**{answer.verdict}**" if answer.verdict == SLOWER else answer.verdict
    return _row([*map(escape, [words.named(answer.name), *values, words.ratio(answer.ratio)]), verdict])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
