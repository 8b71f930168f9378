# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Foreign text, from a file, a model's name or an exception, made harmless for what shows it.

A control character could move a terminal's cursor and hide a verdict, a bidirectional override reverses what is read,
and a spreadsheet executes a cell that begins with "=".
"""

from __future__ import annotations

import re

# C0 but tab and line break, DEL, C1, line and paragraph separators, bidirectional overrides, halves of characters
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_FORMULA = re.compile("'*[=+@\\-\t\r]")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


def visible(text: str) -> str:
    r"""The text with control characters as they are written in Python: "\x1b[31m"."""
    if text.isprintable():
        return text
    return _HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def as_cell(text: str) -> str:
    """The text for a cell of a CSV file: with an apostrophe before it if a spreadsheet would take it for a formula."""
    text = visible(text)
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def from_cell(cell: str) -> str:
    """The text that `as_cell` wrote."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
