# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The suite's only table: columns are declared once and rendered on the terminal, in a page, as CSV and as Markdown.

A `Column` defines how to get a value from a row and how to format it. `fill` makes a `Table` from rows. Numbers in
cells have three digits, then the interval; they are "" if the value is unknown.
"""

from __future__ import annotations

import csv
import dataclasses
import enum
import io
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from rich import box
from rich import table as rich_table
from rich.cells import cell_len
from rich.text import Text

from jaxbench.analysis.quantities import interval, percent
from jaxbench.statistics.bootstrap import Estimate
from jaxbench.texts import as_cell

Get = str | tuple[str, ...] | Callable[..., object]
NUMBER, TEXT, FOLD = "", "text", "fold"  # FOLD: a text that may wrap
ALWAYS, DISTINCT = 9, 8  # ranks on the terminal: always shown; shown unless all lines have the same value
TEXT_MAX = 24  # if the terminal is narrow, it wraps longer texts before it drops columns
_ALARMS = ("wrong", "failed", "no", "bad")  # classes of cells; template.html has the same colours for them
_STYLES = dict.fromkeys(_ALARMS, "bold red") | dict.fromkeys(("ok", "passed", "good"), "green")
_STYLES |= dict.fromkeys(("missing", "partial", "unchecked", "refused", "doubtful"), "yellow")
_STYLES |= dict.fromkeys(("unsupported", "unknown"), "dim")

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_SIZES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (0.0, ""))


class Position(enum.IntEnum):
    """The part of a displayed table that a column belongs to. Within a part, columns keep the order of declaration."""

    IDENTITY = 0
    RESULT = 1
    QUALITY = 2


class Kind(enum.Flag):
    """The kinds of run that show a column in their tables."""

    NONE = 0
    TRAINING = enum.auto()
    LEVERS = enum.auto()
    CASES = enum.auto()
    DECODE = enum.auto()


@dataclass(frozen=True)
class Column:
    """One column: how to get its value from a row, and how each medium shows it."""

    name: str  # in a CSV file, and the heading if `heading` is empty
    # A function, a path of attributes such as "point.devices" (None if an attribute is missing or None), or several
    # paths; then the first path with a value counts.
    get: Get = ""
    show: Callable[..., str] = str  # formats a known value
    _: KW_ONLY
    heading: str = ""
    kind: str = NUMBER  # NUMBER, TEXT or FOLD
    style: Callable[..., str] | None = None  # from the value to a class of the style sheet, such as "ok" or "no"
    terminal: int = 0  # rank on the terminal; 0: never shown. If it is narrow, the lowest rank below ALWAYS goes first
    interval: int = 0  # the rank at which the terminal drops the column's intervals; 0: right before the column itself
    short: str = ""  # the heading on the terminal

    # For the columns of summary.csv:
    unit: str = ""  # of the number in the file, as docs/metrics writes it
    definition: str = ""  # the anchor of its definition in docs/metrics
    bounds: bool = False  # the file also has `name`_lo and `name`_hi
    csv: bool = True  # it is in the file at all
    on: Kind = Kind.NONE  # the kinds of run that show it
    shown: Get | None = None  # the `get` for displayed tables; None: the same as for the file
    at: Position = Position.RESULT  # of displayed tables
    views: tuple[str, ...] = ()  # the views of cases that show it on the terminal; (): all

    @property
    def title(self) -> str:
        return self.heading or self.name

    @property
    def names(self) -> tuple[str, ...]:
        """The column's names in the file."""
        return (self.name, f"{self.name}_lo", f"{self.name}_hi") if self.bounds else (self.name,)

    def values(self, row: object) -> tuple[object, ...]:
        """The values for the file, one for each of `names`; None: unknown."""
        value = take(self.get, row)
        ends = (value.value, value.lo, value.hi) if isinstance(value, Estimate) else (value, None, None)
        return tuple(map(_known, ends[: len(self.names)]))

    def cell(self, row: object, *, interval: bool = True) -> str | Cell:
        """The cell of a displayed table: text, or text with a class."""
        value = _known(take(self.get if self.shown is None else self.shown, row))
        if value is None:  # never "nan" or "None", which readers take for a result
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
    """One line of a table."""

    cells: tuple[str | Cell, ...]
    brief: tuple[str | Cell, ...] = ()  # the cells without intervals; (): there are none
    first: bool = False  # it begins a group
    soft: bool = False  # it is grey, because its numbers do not measure speed

    def text(self, at: int, *, brief: bool) -> Text:
        """A cell for the terminal. It is a `Text`, because a string would be read as markup."""
        # Text of a run may contain brackets, such as an error message, which rich would take for a style.
        cell = (self.brief or self.cells)[at] if brief else self.cells[at]
        return Text(cell) if isinstance(cell, str) else Text(cell.text, style=_STYLES.get(cell.kind, ""))


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table. Without column titles it has no header. note: shown below the lines, or alone without lines."""

    columns: tuple[Column, ...]
    lines: tuple[TableRow, ...]
    note: str = ""

    @property
    def header(self) -> bool:
        return any(column.title for column in self.columns)

    @property
    def results(self) -> Table:
        """The table without the columns of `quality`."""
        return self._only(lambda column: column.at is not Position.QUALITY or column.terminal == ALWAYS)

    @property
    def quality(self) -> Table:
        """The columns on the quality of the measurement, with the columns that identify a line. A page shows both
        tables, because a single one would be too wide."""

        def keep(column: Column) -> bool:
            of_quality = column.at is Position.QUALITY and column.terminal < ALWAYS
            return of_quality or column.at is Position.IDENTITY

        return dataclasses.replace(self._only(keep), note="")  # the note of `results` is on the same page

    @property
    def identity(self) -> int:
        """The number of columns that identify a line."""
        return sum(column.at is Position.IDENTITY for column in self.columns)

    def _only(self, keep: Callable[[Column], bool]) -> Table:
        """The table with only some columns. An identity column with the same value in every line goes into the note."""
        kept = [number for number, column in enumerate(self.columns) if keep(column)]
        alike = [n for n in kept if self.columns[n].at is Position.IDENTITY and self._is_constant(n)]
        common = ", ".join(f"{self.columns[n].title} {self.lines[0].cells[n]}" for n in alike)
        at = [n for n in kept if n not in alike]
        lines = tuple(
            dataclasses.replace(line, cells=tuple(line.cells[n] for n in at), brief=())  # a page has room for intervals
            for line in self.lines
        )
        note = f"{self.note} In every line: {common}.".strip() if common else self.note
        return Table(columns=tuple(self.columns[n] for n in at), lines=lines, note=note)

    def terminal(self, width: int) -> rich_table.Table:
        """The table for a terminal with `width` characters, without the intervals and columns that do not fit."""
        made = rich_table.Table(
            box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold"
        )
        shown, brief = self._fitting(width)
        for at in shown:
            column = self.columns[at]
            justify: Literal["left", "right"] = "left" if column.kind else "right"
            title = Text(column.short or column.title)
            # A number in two lines could be read as two numbers.
            made.add_column(title, justify=justify, overflow="fold", no_wrap=not column.kind)
        for number, line in enumerate(self.lines):
            if number and line.first:
                made.add_section()
            cells = (line.text(at, brief=at in brief) for at in shown)
            made.add_row(*cells, style="dim" if line.soft else "")
        return made

    def _fitting(self, width: int) -> tuple[list[int], set[int]]:
        """(the columns that fit the terminal, the columns among them to show without intervals)."""
        shown = [at for at, column in enumerate(self.columns) if column.terminal and not self._constant(at)]
        brief: set[int] = set()
        # First of a rank is the interval of a column (False), then the column itself (True).
        steps = [(self.columns[at].interval or self.columns[at].terminal, -at, False) for at in shown]
        steps += [(self.columns[at].terminal, -at, True) for at in shown]
        for rank, at, drop in sorted(steps):  # within a rank, the rightmost first
            if rank >= DISTINCT or sum(self._column_width(each, brief) + 2 for each in shown) - 2 <= width:
                break
            if drop:
                shown.remove(-at)
            else:
                brief.add(-at)
        return shown, brief

    def _constant(self, at: int) -> bool:
        """Whether an optional column has the same value in every line, so that the terminal can leave it out."""
        return self.columns[at].terminal < ALWAYS and self._is_constant(at)

    def _is_constant(self, at: int) -> bool:
        return len(self.lines) > 1 and len({line.cells[at] for line in self.lines}) == 1

    def _column_width(self, at: int, brief: set[int]) -> int:
        column = self.columns[at]
        cells = (line.text(at, brief=at in brief).plain for line in self.lines)
        longest = max(map(cell_len, (column.short or column.title, *cells)))  # cells of the terminal, not letters
        return min(longest, TEXT_MAX) if column.kind else longest

    def markdown(self, escape: Callable[[str], str] = str) -> list[str]:
        """The lines of a Markdown table. Alarms are bold. escape: applied to every text."""

        def written(cell: str | Cell) -> str:
            text, kind = (cell, "") if isinstance(cell, str) else cell
            return f"**{escape(text)}**" if kind in _ALARMS else escape(text)

        rows = [[escape(column.title) for column in self.columns]]
        rows.append([":--" if column.kind else "--:" for column in self.columns])
        rows += [[written(cell) for cell in line.cells] for line in self.lines]
        return [f"| {' | '.join(row)} |" for row in rows]


def fill(
    columns: Sequence[Column],
    rows: Iterable[object],
    *,
    group: Callable[..., object] | None = None,
    soft: Callable[..., bool] | None = None,
    note: str = "",
) -> Table:
    """Makes a table from rows. Columns without any value are left out.

    group: a rule is drawn where this value changes from row to row. soft: whether to show a row in grey.
    """
    rows = list(rows)
    full, brief = ([[c.cell(row, interval=ends) for c in columns] for row in rows] for ends in (True, False))
    used = [at for at in range(len(columns)) if not rows or any(cells[at] for cells in full)]
    keys = [group(row) if group is not None else None for row in rows]
    lines = [
        TableRow(
            cells=tuple(full[n][at] for at in used),
            brief=tuple(brief[n][at] for at in used),
            first=group is not None and (n == 0 or keys[n] != keys[n - 1]),
            soft=soft is not None and soft(row),
        )
        for n, row in enumerate(rows)
    ]
    return Table(columns=tuple(columns[at] for at in used), lines=tuple(lines), note=note)


def plain(
    headings: Mapping[str, str],
    rows: Iterable[tuple[str | Cell, ...]],
    *,
    first: Callable[..., bool] = lambda row: False,
    note: str = "",
) -> Table:
    """A table of texts. headings: {column name: kind}. first: whether a row begins a group."""
    columns = tuple(Column(name, kind=kind, terminal=ALWAYS) for name, kind in headings.items())
    lines = tuple(TableRow(cells=row, first=first(row)) for row in rows)
    return Table(columns=columns, lines=lines, note=note)


def facts(pairs: Iterable[tuple[str, str]], kind: str = TEXT) -> Table:
    """A table of names and values without a header. kind: the kind of the values."""
    columns = (Column("", kind=TEXT), Column("", kind=kind))
    return Table(columns=columns, lines=tuple(TableRow(cells=pair) for pair in pairs))


def records(columns: Sequence[Column], rows: Iterable[object]) -> Iterator[dict[str, object]]:
    """Each row's values for a CSV file by column name; None: unknown."""
    for row in rows:
        yield {name: value for column in columns for name, value in zip(column.names, column.values(row), strict=True)}


