# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The one way to read a file that something else may have changed: JSON, JSON lines, TOML, CSV and archives of arrays.

Each function either returns what its file says, or raises UserError with one sentence: the file, its fault, and what
to do. So no caller catches errors of a parser by itself; tests/house/test_reading.py looks for those that do. What the
values mean is for `documents.decode`, with the types and ranges of a dataclass.

JSON has no NaN and no infinity, text has no half characters, and nothing is nested more than `DEEPEST` levels: what is
refused here needs no guard in code that later prints it, hashes it or walks through it.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import re
import tomllib
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from jaxbench.errors import UserError
from jaxbench.records.documents import decode

DEEPEST = 100  # levels of lists and objects; Python's own limit depends on its version
_MARKS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')
_LEVELS = {"[": 1, "{": 1, "]": -1, "}": -1}
_HUGE = re.compile(r"\d[eE]\+?\d{3}|\d{309}")  # may be above the largest float
_HALF = re.compile(r"\\u[dD][89a-fA-F]")  # half of a character outside the first 65,536
T = TypeVar("T")


def data(path: Path, advice: str, fault: str = "cannot be read") -> bytes:
    """The bytes of a file. Raises UserError if it cannot be read."""
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise UserError(f"'{path}' {fault} ({getattr(error, 'strerror', None) or error}): {advice}") from error


def value(text: str | bytes) -> Any:
    """The JSON value of a text. Raises ValueError, also for what Python's parser accepts and JSON does not have."""
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    if text.count("[") + text.count("{") > DEEPEST:
        levels = itertools.accumulate(_LEVELS.get(found[0], 0) for found in _MARKS.finditer(text))
        if max(levels, default=0) > DEEPEST:
            raise ValueError(f"it is nested more than {DEEPEST} levels deep")
    try:
        huge = _HUGE.search(text) is not None  # Python's own functions are faster
        made = json.loads(
            text,
            parse_constant=_no_number,
            parse_float=_finite if huge else None,
            parse_int=_finite_int if huge else None,
        )
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if _HALF.search(text):
        json.dumps(made, ensure_ascii=False).encode()  # UnicodeEncodeError is a ValueError
    return made


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"a number is not finite: {word}")


def _finite_int(text: str) -> int:
    _finite(text)
    return int(text)


def _finite(text: str) -> float:
    """The number. Raises ValueError for one that a float cannot hold."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"a number is not finite: {text[:40]}")
    return number


def read_json(path: Path, decoded: Callable[[Any], T], advice: str) -> T:
    """`decoded` of the JSON in a file, such as `partial(decode, Kind)`.

    Raises UserError if the file cannot be read, is not JSON, or if `decoded` raises KeyError, TypeError,
    AttributeError, LookupError or ValueError.
    """
    content = data(path, advice)
    return of_text(path, content, decoded, advice)


def of_text(where: Path | str, content: str | bytes, decoded: Callable[[Any], T], advice: str) -> T:
    """`decoded` of a JSON text that was read from `where`. Raises UserError as `read_json` does."""
    try:
        return decoded(value(content))
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError, OverflowError) as error:
        raise damaged(where, error, advice) from error


def read_document(path: Path, kind: str, version: int, fields: Collection[str], advice: str) -> dict[str, Any]:
    """A JSON object that names its kind and version, and has these fields. Raises UserError as `read_json` does."""

    def decoded(content: Any) -> dict[str, Any]:
        document = decode(dict[str, Any], content)
        if (document.get("kind"), document.get("schema")) != (kind, version):
            raise UserError(f"'{path}' is not a {kind} of this version: {advice}")
        if missing := {*fields} - document.keys():
            raise KeyError(min(missing))
        return document

    return read_json(path, decoded, advice)


def read_lines(path: Path, decoded: Callable[[Any], T], advice: str) -> Iterator[T]:
    """`decoded` of each line of a file of JSON lines. A last line without its end is skipped.

    Raises UserError as `read_json` does, with the number of the line.
    """
    for number, line in enumerate(io.BytesIO(data(path, advice)), start=1):
        if not line.endswith(b"\n"):
            return
        yield of_text(f"{path}, line {number}", line, decoded, advice)


def sound_lines(path: Path, decoded: Callable[[Any], T], advice: str) -> tuple[list[T], list[str]]:
    """(`decoded` of each sound line, a sentence for each skipped one). For files in which each line stands alone.

    Raises UserError if the file cannot be read at all.
    """
    made: list[T] = []
    skipped: list[str] = []
    for number, line in enumerate(data(path, advice).splitlines(), start=1):
        try:
            made.append(of_text(f"{path}, line {number}", line, decoded, advice))
        except UserError as error:
            skipped.append(str(error))
    return made, skipped


def read_toml(path: Path, advice: str) -> dict[str, Any]:
    """The table of a TOML file. Raises UserError as `read_json` does."""
    try:
        return tomllib.loads(data(path, advice).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise damaged(path, error, advice) from error


def csv_rows(where: Path | str, lines: Iterable[str], sign: str = ",") -> list[list[str]]:
    """The cells of lines of CSV. Raises UserError for a cell longer than Python's limit."""
    try:
        return list(csv.reader(lines, delimiter=sign))
    except csv.Error as error:
        raise UserError(f"'{where}' is no readable table ({error}): check its quotation marks.") from error


