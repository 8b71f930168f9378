# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Reads a table: printed numbers as the ranges that their digits allow, and columns by the names that people give them.

`table_headers.csv` has the names. A header may leave open what it means: "tokens/s" of one device or of all, "step
time" in s or ms. Then the column has several meanings, and `checks` takes those with which most rows agree.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from jaxbench.catalog import rows as catalogue
from jaxbench.errors import UserError
from jaxbench.features.audit import layout

_PREFIX = {"": 0, "k": 3, "m": 6, "g": 9, "b": 9, "t": 12}
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_EMPTY = {"", "-", "n/a", "na", "nan", "oom", "none", "?"}
_SLACK = 1 + 1e-9  # for the arithmetic of this program
_CELL = re.compile(
    r"[~≈]?\s*(?P<whole>\d{1,3}(?:,\d{3})+|\d+)?(?:\.(?P<part>\d*))?(?:[eE](?P<power>[-+]?\d{1,2}))?"
    r"\s*(?P<prefix>[kKMGBTmb](?![a-zA-Z]))?\s*(?:(?:±|\+/-|\+-)\s*(?P<error>\d+\.?\d*))?"
    r"\s*(?P<unit>%|[a-zA-Z/]+)?\s*(?:\(.*\))?"
)
# Below zero, infinite, or with an exponent that no measurement has
_IMPOSSIBLE = re.compile(
    r"[-−]\s*[\d.,]*\d\S*|[-+]?inf(inity)?|∞|\+?[\d.,]+[eE]\+?\d{3,}\S*|\+?\d{60,}\S*", re.IGNORECASE
)
# Counts and shapes are exact. Everything else is a measured or rounded number.
_LEGAL = {"mfu": "0.42", "hfu": "0.42", "efficiency": "0.9", "params": "7B", "active_params": "3B", "devices": "8"}
_EXACT = set(
    "devices nodes per_node slices seq batch device_batch accumulate layers width hidden heads vocab steps".split()
)


@dataclass(frozen=True)
class Range:
    """A positive number and the ends of the range that its digits allow."""

    low: float
    value: float
    high: float

    def __mul__(self, other: Range | float) -> Range:
        by = other if isinstance(other, Range) else exact(other)
        return Range(self.low * by.low, self.value * by.value, self.high * by.high)

    def __truediv__(self, other: Range) -> Range:
        return Range(self.low / other.high, self.value / other.value, self.high / other.low)

    def plus(self, low: float, high: float) -> Range:
        """Its ends moved, and its value by their mean."""
        return Range(self.low + low, self.value + (low + high) / 2, self.high + high)

    def below(self, other: Range) -> bool:
        """Whether no value of this range reaches the other."""
        return self.high * _SLACK < other.low

    def meets(self, other: Range) -> bool:
        return not self.below(other) and not other.below(self)


def exact(value: float) -> Range:
    return Range(value, value, value)


class Printed(NamedTuple):
    """A number as printed. place: the power of ten of its last digit that is not a padding zero. digits: how many those
    are. whole: it has no decimal point, so zeros at its end may be padding. error: of "3.1 ± 0.2"; 0: none."""

    value: float
    place: int
    digits: int
    whole: bool
    unit: str
    error: float


def number(cell: str) -> Printed | None:
    """The number of a cell, such as "12.3k", "54 %", "1,024", "3.1 ± 0.2" or "37556 (36108)"; None: no number."""
    found = _CELL.fullmatch(cell.strip())
    if found is None or not (found["whole"] or found["part"]):
        return None
    whole, part = (found["whole"] or "0").replace(",", ""), found["part"] or ""
    shift = int(found["power"] or 0) + _PREFIX[(found["prefix"] or "").lower()]
    digits = len((whole + part).lstrip("0"))
    # Of "1000", at least the second digit is meant. A larger number of its column may show more: see `ranges`.
    padding = 0 if part else min(len(whole) - len(whole.rstrip("0")), max(0, digits - 2))
    value, error = (float(text) * 10.0**shift for text in (f"{whole}.{part or 0}", found["error"] or "0"))
    return Printed(value, shift + padding - len(part), digits - padding, not part, (found["unit"] or "").lower(), error)


def ranges(column: Sequence[Printed | None]) -> list[Range | None]:
    """A rounded number lies within half a unit of its last place, and a cut one up to a unit above it. A larger number
    that ends in another digit shows the place of all smaller whole numbers: 120 next to 123 is not rounded to tens."""
    whole = [each for each in column if each is not None and each.whole]

    def span(each: Printed) -> Range:
        place = min(other.place for other in whole if other.value >= each.value) if each.whole else each.place
        low = max(each.value - max(10.0**place / 2, each.error), each.value * 1e-9)  # above 0: ranges are divided
        return Range(low, each.value, each.value + max(10.0**place, each.error))

    return [None if each is None else span(each) for each in column]