def to_csv(columns: Sequence[Column], rows: Iterable[object]) -> str:
    """The rows as CSV: numbers with nine digits, booleans as true and false, unknown values empty."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")  # the csv module's own is "\r\n" on every system
    writer.writerow([name for column in columns for name in column.names])
    writer.writerows(map(_written, record.values()) for record in records(columns, rows))
    return file.getvalue()


def take(get: Get, row: object) -> Any:
    """The value of `get` for a row; None if there is none. Of several paths, the first known value counts."""
    if callable(get):
        return get(row)
    for path in (get,) if isinstance(get, str) else get:
        value = row
        for name in path.split("."):
            value = getattr(value, name, None)
        if _known(value) is not None:
            return value
    return None


def _known(value: object) -> object:
    """The value; None if it is empty, unknown or not finite."""
    unknown = isinstance(value, Estimate) and not value.known
    # 0 and False are values: only texts may be empty.
    return None if unknown or value == "" or (isinstance(value, float) and not math.isfinite(value)) else value


def _written(value: object) -> str:
    """A cell of a CSV file. Raises TypeError for other types: Python's text for them is not what readers expect."""
    if value is None or isinstance(value, bool | np.bool_):
        return "" if value is None else str(value).lower()
    if not isinstance(value, str | int | float | np.number):
        raise TypeError(f"{value!r} is a {type(value).__name__}: a CSV cell is text, a number, a boolean or empty.")
    # Nine digits: more than any clock resolves, and no tails such as 0.30000000000000004.
    if isinstance(value, str):
        return as_cell(value)
    return f"{value:.9g}" if isinstance(value, float | np.floating) else str(value)


