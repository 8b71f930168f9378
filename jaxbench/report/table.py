# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The one table of the suite: columns declared once, rendered on the terminal, in a page, as CSV and as Markdown.

A `Column` defines how a value is taken from a row and written; `fill` makes a `Table` of rows.
"""

from __future__ import annotations

import csv
import dataclasses
import enum
import io
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np
from rich import box
from rich import table as rich_table
from rich.cells import cell_len
from rich.text import Text

from jaxbench.statistics.bootstrap import Estimate

Get = str | tuple[str, ...] | Callable[[Any], Any]
NUMBER, TEXT, FOLD = "", "text", "fold"  # FOLD: a text that may wrap
ALWAYS, DISTINCT = 9, 8  # on the terminal; DISTINCT: unless all lines have the same value
TEXT_MAX = 24  # if room is short, the terminal wraps longer texts before it drops columns
_ALARMS = ("wrong", "failed", "no", "bad")
_STYLES = dict.fromkeys(_ALARMS, "bold red") | dict.fromkeys(("ok", "passed", "good"), "green")
_STYLES |= dict.fromkeys(("missing", "partial", "unchecked", "refused", "doubtful"), "yellow")
_STYLES |= dict.fromkeys(("unsupported", "unknown"), "dim")


class Position(enum.IntEnum):
    """Where a column stands in a displayed table; within a part, columns keep the order of declaration."""

    IDENTITY = 0
    RESULT = 1
    QUALITY = 2


class Kind(enum.Flag):
    """The kinds of run whose tables show a column."""

    NONE = 0
    TRAINING = enum.auto()
    LEVERS = enum.auto()
    CASES = enum.auto()


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
      name: in a CSV file, and the heading where `heading` is empty.
      get: how the value is taken from a row: a path of attributes such as "point.devices" (None if one is missing or
        None), several paths of which the first with a value counts, or a function.
      show: formats a known value.
      kind: NUMBER, TEXT or FOLD.
      style: the class of a cell by its value: a class of the style sheet, such as "ok" or "no".
      terminal: 0: not on the terminal; below ALWAYS: columns with the lowest number are dropped first if room is short.
      interval: the rank at which the terminal drops the column's intervals; 0: just before the column itself.
      short: the heading on the terminal.

    Of the columns of summary.csv:
      unit: of the number in the file. definition: the anchor of its definition in docs/metrics.
      bounds: whether the file also has `name`_lo and `name`_hi.
      csv: whether it is in the file at all.
      on: the kinds of run that show it. shown: the `get` of displayed tables; None: that of the file.
      part: its position in displayed tables. views: the only views of cases whose terminal has it; (): all.
    """

    name: str
    get: Get = ""
    show: Callable[[Any], str] = str
    _: KW_ONLY
    heading: str = ""
    kind: str = NUMBER
    style: Callable[[Any], str] | None = None
    terminal: int = 0
    interval: int = 0
    short: str = ""
    unit: str = ""
    definition: str = ""
    bounds: bool = False
    csv: bool = True
    on: Kind = Kind.NONE
    shown: Get | None = None
    part: Position = Position.RESULT
    views: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return self.heading or self.name

    @property
    def names(self) -> tuple[str, ...]:
        """Of the file."""
        return (self.name, f"{self.name}_lo", f"{self.name}_hi") if self.bounds else (self.name,)

    def values(self, row: Any) -> tuple[Any, ...]:
        """What the file has under `names`: None where a value is unknown."""
        value = take(self.get, row)
        ends = (value.value, value.lo, value.hi) if isinstance(value, Estimate) else (value, None, None)
        return tuple(map(_known, ends[: len(self.names)]))

    def cell(self, row: Any, *, interval: bool = True) -> str | Cell:
        """What a table shows: text, or text with a class of its own."""
        value = _known(take(self.get if self.shown is None else self.shown, row))
        if value is None:
            return ""
        if isinstance(value, Estimate) and not interval:
            value = value.alone()
        text = value if isinstance(value, str) else self.show(value)
        return Cell(text, self.style(value)) if self.style is not None else text


class Cell(NamedTuple):
    """A cell with a style: `kind` is a class of the style sheet ("ok", "no", "missing", ...)."""

    text: str
    kind: str = ""


