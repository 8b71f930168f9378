# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One field of a config, and how its value is parsed and checked. A reader raises UserError with one sentence."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxbench.errors import UserError, did_you_mean

Read = Callable[[str, Any], Any]  # (path, value) -> the parsed value; raises UserError


def one_of(*legal: str) -> Read:
    return lambda path, value: _legal(path, str(value), legal)


def names_of(*legal: str) -> Read:
    """A reader of comma-separated names. Duplicates are dropped."""

    def read(path: str, value: Any) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(word.strip() for word in str(value).split(",") if word.strip()))
        if not names:
            raise UserError(f"--config.{path} is empty: {did_you_mean('', legal)}")
        return tuple(_legal(path, name, legal) for name in names)

    return read


def integer(lower: int, upper: int) -> Read:
    def read(path: str, value: int) -> int:
        if not lower <= value <= upper:
            raise UserError(f"--config.{path}={value} is out of range: use {lower} to {upper}.")
        return value

    return read


AUTO = "auto"


def integer_or_auto(lower: int, upper: int, *, like: int) -> Read:
    """A reader of a whole number or "auto". like: an example of a legal number."""

    def read(path: str, value: Any) -> int | None:
        """The number; None for "auto": the machine decides."""
        if str(value).strip() == AUTO:
            return None
        if not re.fullmatch(r"\s*-?\d+\s*", str(value)):
            raise UserError(f"--config.{path}={value} is neither {AUTO} nor a whole number: use {AUTO} or {like}.")
        return int(integer(lower, upper)(path, int(value)))

    return read


def positive(path: str, value: float) -> float:
    if not 0 < value < math.inf:
        raise UserError(f"--config.{path}={value} must be above 0 and finite, such as 0.05.")
    return float(value)


def existing(path: str, value: str) -> str:
    """A file or folder, which must exist before anything is compiled; "": the experiment's own default."""
    if value and not Path(value).expanduser().exists():
        raise UserError(f"--config.{path}={value} does not exist: use the path of a file or folder, or '' for none.")
    return value


def as_is(_: str, value: Any) -> Any:
    """The value, unparsed, for fields that are parsed where they are used."""
    return value


def device_counts(path: str, value: Any) -> tuple[int, ...] | None:
    """Device counts: "1,2,4" -> (1, 2, 4). "auto", or "auto:4" for at most 4, -> None: the machine decides."""
    text = str(value)
    if re.fullmatch(r"\s*auto\s*(:\s*0*[1-9]\d*\s*)?", text):
        return None
    # As in Python, "(1, 2)" and "[1, 2]" are lists, too.
    words = text.strip("()[] ").rstrip(",").split(",")
    counts = tuple(int(word) if word.strip().isdecimal() else 0 for word in words)  # 0: no number, refused below
    if min(counts) < 1 or len(set(counts)) < len(counts):
        raise UserError(f"--config.{path}={text} is not a list of different device counts: use 1,2,4 or auto:4.")
    return tuple(sorted(counts))


def device_limit(path: str, value: Any) -> int | None:
    """The limit of "auto:4" -> 4. Other values -> None."""
    limit = str(value).partition(":")[2]
    return int(limit) if limit and device_counts(path, value) is None else None


def _legal(path: str, value: str, legal: Iterable[str]) -> str:
    if value not in legal:
        raise UserError(f"--config.{path}={value} is unknown: {did_you_mean(value, filter(None, legal))}")
    return value


@dataclass(frozen=True)
class ConfigField:
    """One field of the config.

    default: None if another `ConfigField` with this path declares it. mixed: its value may be a number or a word.
    """

    path: str
    default: Any
    read: Read
    mixed: bool = False


def setting(path: str, default: Any, read: Read, *, mixed: bool = False) -> Any:
    """A dataclass attribute that is parsed from the config's field at `path`."""
    return dataclasses.field(metadata={"field": ConfigField(path, default, read, mixed)})