def milliseconds(estimate: Estimate) -> str:
    """Milliseconds with three or more digits: "12.3 [12.1, 12.4]"."""
    return _scaled_text(estimate, 1e-3)


def short_time(estimate: Estimate) -> str:
    """A time with value and interval in the same unit: "12.3 [12.1, 12.4] µs"."""
    if not estimate.known:
        return ""
    # The unit of the value also for its interval, or the two could not be compared at a glance.
    size, unit = next(((s, u) for s, u in _UNITS if estimate.value >= s), _UNITS[-1])
    return f"{_scaled_text(estimate, size)} {unit}"


def giga(estimate: Estimate) -> str:
    """Billions: "12.3 [12.1, 12.4]"."""
    return interval(estimate, partial(_digits, size=1e9))


def ratio(estimate: Estimate) -> str:
    """A ratio: "1.82 [1.79, 1.85]"; "1" for the base of the ratio."""
    if not estimate.known:
        return ""
    if not estimate.has_interval or estimate.lo == estimate.hi:  # the base is exactly 1 in every bootstrap sample
        return "1" if estimate.value == 1 else f"{estimate.value:.2f}"
    return interval(estimate, "{:.2f}".format)


def share(estimate: Estimate) -> str:
    """Percent: "91 [89, 93]"."""
    if estimate.value < 0.005 and not estimate.has_interval:  # would be rounded to "0"
        return "<1"
    return percent(estimate).replace(" %", "")


def throughput(value: float) -> str:
    """Three digits with an SI prefix: "20.8k"; "" if not finite."""
    if not math.isfinite(value):
        return ""
    size, prefix = next((s, p) for s, p in _SIZES if value >= s or not s)
    return f"{value / (size or 1):#.3g}".removesuffix(".") + prefix  # "#" keeps the zeros of "20.0", and a final point


def _scaled_text(estimate: Estimate, size: float) -> str:
    if not estimate.known:
        return ""
    value = estimate.value / size
    # Decimal places of the value for all three numbers: an end with other places looks more exact than the value.
    places = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 2
    between = f" [{estimate.lo / size:.{places}f}, {estimate.hi / size:.{places}f}]" if estimate.has_interval else ""
    return f"{value:.{places}f}{between}"


def _digits(value: float, *, size: float) -> str:
    """Three digits, no exponent: "0.0123", "12.3", "1230"."""
    value /= size
    if value == 0 or not math.isfinite(value):
        return ""
    return f"{value:.2g}" if abs(value) < 1e-4 else f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"