@dataclass(frozen=True, kw_only=True)
class TableRow:
    """One line of a table. brief: the cells without intervals; (): they have none. first: begins a group. soft: greyed,
    because its numbers do not measure speed."""

    cells: tuple[str | Cell, ...]
    brief: tuple[str | Cell, ...] = ()
    first: bool = False
    soft: bool = False

    def text(self, at: int, *, brief: bool) -> Text:
        """A cell on the terminal. As `Text`: a string would be read as markup."""
        cell = (self.brief or self.cells)[at] if brief else self.cells[at]
        return Text(cell) if isinstance(cell, str) else Text(cell.text, style=_STYLES.get(cell.kind, ""))


@dataclass(frozen=True, kw_only=True)
class Table:
    """Lines under columns; without column names there is no header. note: below the lines, or alone."""

    columns: tuple[Column, ...]
    lines: tuple[TableRow, ...]
    note: str = ""

    @property
    def header(self) -> bool:
        return any(column.title for column in self.columns)

    @property
    def results(self) -> Table:
        """What came out: the table without the columns of `quality`."""
        return self._only(lambda column: column.part is not Position.QUALITY or column.terminal == ALWAYS)

    @property
    def quality(self) -> Table:
        """How well it was measured, with the columns that identify a line. A page shows both, as one is too wide.

        It has no note: that of `results` is on the same page.
        """
        table = self._only(
            lambda column: (
                column.part is Position.IDENTITY or (column.part is Position.QUALITY and column.terminal < ALWAYS)
            )
        )
        return dataclasses.replace(table, note="")

    @property
    def identity(self) -> int:
        """How many of its columns identify a line."""
        return sum(column.part is Position.IDENTITY for column in self.columns)

    def _only(self, keep: Callable[[Column], bool]) -> Table:
        """Some columns. What identifies every line alike is said once, in the note."""
        kept = [number for number, column in enumerate(self.columns) if keep(column)]
        alike = [n for n in kept if self.columns[n].part is Position.IDENTITY and self._alike(n)]
        common = ", ".join(f"{self.columns[n].title} {self.lines[0].cells[n]}" for n in alike)
        at = [n for n in kept if n not in alike]
        lines = tuple(
            dataclasses.replace(
                line, cells=tuple(line.cells[n] for n in at), brief=tuple(line.brief[n] for n in at if line.brief)
            )
            for line in self.lines
        )
        note = f"{self.note} In every line: {common}.".strip() if common else self.note
        return Table(columns=tuple(self.columns[n] for n in at), lines=lines, note=note)

    def terminal(self, width: int) -> rich_table.Table:
        """The table for a terminal of `width` characters, without the intervals and columns that do not fit."""
        made = rich_table.Table(
            box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold"
        )
        shown, brief = self._fitting(width)
        for at in shown:
            column = self.columns[at]
            made.add_column(
                Text(column.short or column.title),
                justify="left" if column.kind else "right",
                overflow="fold",
                no_wrap=not column.kind,
            )
        for number, line in enumerate(self.lines):
            if number and line.first:
                made.add_section()
            cells = (line.text(at, brief=at in brief) for at in shown)
            made.add_row(*cells, style="dim" if line.soft else "")
        return made

    def _fitting(self, width: int) -> tuple[list[int], set[int]]:
        """The columns that fit the terminal, and those of them that are shown without intervals."""
        shown = [at for at, column in enumerate(self.columns) if column.terminal and not self._constant(at)]
        brief: set[int] = set()
        steps = [(self.columns[at].interval or self.columns[at].terminal, -at, False) for at in shown]
        steps += [(self.columns[at].terminal, -at, True) for at in shown]
        for rank, at, drop in sorted(steps):  # within a rank, the rightmost first
            if rank >= DISTINCT or sum(self._width(each, brief) + 2 for each in shown) - 2 <= width:
                break
            if drop:
                shown.remove(-at)
            else:
                brief.add(-at)
        return shown, brief

    def _constant(self, at: int) -> bool:
        """Whether an optional column has the same value in every line, so that the terminal need not repeat it."""
        return self.columns[at].terminal < ALWAYS and self._alike(at)

    def _alike(self, at: int) -> bool:
        return len(self.lines) > 1 and len({line.cells[at] for line in self.lines}) == 1

    def _width(self, at: int, brief: set[int]) -> int:
        column = self.columns[at]
        cells = (line.text(at, brief=at in brief).plain for line in self.lines)
        longest = max(map(cell_len, (column.short or column.title, *cells)))
        return min(longest, TEXT_MAX) if column.kind else longest

    def markdown(self, escape: Callable[[str], str] = str) -> list[str]:
        """The lines of a Markdown table, in which alarms are bold. escape: of every text."""

        def written(cell: str | Cell) -> str:
            text, kind = (cell, "") if isinstance(cell, str) else cell
            return f"**{escape(text)}**" if kind in _ALARMS else escape(text)

        rows = [[escape(column.title) for column in self.columns]]
        rows.append([":--" if column.kind else "--:" for column in self.columns])
        rows += [[written(cell) for cell in line.cells] for line in self.lines]
        return [f"| {' | '.join(row)} |" for row in rows]


