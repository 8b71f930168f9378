# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How scratch memory grows with the number of blocks under each policy of recomputation, from ``remat_law.json``.

Keeping everything grows like n, recomputation with a checkpoint every sqrt(n) blocks like sqrt(n) (Chen et al. 2016).
Memory is the compiler's, so that it has no noise; the slope's interval is that of the straight line's misfit.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

from jaxbench.analysis.intervals import UNKNOWN, Estimate
from jaxbench.errors import UserError

NAME = "remat_law.json"


@dataclass(frozen=True, kw_only=True)
class Law:
    """One policy. sizes: (blocks, temp_bytes) by blocks. slope: of log bytes over log blocks; UNKNOWN below 2 sizes."""

    remat: str
    sizes: list[tuple[int, float]]
    slope: Estimate
    intercept: float  # natural logarithm of the bytes of one block, by the line

    @property
    def sentence(self) -> str:
        """The exponent with its interval."""
        blocks = f"{self.sizes[0][0]} to {self.sizes[-1][0]} blocks"
        if not self.slope.known:
            return f"{self.remat}: no exponent from one depth."
        ends = f" [{self.slope.lo:.2f}, {self.slope.hi:.2f}]" if self.slope.has_interval else " (no interval)"
        return f"{self.remat}: scratch memory grows like n^{self.slope.value:.2f}{ends} over {blocks}."


def read(folder: Path) -> list[Law]:
    """One law a policy, in the order of the file; [] if the run has none. Raises UserError when it is damaged."""
    path = folder / NAME
    if not path.is_file():
        return []
    policies: dict[str, dict[int, float]] = {}
    try:
        for row in json.loads(path.read_text())["rows"]:
            if row["temp_bytes"] is not None and float(row["temp_bytes"]) > 0 and int(row["blocks"]) > 0:
                policies.setdefault(str(row["remat"]), {})[int(row["blocks"])] = float(row["temp_bytes"])
    except (KeyError, TypeError, ValueError, UnicodeDecodeError) as error:
        raise UserError(f"'{path}' is damaged ({error!r}): remove it, or measure again.") from error
    return [_fit(name, sorted(sizes.items())) for name, sizes in policies.items()]


def _fit(remat: str, sizes: list[tuple[int, float]]) -> Law:
    """Ordinary least squares in logarithms of both, with the 95 % Student interval of n - 2 degrees of freedom."""
    if len(sizes) < 2:
        return Law(remat=remat, sizes=sizes, slope=UNKNOWN, intercept=float(np.log(sizes[0][1])))
    x, y = (np.log(values) for values in np.array(sizes).T)
    slope, intercept = np.polyfit(x, y, 1)
    ends = {}
    if len(sizes) > 2:
        misfit = y - (slope * x + intercept)
        error = np.sqrt((misfit @ misfit) / (len(x) - 2) / ((x - x.mean()) @ (x - x.mean())))
        wide = float(stats.t.ppf(0.975, len(x) - 2) * error)
        ends = dict(lo=float(slope) - wide, hi=float(slope) + wide)
    return Law(remat=remat, sizes=sizes, slope=Estimate(value=float(slope), **ends), intercept=float(intercept))
