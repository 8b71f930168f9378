# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Everything that a figure of a run of cases may draw from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxbench.analysis.alpha_beta import Fit
from jaxbench.analysis.case_rows import CaseRow
from jaxbench.analysis.crossings import Crossing, Knee
from jaxbench.report.figures.spots import Spot


@dataclass(frozen=True, kw_only=True)
class Material:
    """A run's conclusions, as the figures see them. card: the machine's, or one made of this run; None: neither.

    others: spots of earlier runs on the same machine, for the roofline.
    """

    experiment: str
    rows: Sequence[CaseRow]
    fits: Sequence[Fit] = ()
    crossings: Sequence[Crossing] = ()
    knees: Sequence[Knee] = ()
    card: dict[str, Any] | None = None
    manifest: dict[str, Any] = field(default_factory=dict)
    others: Sequence[Spot] = ()
    unit: str = "elements"
