# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Everything that a figure about how a model is spread over devices may draw from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxbench.analysis.scaling import Row


@dataclass(frozen=True, kw_only=True)
class SpreadMaterial:
    """A run's points as the figures see them. longest: what `longest.json` holds, None where the run has none."""

    experiment: str
    rows: Sequence[Row]
    longest: dict[str, Any] | None = None

    @property
    def measured(self) -> list[Row]:
        """Rows that were prepared: their memory, bytes and schedule are known, whether they were timed or not."""
        return [row for row in self.rows if row.point.record is not None]


def fact(row: Row, name: str) -> float:
    """One of the record's facts; NaN: it was not measured."""
    return float(row.point.record.facts.get(name, math.nan)) if row.point.record is not None else math.nan


def sent_bytes(row: Row) -> float:
    """What one device receives in a step: the results of all collectives; NaN: unknown."""
    if row.point.record is None:
        return math.nan
    return float(sum(each.bytes for each in row.point.record.passport.collectives))
