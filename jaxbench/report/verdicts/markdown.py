# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A comparison as Markdown, for the summary page of a CI job."""

from __future__ import annotations

import html
import re

from jaxbench.report.verdicts import notes, words
from jaxbench.verdicts.comparison import Comparison

_MARKS = re.compile(r"([\\`*_{}\[\]#~$!])")  # characters that are special in Markdown but not in HTML


def markdown(comparison: Comparison, name: str) -> str:
    """The verdict and the table, then collapsed sections on how it was decided."""
    lines = [f"## {escape(name)}: {comparison.verdict}", "", escape(words.headline(comparison)), ""]
    lines += words.table(comparison.answers).markdown(escape)
    if (factors := words.factors(comparison)) is not None:
        lines += ["", *factors.markdown(escape)]
    for heading, sentences in notes.sections(comparison):
        lines += ["", "<details>", f"<summary>{html.escape(heading)}</summary>", ""]
        lines += [*(f"- {escape(note)}" for note in sentences), "", "</details>"]
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    """Escapes a text for Markdown and its tables."""
    marked = _MARKS.sub(r"\\\1", words.clean(text))
    for letter, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "&#124;"), ("://", "&#58;//")):
        marked = marked.replace(letter, entity)
    return marked