def fill(
    columns: Sequence[Column],
    rows: Iterable[Any],
    *,
    group: Callable[[Any], Any] | None = None,
    soft: Callable[[Any], bool] | None = None,
    note: str = "",
) -> Table:
    """Makes a table of rows. Columns in which no row has a value are left out.

    group: rows of equal `group` stand together, and a rule is drawn between such groups. soft: rows that are greyed.
    """
    rows = list(rows)
    full, brief = ([[c.cell(row, interval=ends) for c in columns] for row in rows] for ends in (True, False))
    used = [at for at in range(len(columns)) if not rows or any(cells[at] for cells in full)]
    lines = [
        TableRow(
            cells=tuple(full[number][at] for at in used),
            brief=tuple(brief[number][at] for at in used),
            first=first,
            soft=soft is not None and soft(rows[number]),
        )
        for number, first in enumerate(_begins(rows, group))
    ]
    return Table(columns=tuple(columns[at] for at in used), lines=tuple(lines), note=note)


def plain(
    headings: Mapping[str, str],
    rows: Iterable[tuple[str | Cell, ...]],
    *,
    first: Callable[[Any], bool] = lambda row: False,
    note: str = "",
) -> Table:
    """A table of texts. headings: column name -> kind. first: whether a row begins a group."""
    columns = tuple(Column(name, kind=kind, terminal=ALWAYS) for name, kind in headings.items())
    lines = tuple(TableRow(cells=row, first=first(row)) for row in rows)
    return Table(columns=columns, lines=lines, note=note)


def facts(pairs: Iterable[tuple[str, str]], kind: str = TEXT) -> Table:
    """A table of names and values, without a header. kind: of the values."""
    columns = (Column("", kind=TEXT), Column("", kind=kind))
    return Table(columns=columns, lines=tuple(TableRow(cells=pair) for pair in pairs))


def _begins(rows: Sequence[Any], group: Callable[[Any], Any] | None) -> list[bool]:
    """Which rows begin a group."""
    if group is None:
        return [False] * len(rows)
    keys = [group(row) for row in rows]
    return [number == 0 or key != keys[number - 1] for number, key in enumerate(keys)]


def records(columns: Sequence[Column], rows: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Each row as a CSV file has it, by column name; None: unknown."""
    for row in rows:
        yield {name: value for column in columns for name, value in zip(column.names, column.values(row), strict=True)}


def to_csv(columns: Sequence[Column], rows: Iterable[Any]) -> str:
    """Numbers with nine digits, booleans as true and false, text quoted where it must be, an unknown value empty."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([name for column in columns for name in column.names])
    writer.writerows(map(_written, record.values()) for record in records(columns, rows))
    return file.getvalue()


def take(get: Get, row: Any) -> Any:
    """The value of `get` in a row; None if there is none."""
    if callable(get):
        return get(row)
    for path in (get,) if isinstance(get, str) else get:
        value = row
        for name in path.split("."):
            value = getattr(value, name, None)
        if value is not None:
            return value
    return None


def _known(value: Any) -> Any:
    """The value; None if it is empty, unknown or not finite."""
    unknown = isinstance(value, Estimate) and not value.known
    return None if unknown or value == "" or (isinstance(value, float) and not math.isfinite(value)) else value


def _written(value: Any) -> str:
    """A cell of a CSV file. Any other type would be written as Python shows it, which no reader of the file expects."""
    if value is None or isinstance(value, bool | np.bool_):
        return "" if value is None else str(value).lower()
    if not isinstance(value, str | int | float | np.number):
        raise TypeError(f"{value!r} is a {type(value).__name__}: a CSV cell is text, a number, a boolean or empty.")
    return f"{value:.9g}" if isinstance(value, float | np.floating) else str(value)
