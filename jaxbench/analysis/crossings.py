# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The size from which one implementation is faster than another, and the size at which throughput replaces latency."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from jaxbench.analysis import paired_ratio
from jaxbench.analysis.case_rows import CaseRow
from jaxbench.analysis.intervals import Estimate, estimate
from jaxbench.analysis.quantities import scaled, times

VIEWS = ("curves", "versus")  # the views that compare implementations over sizes
RISING = 1.1  # above this ratio between the rates of the two largest sizes, the throughput has not levelled off


@dataclass(frozen=True, kw_only=True)
class Crossing:
    """Which of two series is faster at all sizes from some size on. "Faster" means that the interval excludes 1.

    Attributes:
      slower, faster: labels of the series at large sizes, "jit on gpu". If the largest size is inconclusive, they are
        in the order of the rows, and `from_` is None.
      from_: the smallest measured size from which `faster` is faster at every common size.
      below: the largest size below `from_` at which `slower` is faster, or None. The crossing is between the two.
      sizes: the common sizes, ascending. winners: the faster label at each size, or "" if inconclusive.
      advantage: time of `slower` over that of `faster` at the largest size.
    """

    op: str
    dtype: str
    slower: str
    faster: str
    below: int | None
    from_: int | None
    sizes: tuple[int, ...]
    winners: tuple[str, ...]
    advantage: Estimate

    @property
    def largest(self) -> int:
        return self.sizes[-1]

    @property
    def sentence(self) -> str:
        return f"{self.op} {self.dtype}: {self._clause()}."

    def _clause(self) -> str:
        slower, faster, largest = self.slower, self.faster, f"{self.largest:,} elements"
        if self.from_ is None:
            ratio = f" (ratio {times(self.advantage)})" if self.advantage.known else ""
            seen = "".join(f"; {name} is faster at {self._won(name)}" for name in (slower, faster) if self._won(name))
            return f"{slower} vs {faster} at {largest}: inconclusive{ratio}{seen}"
        gain = f"{times(self.advantage)} at {largest}"
        if self.below is not None:
            return f"{faster} overtakes {slower} between {self.below:,} and {self.from_:,} elements ({gain})"
        first = self.sizes[0]
        if self.from_ > first:
            return f"{faster} is faster than {slower} from {self.from_:,} elements on ({gain}); inconclusive below"
        every = f"at every common size from {first:,} elements on" if len(self.sizes) > 1 else "at the only common size"
        return f"{slower} is never faster than {faster} up to {largest}: {faster} is faster {every} ({gain})"

    def _won(self, name: str) -> str:
        """The sizes at which `name` is faster, as text; "" for none."""
        sizes = [f"{size:,}" for size, winner in zip(self.sizes, self.winners, strict=True) if winner == name]
        shown = ", ".join(sizes) if len(sizes) <= 3 else f"{sizes[0]} .. {sizes[-1]}"
        return f"{shown} elements" if sizes else ""


@dataclass(frozen=True, kw_only=True)
class HalfPerformance:
    """The size at which a series reaches half of its best throughput (n_1/2 of Hockney and Jesshope 1981).

    Attributes:
      elements: interpolated between sizes, in logarithms of both axes; the smallest size if it already reaches half.
        The interval covers only the noise of the times: between `below` and `from_` the curve was not measured.
      below, from_: the measured sizes on both sides; `below` is None if the smallest size already reaches half.
      best_per_s: elements per second at `best_elements`.
      rising: the throughput has not levelled off at the largest size, so the true knee is at a larger size.
    """

    op: str
    dtype: str
    series: str
    elements: Estimate
    below: int | None
    from_: int
    best_per_s: Estimate
    best_elements: int
    rising: bool

    @property
    def sentence(self) -> str:
        best = f"{scaled(self.best_per_s.value, 'elements/s')} at {self.best_elements:,} elements"
        text = f"{self.op} {self.dtype}, {self.series}: half of the best throughput ({best}) is reached at"
        if self.below is None:
            return f"{text} the smallest size already, {self.from_:,} elements."
        where = f"about {_round(self.elements.value):,} elements, between {self.below:,} and {self.from_:,}"
        more = "; it still rises at the largest size, so the true knee is larger" if self.rising else ""
        return f"{text} {where}: latency-bound below, throughput-bound above{more}."


def series(rows: list[CaseRow]) -> dict[tuple[str, str], dict[str, list[CaseRow]]]:
    """{(op, dtype): {label: rows by size}} of the rows that may support a headline.

    A label has only the words that distinguish the series of the run: "jit", "jit on gpu", "jit on 1 core".
    """
    usable = [row for row in rows if row.headline and row.point.elements and row.timing.step_s.known]
    platforms = {row.point.platform for row in usable}
    cores = {row.point.cores for row in usable if row.point.platform == "cpu"}
    families: dict[tuple[str, str], dict[str, list[CaseRow]]] = {}
    for row in sorted(usable, key=_elements):
        p = row.point
        label = p.impl + (f" on {p.platform}" if len(platforms) > 1 else "")
        if len(cores) > 1 and p.platform == "cpu":
            label += f" on {p.cores} core{'s' * (p.cores != 1)}"
        families.setdefault((p.op, p.dtype), {}).setdefault(label, []).append(row)
    return families


