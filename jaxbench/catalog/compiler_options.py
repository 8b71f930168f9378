# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Named sets of XLA's compiler options, as published by others, each with its platform and its source.

``compiler_options.csv`` has one row per set. Its options are written as in XLA_FLAGS, without the leading dashes.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from jaxbench.catalog import rows


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
    fields = ("name", "platform", "options", "source")
    return {row["name"]: OptionSet(**{field: row[field] for field in fields}) for row in rows("compiler_options.csv")}


def names(platform: str) -> list[str]:
    """The sets of one platform, in the order of the catalogue."""
    return [each.name for each in sets().values() if each.platform == platform]


def platform_of(option: str) -> str | None:
    """The only platform with a compiler that reads an option, according to its name; None if it may be any."""
    found = re.match(r"xla_(cpu|gpu|tpu)_", option)  # others, such as xla_backend_optimization_level, may be of any
    return found and found[1]
