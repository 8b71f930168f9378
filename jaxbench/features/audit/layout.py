# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Finds the table in a text file: its format, its header under any comment, its cells, and its decimal sign."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from jaxbench.errors import UserError
from jaxbench.records import reading

SIGNS = ",;\t"
_COMMENT = ("#", "//")
_RULE = re.compile(r"\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*")  # of Markdown, below the header
# "1 297" with the spaces that spreadsheets and typesetters write, and "1'297" of Switzerland
_SPACED = re.compile("(?<=\\d)['\u2019\u00a0\u2009\u202f](?=\\d{3}(?!\\d))")
_GROUPS = r"[1-9]\d{0,2}(?:%s\d{3})+"
_NUMBER = re.compile(r"[~≈]?\s*(?P<digits>[-+]?\d[\d.,]*|[.,]\d+)(?P<rest>(?![\d.,]).*)")
_UNIT = re.compile(r"(?:[eE][-+]?\d+)?\s*[a-zA-Z%/]*(?:\s*(?:±|\+/-|\+-)\s*[\d.,]+)?\s*[a-zA-Z%/]*\s*(?:\(.*\))?")
Table = list[list[str]]


def table(path: Path, understood: Callable[[str], bool]) -> Table:
    """The header and the rows, with a point as the decimal sign. understood: whether a text names a known column.

    Raises UserError: no table, or no telling what its decimal sign is.
    """
    lines = [line for line in _text(path).splitlines() if line.strip()]
    cells = _markdown(lines) or _separated(path, lines, understood)
    if len(cells) < 2 or len(cells[0]) < 2:
        raise UserError(f"'{path}' has no table: its first line must name columns, such as model,gpus,tokens/s.")
    header, *body = cells
    if twice := [name for name, count in Counter(header).items() if count > 1 and understood(name)]:
        raise UserError(f"'{path}' has two columns '{twice[0]}': give each its own name.")
    seen: Counter[str] = Counter()
    for at, name in enumerate(header):
        seen[name] += 1
        header[at] = f"{name} ({seen[name]})" if seen[name] > 1 else name
    return [header, *([*row, *[""] * len(header)][: len(header)] for row in body)]  # rows may be shorter


def _text(path: Path) -> str:
    """The text of a table's file in any encoding that spreadsheets write. Raises UserError."""
    data = reading.data(path, "name a CSV file or a Markdown table.", "is no readable table")
    try:
        # Spreadsheets begin a file with a byte order mark, and write "Unicode text" as UTF-16.
        return data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"'{path}' is no readable table ({error}): save it as UTF-8.") from error


def _markdown(lines: Sequence[str]) -> Table:
    """The first table with a rule of dashes below its header; [] if there is none."""
    at = next((at for at, line in enumerate(lines) if at and "|" in line and _RULE.fullmatch(line)), 0)
    if not at or "|" not in lines[at - 1]:
        return []
    made = [_markdown_row(lines[at - 1])]
    for line in lines[at + 1 :]:
        if "|" not in line:
            break
        made.append(_markdown_row(line))
    return made


def _markdown_row(line: str) -> list[str]:
    # Without Markdown's emphasis: the best number of a column is often bold.
    return [cell.strip(" *`") for cell in line.strip().strip("|").split("|")]


def _separated(path: Path, lines: Sequence[str], understood: Callable[[str], bool]) -> Table:
    """A table with the separator that makes most of its lines equally long, and its header the best understood."""

    def quality(rows: Table) -> tuple[int, float, int]:
        """(understood names, share of lines with the usual number of cells, cells)"""
        if not rows:
            return 0, 0.0, 0
        usual, lines_of_it = Counter(map(len, rows)).most_common(1)[0]
        return sum(map(understood, rows[0])), lines_of_it / len(rows), usual

    found: list[tuple[str, Table]] = []
    for sign in SIGNS:
        rows = [[cell.strip() for cell in row] for row in reading.csv_rows(path, lines, sign)]
        found.append((sign, _below_comments(rows, understood)))
    sign, best = max(found, key=lambda each: quality(each[1]))
    return _decimal_points(path, best, sign, understood)


