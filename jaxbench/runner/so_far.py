# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The step times of a run that is still being measured, for the terminal and the log until the report is made."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from jaxbench.digits import digits
from jaxbench.records.schema import RoundRecord

NOTE = (
    "Median over the rounds so far, with its 95 % confidence interval as if rounds were independent (<6 rounds: lowest "
    "and highest). The report's intervals include process-to-process variation."
)
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (0.0, "ns"))


MANY = 10  # more points than these have a line in a log for each group


def group_of(point: str) -> str:
    """Kernel and type, or strategy and scaling: "triad/float32/65536/jit" -> "triad/float32"."""
    return "/".join(point.split("/")[:2])


@dataclass
class SoFar:
    """By point, the median time per step of each round in seconds. A point that is only prepared has none."""

    rounds: dict[str, list[float]] = field(default_factory=dict)
    newest: str = ""  # the point that was touched last

    def prepared(self, point: str) -> None:
        self.rounds.setdefault(point, [])
        self.newest = point

    def measured(self, record: RoundRecord) -> None:
        self.prepared(record.point)
        self.rounds[record.point].append(statistics.median(record.block_s) / record.steps)

    def drop(self, point: str) -> None:
        """A point that failed is not shown."""
        self.rounds.pop(point, None)

    def shown(self, height: int) -> Iterator[RenderableType]:
        """The table of points and, below it, an explanation of its numbers."""
        if self.rounds:
            yield self._table(height)
        if any(self.rounds.values()):
            yield Text(NOTE, style="dim")

    def _table(self, height: int) -> Table:
        """A line for each point; if there are more than `height` points, those around the newest one."""
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for name, justify in (("point", "left"), ("rounds", "right"), ("per step", "right"), ("interval", "left")):
            table.add_column(name, justify=justify, no_wrap=True)  # type: ignore[arg-type]
        points = list(self.rounds)
        middle = points.index(self.newest) if self.newest in points else 0
        first = max(0, min(middle - height // 2, len(points) - height))
        for point in points[first : first + height]:
            table.add_row(*(Text(cell) for cell in (point, *self._cells(point))))
        if len(points) > height:
            table.add_row(Text(f"{height} of {len(points)} points are shown", style="dim"))
        return table

    def sentences(self) -> list[str]:
        """One sentence for each measured point or, if there are more than MANY, one for each group."""
        lines = []
        if len(self.rounds) > MANY:
            measured = sorted((point for point, rounds in self.rounds.items() if rounds), key=group_of)
            for group, points in itertools.groupby(measured, group_of):
                ordered = sorted(points, key=lambda point: statistics.median(self.rounds[point]))
                low, high = (self._cells(ordered[at])[1] for at in (0, -1))
                lines.append(f"{group}: {len(ordered)} points, {low} to {high} per step")
            return lines
        for point, rounds in self.rounds.items():
            if rounds:
                count, median, between = self._cells(point)
                lines.append(f"{point}: {median} per step {between} in {count} round{'s' if len(rounds) > 1 else ''}")
        return lines

    def _cells(self, point: str) -> tuple[str, str, str]:
        """(the number of rounds, their median, its confidence interval in the same unit)."""
        rounds = self.rounds[point]
        if not rounds:
            return "0", "prepared", ""
        low, high = interval(rounds)
        median = statistics.median(rounds)
        scale, unit = next((size or 1e-9, name) for size, name in _UNITS if median >= size)
        return str(len(rounds)), f"{digits(median / scale)} {unit}", f"[{digits(low / scale)}, {digits(high / scale)}]"


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % confidence interval of the median of independent values of any distribution, by order statistics.

    It goes from the k-th lowest to the k-th highest, with the largest k for which P(B < k) <= 2.5 %, where B is
    binomial (n, 1/2). With fewer than six values there is no such k. Then the result is their range, which covers the
    median less often.
    """
    ordered, count = sorted(values), len(values)
    k, below = 0, 1 / 2**count  # below: P(B <= k)
    while below <= 0.025:
        k += 1
        below += math.comb(count, k) / 2**count
    k = max(k, 1)
    return ordered[k - 1], ordered[count - k]
