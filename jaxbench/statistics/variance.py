# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Run-to-run variance: how much two processes of one program differ, and two sessions on different days.

One process cannot show the first, and one run cannot show the second. `jaxbench calibrate` measures both; otherwise
both are assumed. The result is copied into each run folder (`NAME`), so the report needs no other file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jaxbench.core.store import read_json
from jaxbench.records.documents import NonNegative, decode, unsealed

NAME = "spread.json"  # in a run folder
CALIBRATED, ASSUMED_KIND = "calibrated", "assumed"


@dataclass(frozen=True, kw_only=True)
class RunVariance:
    """Standard deviations of logarithms of times, with their degrees of freedom.

    Attributes:
      sd, df: between processes of one program in one session.
      session_sd, session_df: between sessions, such as two days. The deviation is shared by all points of a session.
      kind, session_kind: CALIBRATED or ASSUMED_KIND. source: the origin of all four, as a clause.
    """

    sd: NonNegative
    df: NonNegative
    session_sd: NonNegative = 0.03
    session_df: NonNegative = 1e6
    kind: str = CALIBRATED
    session_kind: str = ASSUMED_KIND
    source: str


# The assumption may be wrong. It has few degrees of freedom, so that intervals from one process still cover the truth
# if processes differ by anything from 0 to 5 % (docs/STATISTICS.md has the table).
ASSUMED = RunVariance(
    sd=0.03, df=2.5, kind=ASSUMED_KIND, source="assumed, not measured: jaxbench calibrate measures it"
)


def read(folder: Path) -> RunVariance:
    """The spread that was known when the run was measured, or ASSUMED. Raises UserError for a damaged file."""
    path = folder / NAME
    if not path.exists():
        return ASSUMED
    return read_json(path, lambda content: decode(RunVariance, unsealed(content)), "delete it to assume the spread.")


def autocorrelation(values: np.ndarray) -> float:
    """The correlation of neighbours (lag 1); 0 for a constant."""
    apart = values - values.mean()
    total = float(apart @ apart)
    return float(apart[1:] @ apart[:-1]) / total if total > 0 else 0.0