class Meaning(NamedTuple):
    """A quantity in SI units: the number of the column times `scale`. scale 0: a share, in percent or of 1."""

    quantity: str
    scale: float


@dataclass(frozen=True)
class Column:
    """A column as printed. meanings: of numbers. text: what texts tell. Without both it was not understood."""

    header: str
    cells: tuple[str, ...]
    meanings: tuple[Meaning, ...] = ()
    text: str = ""


@dataclass
class Row:
    """A row. number: its place in the table, from 1. values: by quantity. texts: by what they tell: model, device,
    precision, layout. others: texts that were not understood. nominal: the parameters have two digits at most.
    faults: clauses about numbers that nothing can have, such as a negative step time."""

    number: int
    values: dict[str, Range] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)
    nominal: bool = False
    faults: list[str] = field(default_factory=list)


@functools.cache
def rules(kind: str) -> dict[str, dict[str, str]]:
    """The lines of `table_headers.csv` of a kind, by pattern."""
    return {row["pattern"]: row for row in catalogue("table_headers.csv") if row["kind"] == kind}


def plain(header: str) -> str:
    """A header in the words of `table_headers.csv`: "Mean tok/s/GPU" -> "tokens per s per device"."""
    names = {word: row["name"] for words, row in rules("word").items() for word in words.split()}
    text = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", " ", header).lower()
    text = re.sub(r"(flops?)(/|_per_| per )s(ec)?\b", r"\1", text)
    text = text.replace("%", " pct ").replace("/", " per ").replace("µ", "u")
    return " ".join(filter(None, (names.get(word, word) for word in re.findall(r"[a-z]+|\d+\w*", text))))


def meanings(header: str) -> tuple[Meaning, ...]:
    """What the numbers under a header may mean, the likeliest first; () if it is not understood."""
    text = plain(header)
    if re.search(r"\b\d+(\.\d+)?[bm]\b", text):  # a column for one of several models
        return ()
    row = next((row for pattern, row in rules("number").items() if re.fullmatch(pattern, text)), None)
    quantities, words = row["name"].split("|") if row else [], text.split()
    if len(quantities) > 1 and {"device", "total"} & set(words):
        quantities = [name for name in quantities if name.startswith("device_") == ("device" in words)]
    return tuple(Meaning(name, float(s)) for name in quantities for s in (row or {})["scale"].split("|"))


def _text(header: str) -> str:
    """What a column of words names, such as "model"; "" if it is not known."""
    return next((row["name"] for pattern, row in rules("text").items() if re.fullmatch(pattern, plain(header))), "")


def read(path: Path, facts: Sequence[str] = ()) -> list[Column]:
    """The columns of a CSV, TSV or Markdown table. `layout` says where it begins, and what its decimal sign is.

    facts: what the caption says of all rows, "seq_len=4096", or a name for a column, "tokens/s/gpu=@vanilla".
    Raises UserError: no table, or a fact without a value, with an impossible one, or given twice.
    """
    header, *body = layout.table(path, lambda text: bool(meanings(text) or _text(text)))
    columns = dict(zip(header, zip(*body, strict=True), strict=True))
    stated: dict[str, str] = {}  # the fact that stated a quantity
    for fact in facts:
        name, _, value = fact.partition("=")
        if not (name and value) or (value.startswith("@") and value[1:] not in columns):
            raise UserError(f"'{fact}' is no fact of the table: write seq_len=4096, or tokens/s/gpu=@{header[0]}.")
        for what in _quantities(name):
            if what in stated:
                raise UserError(f"'{stated[what]}' and '{fact}' state the same fact twice: leave one of them out.")
            stated[what] = fact
        cells = columns.pop(value[1:]) if value.startswith("@") else (_stated(fact, name, value),) * len(body)
        columns = {name: cells, **{other: column for other, column in columns.items() if other != name}}
    if {"value", "unit"} <= columns.keys():  # a column for each unit
        pairs = list(zip(columns.pop("value"), columns.pop("unit"), strict=True))
        for unit in dict.fromkeys(unit for _, unit in pairs):
            columns[f"time {unit}" if unit in _SECONDS else unit] = tuple(v if own == unit else "" for v, own in pairs)
    made = list(itertools.starmap(_understood, columns.items()))
    # Of two columns with one meaning, the first counts, and one that says which it is before one that leaves it open.
    owner: dict[str, Column] = {}
    for column in sorted(made, key=lambda column: len(column.meanings)):
        for meaning in column.meanings if len({m.quantity for m in column.meanings}) == 1 else ():
            owner.setdefault(meaning.quantity, column)

    def mine(column: Column, meaning: Meaning) -> bool:
        first = owner.get(meaning.quantity, column)
        return first is column or not any(a and b for a, b in zip(first.cells, column.cells, strict=True))

    return [replace(each, meanings=tuple(m for m in each.meanings if mine(each, m))) for each in made]


