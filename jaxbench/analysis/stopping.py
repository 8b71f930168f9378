# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The widths of the intervals that decide when a run with measure.rounds=auto stops: docs/metrics, Rounds.

This is for finished rows. During the run, `allocation` computes the same from the times alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jaxbench.analysis import paired_ratio
from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.scaling import Row
from jaxbench.analysis.timing import explains


def half_widths(rows: Sequence[Row]) -> Iterable[tuple[float, str]]:
    """(half width, point) for each claim of the run.

    The claims are the efficiencies. Without any, as on one device, they are the ratios of each step time to the first
    point's. A single point claims its step time.
    """
    claims = [row for row in rows if claimed(row)]
    found = [(row, row.efficiency) for row in claims if row.base is not None and row.base is not row.point]
    if not found and claims:
        first, *others = claims
        ratios = [(row, paired_ratio.ratio(row, first)) for row in others] or [(first, first.timing.step_s)]
        found = [(row, ratio.times(1 / ratio.value)) for row, ratio in ratios if ratio.known]
    return [(half_width(estimate), row.point.point) for row, estimate in found if estimate.has_interval]


def claimed(row: Row) -> bool:
    """Whether the report may make a claim about this point, so that its interval should be narrow."""
    return row.timing.step_s.known and not (row.point.oversubscribed or row.gate == "refused" or explains(row.point))


def half_width(estimate: Estimate) -> float:
    return (estimate.hi - estimate.lo) / 2
