# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Readers of one value of the config: (path, value) -> the parsed value. They raise UserError with one sentence."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxbench import ranges
from jaxbench.catalog import allocators, published
from jaxbench.errors import UserError, did_you_mean
from jaxbench.machine import power_limits

Read = Callable[[str, Any], Any]
AUTO = "auto"


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


def number(lower: float, upper: float) -> Read:
    def read(path: str, value: float) -> float:
        if not lower <= value <= upper:  # refuses NaN, too, which fails every comparison
            raise UserError(f"--config.{path}={value:g} is out of range: use {lower:g} to {upper:g}.")
        return float(value)

    return read


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


def rate(path: str, value: float) -> float:
    """A positive number that float32 can hold, as most optimizers do."""
    ranges.check(path, f"{value:g}", positive(path, value), 0.1, own=False)
    return float(value)


def existing(path: str, value: str) -> str:
    """A file or folder, which must exist before anything is compiled; "": the experiment's own default."""
    if value and not Path(value).expanduser().exists():
        raise UserError(f"--config.{path}={value} does not exist: use the path of a file or folder, or '' for none.")
    return value


def allocator(path: str, value: Any) -> str:
    """The name of an allocator, or the path of a shared library, which is looked for when processes start."""
    text = str(value).strip()
    return text if "/" in text else _legal(path, text, (allocators.SYSTEM, allocators.ARENAS, *allocators.LIBRARIES))


def as_is(_: str, value: Any) -> Any:
    """The value, unparsed, for fields that are parsed where they are used."""
    return value


def power_limit(path: str, value: Any) -> str:
    power_limits.parse(str(value))
    return str(value)


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
    """The value. Raises UserError unless it is one of `legal`."""
    if value not in legal:
        raise UserError(f"--config.{path}={value} is unknown: {did_you_mean(value, filter(None, legal))}")
    return value


def overlay(path: str, value: str) -> str:
    published.overlaid(value)
    return value


def batch_sizes(path: str, value: Any) -> tuple[int, ...]:
    """Batch sizes: "8,32,128" -> (8, 32, 128). Raises UserError."""
    words = [word.strip() for word in str(value).split(",")]
    sizes = [int(word) if word.isdecimal() else 0 for word in words]
    if min(sizes) < 1 or len(set(sizes)) < len(sizes):
        raise UserError(f"--config.{path}={value} is not a list of different batch sizes: use 8,32,128, for example.")
    return tuple(sorted(sizes))


def factors(path: str, value: Any) -> tuple[float, ...]:
    """A grid of factors: "0.5,1,2" -> (0.5, 1.0, 2.0). Raises UserError."""
    try:
        found = sorted({float(word) for word in str(value).split(",")})
    except ValueError:
        found = []
    if len(found) < 2 or not 0 < found[0] <= found[-1] < math.inf:
        raise UserError(f"--config.{path}={value} is not a grid of factors: use 0.5,1,2, for example.")
    return tuple(found)


def share(path: str, value: float) -> float:
    if not 0 <= value <= 1:
        raise UserError(f"--config.{path}={value} is not an accuracy: use 0.97, or 0 for each model's own target.")
    return float(value)


def epochs(path: str, value: float) -> float:
    """The number of epochs. Raises UserError for a negative or infinite one."""
    if not 0 <= value < math.inf:
        raise UserError(f"--config.{path}={value} is not a number of epochs: use 2, or 0 for none.")
    return float(value)


def names(path: str, value: Any) -> tuple[str, ...]:
    """Names or paths of experiments without duplicates. Raises UserError if there is none."""
    found = tuple(dict.fromkeys(word.strip() for word in str(value).split(",") if word.strip()))
    if not found:
        raise UserError(f"--config.{path}={value} names no model: use mlp,cnn, for example.")
    return found