def _quantities(name: str) -> set[str]:
    """What a fact states: the quantities of its name, or what its text tells, or the name itself."""
    return {meaning.quantity for meaning in meanings(name)[:1]} or {_text(name) or plain(name) or name}


def _stated(fact: str, name: str, value: str) -> str:
    """The value of a fact. Raises UserError if its name is a quantity, and its value no possible number of it."""
    known = {meaning.quantity for meaning in meanings(name)}
    if not known or _text(name):
        return value
    printed = number(value)
    if printed is None and known == {"devices"} and number(value.partition("x")[0]) is not None:
        return value  # "8xH100" below "gpus"
    if printed is None or not 0 < printed.value < math.inf:
        legal = next((_LEGAL[quantity] for quantity in known if quantity in _LEGAL), "4096")
        raise UserError(f"'{fact}' is no number above 0: write {name}={legal}, for example.")
    if known <= _EXACT and printed.value != int(printed.value):
        raise UserError(f"'{fact}' is no whole number: write {name}={max(1, round(printed.value))}.")
    return value


def _understood(header: str, cells: tuple[str, ...]) -> Column:
    """What a column holds, from its header and its cells."""
    filled = [cell for cell in cells if cell.lower() not in _EMPTY]
    filled = [cell for cell in filled if not _IMPOSSIBLE.fullmatch(cell)]  # each is a fault of its row
    numeric, text = bool(filled) and all(map(number, filled)), _text(header)
    if not numeric and Meaning("devices", 1.0) in meanings(header):  # "8x A100" below "GPUs"
        text = "device"
    if text == "device" and numeric and "device" in plain(header).split():
        return Column(header, cells, (Meaning("devices", 1.0),))
    if text and not (text == "model" and all(cell.isdecimal() for cell in filled)):
        return Column(header, cells, text=text)
    units = {printed.unit for cell in filled if (printed := number(cell))}
    known = meanings(f"{header} {' '.join(sorted(units))}") or meanings(header)  # of "Throughput", "12.3k tok/s"
    if not filled and any(map(_IMPOSSIBLE.fullmatch, cells)):  # nothing but faults
        return Column(header, cells, meanings(header))
    return Column(header, cells, known if units else ())


def readings(columns: Sequence[Column]) -> Iterator[tuple[list[Row], dict[str, str]]]:
    """The rows in each possible reading, the likeliest first, with the meanings of the ambiguous columns in it."""
    for chosen in itertools.product(*(column.meanings or (None,) for column in columns)):
        rows = [Row(number) for number in range(1, len(columns[0].cells) + 1)]
        for column, meaning in zip(columns, chosen, strict=True):
            _add(rows, column, meaning)
        words = dict[str, str]()
        for column, meaning in zip(columns, chosen, strict=True):
            if meaning is not None and len(column.meanings) > 1:
                of = "of a device" if meaning.quantity.startswith("device_") else "of all devices"
                words[column.header] = of if meaning.quantity != "step_s" else "in ms" if meaning.scale < 1 else "in s"
        yield rows, words


def _add(rows: Sequence[Row], column: Column, meaning: Meaning | None) -> None:
    """Adds the cells of a column to the rows."""
    cells = ["" if cell.lower() in _EMPTY else cell for cell in column.cells]
    if meaning is not None:
        for row, cell in zip(rows, cells, strict=True):
            if _IMPOSSIBLE.fullmatch(cell):
                row.faults.append(f"{column.header} ({cell[:40]}) is no finite number above 0")
    printed = [number(cell) for cell in cells]
    # Numbers that repeat, such as releases, tell rows apart like a text. Others, such as memory, are results.
    tell = not all(map(number, filter(None, cells))) or 2 * len(set(cells)) <= len(rows)
    percent = "%" in "".join((column.header, *cells)) or "pct" in column.header
    percent = percent or max((each.value for each in printed if each is not None), default=0.0) > 2
    for row, cell, own, span in zip(rows, cells, printed, ranges(printed), strict=True):
        if meaning is None and column.text:
            row.texts[column.text] = f"{row.texts.get(column.text, '')} {cell}".strip()
        elif meaning is None and tell:
            row.others[column.header] = cell
        elif meaning is not None and own is not None and span is not None and own.value > 0:
            scale = meaning.scale or (0.01 if percent else 1.0)
            scale = _SECONDS.get(own.unit, scale) if meaning.quantity == "step_s" else scale
            if meaning.quantity.endswith("flop_s") and own.value > 1e9:
                scale = 1.0  # a column of "TFLOP" in FLOP/s
            if meaning.quantity == "seq" and cell.lower().endswith("k"):
                scale = 1.024  # "8k" positions are 8,192
            row.nominal |= meaning.quantity == "params" and own.digits < 3
            of_tokens = meaning.quantity == "batch" and own.value >= 5e5  # "4M"
            span = exact(own.value) if meaning.quantity in _EXACT and not of_tokens else span
            row.values.setdefault("step_tokens" if of_tokens else meaning.quantity, span * scale)
