# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What the rows of a run with measure.rounds=auto claim, and how widely: docs/metrics, Rounds.

While it measures, `allocation` asks the same of its times alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jaxbench.analysis import paired_ratio
from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.scaling import Row
from jaxbench.analysis.timing import explains


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
