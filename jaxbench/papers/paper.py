# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A paper as data: its citation, the runs that test it, its claims and its figure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from jaxbench.analysis.scaling import Row
from jaxbench.papers.evidence import Evidence
from jaxbench.report.drawing import marks
from jaxbench.report.drawing.marks import Mark
from jaxbench.statistics.bootstrap import Estimate


@dataclass(frozen=True)
class Reading:
    """The result of the runs for a claim. detail: its conditions, as a clause: "2 devices against 1"."""

    value: Estimate
    detail: str = ""


Reader = Callable[[Evidence], Reading]


@dataclass(frozen=True, kw_only=True)
class Run:
    """One command of the suite; its records test a paper.

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
      read: the number from the paper's runs. Raises `evidence.NotTestable`.
      here: what a machine of two cores can show of it.
    """

    name: str
    sentence: str
    source: str
    quantity: str
    low: float = -math.inf
    high: float = math.inf
    read: Reader
    here: str

    @property
    def limit(self) -> str:
        """ "at least 0.9", "between 0.8 and 1.25"."""
        if math.isfinite(self.low) and math.isfinite(self.high):
            return f"{self.low:g}" if self.low == self.high else f"between {self.low:g} and {self.high:g}"
        return f"at least {self.low:g}" if math.isfinite(self.low) else f"at most {self.high:g}"


@dataclass(frozen=True, kw_only=True)
class PublishedSeries:
    """A series of the paper: from the catalogue, drawn dotted and grey, or a formula, drawn dashed without marks."""

    label: str
    x: Sequence[float] | np.ndarray
    y: Sequence[float] | np.ndarray
    formula: bool = False


@dataclass(frozen=True, kw_only=True)
class Ours:
    """A series that was measured here. crosses: what its crossed-out marks mean, if not what they mean elsewhere."""

    label: str
    marks: Sequence[Mark]
    crosses: str = ""


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One panel of the paper's figure, with the paper's axes.

    log: which axes are logarithmic: "", "x", "y" or "xy". base: of a logarithmic x axis. ours: may raise `NotTestable`,
    and then the panel says why it has no series of this machine. laws: the paper's formulas with the parameters of this
    machine, drawn dashed. top: where the y axis ends at least, 0: the data. names: of the places 0, 1, .. along x, for
    an axis without numbers; its marks are not joined.
    """

    title: str
    x: str
    y: str
    log: str = ""
    base: int = 2
    top: float = 0.0
    names: tuple[str, ...] = ()
    published: Callable[[], Sequence[PublishedSeries]] = tuple
    ours: Callable[[Evidence], Sequence[Ours]]
    laws: Callable[[Evidence], Sequence[PublishedSeries]] = lambda found: ()

    @property
    def relative(self) -> bool:
        """Whether y is a ratio, which has the same ticks as a count of devices along x."""
        return self.y.startswith(("speed-up", "relative to"))


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
    tables: tuple[str, ...]
    runs: tuple[Run, ...]
    claims: tuple[Claim, ...]
    panels: tuple[Panel, ...]

    @property
    def minutes(self) -> float:
        """Expected on two cores, at the default size."""
        return sum(run.minutes for run in self.runs)


def curve(rows: Sequence[Row], label: str, value: Callable[[Row], Estimate], *, scaling: str = "weak") -> Ours:
    """A number of the rows of one kind of scaling over their devices."""
    rows = [row for row in rows if row.point.scaling == scaling]
    return Ours(label=label, marks=marks.of(rows, lambda row: row.point.devices, value))


def exact(value: float) -> Estimate:
    """A number without noise, which is its own interval."""
    return Estimate(value=value, lo=value, hi=value)
