# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Splits the time of a call with data on the host: transfer, start and work (docs/metrics, Transfer, start and work).

Three calls are timed in the same rounds. "jit+copies" sends the arguments and fetches the result. "waited" runs the
same program with data on the device. "start" is a nearly empty program with the same arguments. So transfer is the
first minus the second, start is the third, and work is the second minus the third. They add up to the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxbench.analysis import paired_ratio
from jaxbench.analysis.case_rows import CaseRow
from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.quantities import interval, seconds

WHOLE, WAITED, START = "jit+copies", "waited", "start"  # implementations (workloads/kernels/versus.py)
NAMES = ("transfer", "start", "work")


@dataclass(frozen=True, kw_only=True)
class CallSplit:
    """One job of one size on one platform and core count.

    Attributes:
      whole: seconds of a call with copies. parts: seconds of each of NAMES; they add up to `whole`.
      largest: whether this is the largest size of the job.
    """

    op: str
    rows: int
    where: str
    largest: bool
    whole: Estimate
    parts: tuple[Estimate, ...]

    @property
    def told(self) -> tuple[bool, ...]:
        """For each part, whether its whole interval is above 0."""
        return tuple(part.has_interval and part.lo > 0 for part in self.parts)

    @property
    def sentence(self) -> str:
        words = [_part(*each) for each in zip(NAMES, self.parts, self.told, strict=True)]
        rows = f"{self.rows:,} row{'s' * (self.rows != 1)}"
        return f"{self.op}, {rows} on {self.where}: {interval(self.whole, seconds)} = {' + '.join(words)}."


def _shape(rows: int) -> str:
    """The name that `workloads/kernels/versus.py` gives to the size."""
    return f"{rows} row{'s' * (rows != 1)}"


def _part(name: str, value: Estimate, told: bool) -> str:
    if told:
        return f"{name} {interval(value, seconds)}"
    if not value.has_interval:
        return f"{name} cannot tell (no interval)"
    return f"{name} cannot tell ({_signed(value.lo)} .. {_signed(value.hi)})"


def _signed(value: float) -> str:
    return f"-{seconds(-value)}" if value < 0 else seconds(value)


def find(rows: Sequence[CaseRow]) -> list[CallSplit]:
    """The splits of the smallest and the largest size of each job. Only rows that may support a headline count."""
    good = {_key(row): row for row in rows if row.headline and row.timing.step_s.known}
    wholes = [row for row in good.values() if row.point.impl == WHOLE and row.point.elements]
    found = []
    for row in wholes:
        size, place = row.point.elements or 0, _place(row)
        sizes = [other.point.elements or 0 for other in wholes if other.point.op == row.point.op]
        waited, start = (good.get((*place, _shape(size), impl)) for impl in (WAITED, START))
        if size in (min(sizes), max(sizes)) and waited is not None and start is not None:
            found.append(_split(row, waited, start, largest=size == max(sizes)))
    return found


def _place(row: CaseRow) -> tuple[object, ...]:
    p = row.point
    return p.op, p.dtype, p.platform, p.cores


def _key(row: CaseRow) -> tuple[object, ...]:
    return (*_place(row), row.point.shape or row.point.elements, row.point.impl)


def _split(whole: CaseRow, waited: CaseRow, start: CaseRow, *, largest: bool) -> CallSplit:
    times = paired_ratio.times([whole, waited, start])
    p, at, draws = whole.point, times.step_s, times.draws
    parts = ((at[0] - at[1], draws[0] - draws[1]), (at[2], draws[2]), (at[1] - at[2], draws[1] - draws[2]))
    cores = f"{p.cores} core{'s' * (p.cores != 1)}"
    return CallSplit(
        op=p.op, rows=p.elements or 0, where=cores if p.platform == "cpu" else p.platform, largest=largest,
        whole=times.estimate(float(at[0]), draws[0]),
        parts=tuple(times.estimate(float(value), drawn) for value, drawn in parts),
    )  # fmt: skip
