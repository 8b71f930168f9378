# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A paper: its runs, its claims and the panels of its figure, from `library/ID.toml`.

A claim names a function of `readers` for its number, and a panel names functions of `series` for its curves.
"""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxbench.errors import UserError, did_you_mean

LIBRARY = Path(__file__).parent / "library"
Call = dict[str, Any]  # {"function": its name, **arguments}


@dataclass(frozen=True, kw_only=True)
class Run:
    """One command of the suite. Its records test a paper.

    Attributes:
      name: of its folder below the paper's.
      minutes: expected on two cores, at the default size.
      words: the arguments of `jaxbench`, without the folder.
      paper: the words at the paper's own size, for --preset=paper; (): the same words.
    """

    name: str
    minutes: float
    words: tuple[str, ...]
    paper: tuple[str, ...] = ()

    def at(self, preset: str) -> tuple[str, ...]:
        """The words at a preset, "auto" or "paper"."""
        return self.paper if preset == "paper" and self.paper else self.words


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One sentence of a paper with its quantity.

    Attributes:
      name: short, unique within the paper.
      sentence: the paper's statement, in our words. source: where it is in the paper.
      quantity: the number that is read here, with its unit.
      low, high: the claim holds where the quantity lies within them.
      read: the function of `readers` that takes the number from the paper's runs.
      detail: the conditions of the number, a template for the fields of the reading: "{devices} devices".
      here: what a machine of two cores can show of it.
    """

    name: str
    sentence: str
    source: str
    quantity: str
    low: float = -math.inf
    high: float = math.inf
    read: Call
    detail: str = ""
    here: str

    @property
    def limit(self) -> str:
        """ "at least 0.9", "between 0.8 and 1.25"."""
        if math.isfinite(self.low) and math.isfinite(self.high):
            return f"{self.low:g}" if self.low == self.high else f"between {self.low:g} and {self.high:g}"
        return f"at least {self.low:g}" if math.isfinite(self.low) else f"at most {self.high:g}"


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One panel of the paper's figure, with the paper's axes.

    Attributes:
      log: which axes are logarithmic: "", "x", "y" or "xy". base: of a logarithmic x axis.
      top: where the y axis ends at least; 0: at the data.
      names: of the places 0, 1, .. along x, for an axis without numbers. Its marks are not joined.
      published: functions of `series` that need no runs: the paper's own curves and formulas.
      measured: functions of `series` that read the runs.
    """

    title: str
    x: str
    y: str
    log: str = ""
    base: int = 2
    top: float = 0.0
    names: tuple[str, ...] = ()
    published: tuple[Call, ...] = ()
    measured: tuple[Call, ...]


@dataclass(frozen=True, kw_only=True)
class Paper:
    """Attributes:
    id: the name of its file.
    citation: authors, title, year and number, with those of further papers of the same claims.
    title: of page and figure: what is measured, not what the paper claims of it.
    tables: ids of the published series in the catalogue.
    """

    id: str
    citation: str
    title: str
    tables: tuple[str, ...] = ()
    runs: tuple[Run, ...]
    claims: tuple[Claim, ...]
    panels: tuple[Panel, ...]

    @property
    def minutes(self) -> float:
        """Expected on two cores, at the default size."""
        return sum(run.minutes for run in self.runs)


def names() -> list[str]:
    """The ids of all papers, sorted."""
    return sorted(file.stem for file in LIBRARY.glob("*.toml"))


def load(id: str) -> Paper:
    """Raises UserError for an unknown id."""
    if id not in names():
        raise UserError(f"there is no paper '{id}': {did_you_mean(id, names())}")
    table = tomllib.loads((LIBRARY / f"{id}.toml").read_text(encoding="utf-8"))
    for run in table["runs"]:  # commands are text, with line breaks
        run |= {size: tuple(run[size].split()) for size in ("words", "paper") if size in run}
    parts = {"runs": Run, "claims": Claim, "panels": Panel}
    return Paper(id=id, **table | {part: tuple(kind(**each) for each in table[part]) for part, kind in parts.items()})