def _below_comments(rows: Table, understood: Callable[[str], bool]) -> Table:
    """The rows from the header on. A comment has fewer cells than the rows below it, or names that nobody understands.

    A number sign alone decides nothing: "# GPUs" is a header.
    """
    if not rows:
        return []
    usual = max(Counter(len(row) for row in rows if len(row) > 1).items(), key=lambda item: item[::-1], default=(0, 0))
    width = usual[0]
    first = [at for at, row in enumerate(rows[:20]) if len(row) >= min(width, 2) and 2 * len(row) > width]
    if not first or width < 2:
        return []
    names = [sum(map(understood, row)) - sum(_digits(cell) is not None for cell in row) for row in rows[:20]]
    head = max(first, key=lambda at: (names[at], not rows[at][0].startswith(_COMMENT), -at))
    comment = lambda row: row[0].startswith(_COMMENT) and len(row) < len(rows[head])  # noqa: E731
    return [rows[head], *(row for row in rows[head + 1 :] if not comment(row))]


def _evidence(cells: Sequence[str]) -> dict[str, str]:
    """Which signs are certainly decimal in these numbers, each with a number that shows it.

    "1,31" can only be a decimal comma, "1,234,567" and "1,234.5" only a decimal point. "1,297" may be either.
    """
    shown: dict[str, str] = {}
    for cell in cells:
        digits = _digits(cell)
        if digits is None:
            continue
        for sign, other in ((",", "."), (".", ",")):
            whole, found, part = digits.rpartition(sign)
            alone = sign not in whole and (not whole or re.fullmatch(r"[-+]?\d+", whole) is not None)
            grouped = re.fullmatch(_GROUPS % re.escape(other), whole) is not None
            thousands = alone and re.fullmatch(r"[-+]?[1-9]\d{0,2}", whole) is not None and len(part) == 3
            if found and part.isdigit() and (grouped or (alone and not thousands)):
                shown.setdefault(sign, cell)
            if digits.count(sign) > 1 and re.fullmatch(
                _GROUPS % re.escape(sign) + rf"(?:{re.escape(other)}\d*)?", digits
            ):
                shown.setdefault(other, cell)
    return shown


def _digits(cell: str) -> str | None:
    """The digits of a number with an optional unit; None for another cell."""
    found = _NUMBER.fullmatch(cell)
    return found["digits"] if found and _UNIT.fullmatch(found["rest"]) else None


def _decimal_points(path: Path, rows: Table, sign: str, understood: Callable[[str], bool]) -> Table:
    """The rows with decimal points. What a column shows counts, then what the table shows, then its separator: with
    ";" between the cells, spreadsheets write decimal commas.

    Raises UserError if an understood column shows both signs.
    """
    if not rows:
        return []
    header, *body = [[_SPACED.sub("", cell) for cell in row] for row in rows]
    width = max(map(len, rows))
    columns = [[row[at] for row in body if at < len(row)] for at in range(width)]
    told = [_evidence(column) for column in columns]
    for name, shown in zip(header, told, strict=False):
        if len(shown) > 1 and understood(name):
            raise UserError(
                f"'{path}' writes '{shown[',']}' and '{shown['.']}' in its column '{name}': use one decimal sign."
            )
    signs = {found for shown in told for found in shown}
    written = any("," in (_digits(cell) or "") for row in body for cell in row)
    usual = next(iter(signs)) if len(signs) == 1 else "," if sign == ";" and written else "."
    commas = [at for at, shown in enumerate(told) if (next(iter(shown)) if len(shown) == 1 else usual) == ","]
    return [header, *([_pointed(cell) if at in commas else cell for at, cell in enumerate(row)] for row in body)]


def _pointed(cell: str) -> str:
    """A number with a decimal comma, with a decimal point instead. Points before groups of three digits go."""
    if _digits(cell) is None:
        return cell
    return re.sub(r"\d[\d.,]*|,\d+", lambda found: _number(found[0]), cell)


def _number(digits: str) -> str:
    """A number with a decimal comma, as Python writes it."""
    whole, comma, part = digits.partition(",")
    if re.fullmatch(_GROUPS % re.escape("."), whole):
        whole = whole.replace(".", "")
    return f"{whole}{'.' if comma else ''}{part}"
