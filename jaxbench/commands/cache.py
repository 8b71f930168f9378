# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench cache`: the compiled programs that outlive a run."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from absl import flags
from rich.console import Console
from rich.table import Table
from rich.text import Text

from jaxbench.verbs import FLAGS, Verb

if TYPE_CHECKING:
    from jaxbench.machine.program_cache import Part

flags.DEFINE_bool("clear", False, "cache: remove all compiled programs.")

VERB = Verb(
    usage="cache",
    help="the compiled programs that are kept for the next run; --clear removes them",
    group="about",
    flags=("clear",),
    examples=("cache", "cache --clear", "cache && jaxbench run cnn"),
)


def main(arguments: list[str], workdir: Path, console: Console) -> int:
    from jaxbench.machine import program_cache

    root, limit = program_cache.folder(), program_cache.limit_bytes()
    if FLAGS.clear:
        programs, bytes_ = program_cache.clear(root)
        console.print(Text(f"Removed {programs} compiled programs, {_in_mb(bytes_)} MB, from {root}"), soft_wrap=True)
        return 0
    show(program_cache.parts(root), root, limit, console)
    return 0


def show(parts: Sequence[Part], root: Path, limit: float, console: Console) -> None:
    """Prints the folder of all parts and each part. limit: bytes of all parts."""
    programs, total = sum(part.programs for part in parts), sum(part.bytes for part in parts)
    most = "without a limit" if math.isinf(limit) else f"of at most {limit / 1e9:.3g} GB"
    console.print(Text(f"{programs} compiled programs, {_in_mb(total)} MB {most}, in {root}"), soft_wrap=True)
    if not parts:
        return
    table = Table("part", "device", "jaxlib", "set", "programs", "MB", "last used")
    for part in parts:
        used = datetime.datetime.fromtimestamp(part.used, datetime.UTC).strftime("%Y-%m-%d") if part.used else ""
        facts = [part.facts.get(name, "") for name in ("device_kind", "jaxlib", "set")]
        table.add_row(*map(Text, (part.name, *facts, str(part.programs), _in_mb(part.bytes), used)))
    console.print(table)


def _in_mb(bytes_: int) -> str:
    return f"{bytes_ / 1e6:.1f}"