def csv_table(
    where: Path | str, content: str | bytes, fields: Collection[str], advice: str
) -> list[tuple[int, dict[str, str]]]:
    """The rows of a CSV text by the names in its first line, each with the number of its last line.

    A row may end early: its other cells are "". Raises UserError if a field of `fields` is absent, if a row has more
    cells than the first line, or if the text is not CSV in UTF-8.
    """
    try:
        # "-sig": Excel writes a byte order mark, which would become part of the first column's name.
        text = content if isinstance(content, str) else content.decode("utf-8-sig")
        rows = csv.reader(io.StringIO(text, newline=None), strict=True)
        found = [(rows.line_num, row) for row in rows if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{where} is not a CSV file in UTF-8 ({error}): {advice}") from error
    header = found[0][1] if found else []
    if missing := [name for name in fields if name not in header]:
        raise UserError(f"{where} has no column '{missing[0]}': {advice}")
    if long := [number for number, row in found if any(row[len(header) :])]:
        raise UserError(
            f"{where}, line {long[0]}, has more cells than the first line: put quotation marks around its commas."
        )
    pad = [""] * len(header)
    return [(number, dict(zip(header, [*row, *pad], strict=False))) for number, row in found[1:]]


def read_arrays(path: Path, decoded: Callable[[Any], T], advice: str) -> T:
    """`decoded` of an archive of NumPy arrays, which is closed afterwards. Objects, which run code, are refused.

    Raises UserError if the file is no such archive, or if an array in it is damaged.
    """
    import numpy as np  # late: reports of documents alone do without

    try:
        # np.load would unpickle what is no archive. A checksum is compared when an array is read, so in `decoded`.
        with zipfile.ZipFile(path), np.load(path, allow_pickle=False) as arrays:
            return decoded(arrays)
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror or error}): {advice}") from error
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        SyntaxError,
        OverflowError,
        MemoryError,
        NotImplementedError,
        RuntimeError,
    ) as error:
        raise damaged(path, error, advice) from error


def count_of(name: str) -> int | None:
    """The number that a file's name is, such as that of a step; None for any other name, and for "²" or "٣"."""
    return int(name) if name.isascii() and name.isdecimal() and len(name) < 19 else None


def damaged(where: Path | str, error: Exception, advice: str) -> UserError:
    """The error for a file or line that is not what jaxbench wrote. advice: what to do, as the end of a sentence."""
    fault = f"no field {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
    return UserError(f"{where} is damaged ({fault}): {advice}")
