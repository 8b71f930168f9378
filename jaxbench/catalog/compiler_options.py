# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Named sets of XLA's compiler options, as published by others, each with its platform and its source.

``compiler_options.csv`` has one row per set. Its options are written as in XLA_FLAGS, without the leading dashes.
"""

from __future__ import annotations

import csv
import functools
import re
from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True, kw_only=True)
class OptionSet:
    """One set. platform: cpu | gpu | tpu. options: "xla_a=1 xla_b=true". source: its publisher."""

    name: str
    platform: str
    options: str
    source: str


@functools.cache
def sets() -> dict[str, OptionSet]:
    """Every set by its name."""
    text = resources.files("jaxbench.catalog").joinpath("compiler_options.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    fields = ("name", "platform", "options", "source")
    return {row["name"]: OptionSet(**{field: row[field] for field in fields}) for row in rows}


def names(platform: str) -> list[str]:
    """The sets of one platform, in the order of the catalogue."""
    return [each.name for each in sets().values() if each.platform == platform]


def platform_of(option: str) -> str | None:
    """The only platform with a compiler that reads an option, according to its name; None if it may be any."""
    found = re.match(r"xla_(cpu|gpu|tpu)_", option)
    return found and found[1]
