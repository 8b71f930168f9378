# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The summary of a result as Markdown that a CI page, an issue and a comment all take."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Sequence

from jaxbench.features.comparison.page import escape
from jaxbench.report.table import Table

LIMIT = 65_536  # characters of an issue or a comment on GitHub; the summary of a job may have more
MOST_LINES = 40  # of the table
CUT = "\n\nThe rest does not fit into an issue: the page in the run folder has it.\n"
OPEN = ("Incomplete or failed", "Refused by the gates", "Load")  # what may make the numbers wrong is not collapsed


def document(
    title: str, headlines: Sequence[str], table: Table | None, sections: Sequence[tuple[str, Sequence[str]]]
) -> str:
    """A heading, the headlines, the table, then collapsed sections, with at most LIMIT characters."""
    lines = [f"## {escape(title)}", ""]
    lines += [f"{escape(headline)}\n" for headline in headlines]
    for heading, sentences in sections:
        if heading in OPEN:
            lines += [f"**{escape(heading)}**", "", *(f"- {escape(sentence)}" for sentence in sentences), ""]
    if table is not None:
        lines += [*dataclasses.replace(table, lines=table.lines[:MOST_LINES]).markdown(escape), ""]
        more = len(table.lines) - MOST_LINES
        lines += [f"{escape(table.note)}{f' {more} more lines are on the page.' if more > 0 else ''}", ""]
    for heading, sentences in sections:
        if heading not in OPEN:
            lines += ["<details>", f"<summary>{html.escape(heading)}</summary>", ""]
            lines += [*(f"- {escape(sentence)}" for sentence in sentences), "", "</details>", ""]
    return limited("\n".join(lines))


def limited(text: str) -> str:
    """The text, cut before a line so that it fits into an issue."""
    if len(text) <= LIMIT:
        return text
    # A collapsed section that is not closed would hide what follows the summary.
    kept = text[: LIMIT - len(CUT) - len("\n\n</details>")].rpartition("\n")[0]
    open_sections = kept.count("<details>") - kept.count("</details>")
    return kept + "\n\n</details>" * open_sections + CUT
