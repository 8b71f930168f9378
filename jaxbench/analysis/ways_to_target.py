# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How fast each way trains to a target: NumPy and XLA by platform and cores (docs/metrics, Ways to a target)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxbench.analysis.case_rows import CaseRow
from jaxbench.analysis.intervals import UNKNOWN, Estimate
from jaxbench.analysis.quantities import interval, seconds, times
from jaxbench.analysis.targets import over_seeds

BASE = ("numpy", "cpu", 1)  # (implementation, platform, cores) of the way that the others are compared with
STEPS = "steps"  # a key of the outcome of a training


@dataclass(frozen=True, kw_only=True)
class Way:
    """The trainings of one job with one implementation on one platform and core count.

    Attributes:
      seeds: the number of measured seeds. reached: how many of them reached the target.
      time, steps: the geometric means of seconds and steps over seeds. If a seed did not reach the target, they are
        lower limits without an interval.
      speedup: the time of BASE over `time`, computed seed by seed; UNKNOWN for BASE itself, and if a seed did not reach
        the target.
    """

    job: str
    impl: str
    where: str
    seeds: int
    reached: int
    time: Estimate
    steps: Estimate
    speedup: Estimate

    @property
    def name(self) -> str:
        return f"{self.impl} on {self.where}"

    @property
    def sentence(self) -> str:
        least = "" if self.reached == self.seeds else "at least "
        missed = f"; {self.seeds - self.reached} of them did not reach it" if least else ""
        faster = f"; {times(self.speedup)} as fast as NumPy on one core" if self.speedup.known else ""
        return (
            f"{self.job}, {self.name}: {least}{interval(self.time, seconds)} and "
            f"{interval(self.steps, lambda value: f'{value:.3g}')} steps, over {self.seeds} "
            f"seed{'s' * (self.seeds != 1)}{missed}{faster}."
        )


def find(rows: Sequence[CaseRow]) -> list[Way]:
    """One for each job, implementation, platform and core count with a measured training, in the order of the rows."""
    groups: dict[tuple[str, tuple[object, ...]], list[CaseRow]] = {}
    for row in rows:
        if row.timing.step_s.known and row.point.record is not None and STEPS in row.point.record.outcome:
            way = (row.point.impl, row.point.platform, row.point.cores if row.point.platform == "cpu" else None)
            groups.setdefault((row.point.op, way), []).append(row)
    return [_way(members, groups.get((job, BASE), []) if way != BASE else []) for (job, way), members in groups.items()]


def _way(rows: Sequence[CaseRow], base: Sequence[CaseRow]) -> Way:
    point = rows[0].point
    missed = sum(row.point.check_ok is False for row in rows)
    found, steps = (over_seeds(values) for values in ((_time(row) for row in rows), map(_steps, rows)))
    cores = f"{point.cores} core{'s' * (point.cores != 1)}"
    bases = {row.point.shape: row for row in base if row.point.check_ok is not False}
    pairs = [(bases[row.point.shape], row) for row in rows if row.point.shape in bases]
    whole = pairs and not missed and len(bases) == len(base)
    return Way(
        job=point.op, impl=point.impl, where=cores if point.platform == "cpu" else point.platform, seeds=len(rows),
        reached=len(rows) - missed, time=found.alone() if missed else found, steps=steps.alone() if missed else steps,
        speedup=over_seeds(_time(one) / _time(other) for one, other in pairs) if whole else UNKNOWN,
    )  # fmt: skip


def _time(row: CaseRow) -> float:
    return row.timing.step_s.value


def _steps(row: CaseRow) -> float:
    assert row.point.record is not None
    return row.point.record.outcome[STEPS]
