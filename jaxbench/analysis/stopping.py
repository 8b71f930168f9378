# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""When a run with measure.rounds=auto has measured enough: docs/METRICS.md, Rounds.

The runner asks after each set of processes from the fifth on. The answer follows from the records alone, so a run that
was killed and continued ends where it would have ended. What stopping by the data does to an interval's coverage is
corrected in `intervals.LOOKED`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from jaxbench.analysis import paired_ratio, points, scaling, spread
from jaxbench.analysis.allocation import HALF_WIDTH
from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.records_by_point import elapsed_s
from jaxbench.analysis.scaling import Row
from jaxbench.analysis.timing import explains
from jaxbench.records.schema import Record, RoundRecord
from jaxbench.records.store import RunFolder


def look(run: RunFolder) -> dict[str, Any]:
    """Whether the rounds that the run's plan asks for so far are enough. They are all measured.

    Returns:
      rounds: how many there are. ended: "precise" | "budget" | "processes" (no more are allowed) | "nothing" (no point
        has an interval, because all failed) | "" to go on.
      half_width, point: of the widest interval; None and "" if nothing has one.
      spent_s: seconds from the first round to the last, the start of later processes included.
    """
    plan = run.manifest()["plan"]
    rounds, about, records = int(plan["rounds"]), plan["auto"], run.records()
    rows = scaling.analyse(points.load(run), config=run.config(), spread=spread.read(run.path))
    widest, point = max(half_widths(rows), default=(math.nan, ""))
    spent = spent_s(records, rounds)
    another = spent - spent_s(records, rounds - int(about["rounds_each"]))
    ended = ""
    if not point:
        ended = "nothing"
    elif widest <= HALF_WIDTH:
        ended = "precise"
    elif rounds >= int(about["most_rounds"]):
        ended = "processes"
    elif spent + another > float(about["budget_s"]):
        ended = "budget"
    known = round(widest, 5) if point else None
    return {"rounds": rounds, "ended": ended, "half_width": known, "point": point, "spent_s": round(spent, 3)}


def half_widths(rows: Sequence[Row]) -> Iterable[tuple[float, str]]:
    """(half width, point) of the efficiency of each point that claims one. Where no point does, as on one device: of
    the ratio of each point's step time to that of the first, or of the step time of a single point."""
    claims = [row for row in rows if claimed(row)]
    found = [(row, row.efficiency) for row in claims if row.base is not None and row.base is not row.point]
    if not found and claims:
        first, *others = claims
        ratios = [(row, paired_ratio.ratio(row, first)) for row in others] or [(first, first.timing.step_s)]
        found = [(row, ratio.times(1 / ratio.value)) for row, ratio in ratios if ratio.known]
    return [(half_width(estimate), row.point.point) for row, estimate in found if estimate.has_interval]


def claimed(row: Row) -> bool:
    """Whether a report may claim something of this point, so that its interval should be narrow."""
    return row.timing.step_s.known and not (row.point.oversubscribed or row.gate == "refused" or explains(row.point))


def half_width(estimate: Estimate) -> float:
    return (estimate.hi - estimate.lo) / 2


def spent_s(records: Iterable[Record], rounds: int) -> float:
    """Seconds from the start of the first round to the end of the last of the first `rounds`, each session by
    itself."""
    return elapsed_s(each for each in records if isinstance(each, RoundRecord) and each.round < rounds)