def find(rows: list[CaseRow]) -> list[Crossing]:
    """One crossing for each pair of series of the same operation and dtype that have a size in common."""
    return [
        crossing
        for (op, dtype), family in series(rows).items()
        for one, other in itertools.combinations(family, 2)
        if (crossing := _crossing(op, dtype, (one, other), family)) is not None
    ]


def _crossing(op: str, dtype: str, names: tuple[str, str], family: dict[str, list[CaseRow]]) -> Crossing | None:
    one, other = ({_elements(row): row for row in family[name]} for name in names)
    sizes = sorted(one.keys() & other.keys())
    if not sizes:
        return None
    ratios = {size: paired_ratio.ratio(one[size], other[size]) for size in sizes}
    winners = [_winner(ratios[size], names) for size in sizes]
    last, ratio = winners[-1], ratios[sizes[-1]]
    faster = last or names[1]
    slower = names[0] if faster == names[1] else names[1]
    from_, below = None, None
    if last:
        index = len(sizes) - 1
        while index > 0 and winners[index - 1] == last:
            index -= 1
        from_ = sizes[index]
        below = max((s for s, w in zip(sizes[:index], winners, strict=False) if w == slower), default=None)
    advantage = ratio if faster == names[1] else ratio.under(1.0)
    return Crossing(
        op=op, dtype=dtype, slower=slower, faster=faster, below=below, from_=from_, sizes=tuple(sizes),
        winners=tuple(winners), advantage=advantage,
    )  # fmt: skip


def _winner(ratio: Estimate, names: tuple[str, str]) -> str:
    """The name with the shorter time, by the interval of the ratio first / second; "" if inconclusive."""
    if ratio.has_interval and ratio.hi < 1:
        return names[0]
    return names[1] if ratio.has_interval and ratio.lo > 1 else ""


def _elements(row: CaseRow) -> int:
    return row.point.elements or 0


def knees(rows: list[CaseRow]) -> list[HalfPerformance]:
    """One knee for each series of at least three sizes."""
    return [
        _knee(op, dtype, label, by_size)
        for (op, dtype), family in series(rows).items()
        for label, by_size in family.items()
        if len(by_size) >= 3
    ]


def _knee(op: str, dtype: str, label: str, rows: list[CaseRow]) -> HalfPerformance:
    sizes = np.array([_elements(row) for row in rows], dtype=np.float64)
    rates = sizes / np.array([row.timing.step_s.value for row in rows])
    draws = sizes / np.stack([row.timing.step_draws for row in rows], axis=1)
    first, value = _half(sizes, rates[None])
    rounds, best = min(row.timing.rounds for row in rows), int(rates.argmax())
    index = int(first[0])
    knee = estimate(float(value[0]), _half(sizes, draws[np.isfinite(draws).all(axis=1)])[1], rounds=rounds)
    return HalfPerformance(
        op=op, dtype=dtype, series=label, elements=knee, below=int(sizes[index - 1]) if index else None,
        from_=int(sizes[index]), best_per_s=rows[best].timing.step_s.under(float(sizes[best])),
        best_elements=int(sizes[best]), rising=best == len(sizes) - 1 and bool(rates[-1] > RISING * rates[-2]),
    )  # fmt: skip


def _half(sizes: np.ndarray, rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first size at which each bootstrap sample reaches half of its best rate.

    Args:
      sizes: (sizes,) ascending. rates: (draws, sizes), all > 0.

    Returns:
      (draws,) the index of that size, and (draws,) the size interpolated between its predecessor and it, in logarithms.
    """
    half = rates.max(axis=1) / 2
    index = (rates >= half[:, None]).argmax(axis=1)
    draws, before = np.arange(len(rates)), np.maximum(index - 1, 0)
    low, high = np.log(rates[draws, before]), np.log(rates[draws, index])
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(index > 0, (np.log(half) - low) / (high - low), 0.0)
    left, right = np.log(sizes[before]), np.log(sizes[index])
    return index, np.exp(left + share * (right - left))


def _round(value: float) -> int:
    """Rounded to two digits, because the curve between two sizes is not known better."""
    return int(float(f"{value:.2g}")) if math.isfinite(value) and value >= 10 else math.ceil(value)


def sentences(crossings: list[Crossing], knees: list[HalfPerformance]) -> list[str]:
    """The report's sentences about sizes, crossings first."""
    return [c.sentence for c in crossings] + [k.sentence for k in knees]
