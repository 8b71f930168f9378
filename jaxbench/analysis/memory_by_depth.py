# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Reads ``remat_law.json``: how scratch memory grows with the number of blocks under each rematerialization policy.

Without rematerialization it grows like n. With a checkpoint every sqrt(n) blocks it grows like sqrt(n) (Chen et al.
2016). The bytes come from the compiler and have no noise, so the slope's interval comes from the misfit of the line.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special

from jaxbench.analysis.intervals import UNKNOWN, Estimate
from jaxbench.records.store import read_json

NAME = "remat_law.json"


@dataclass(frozen=True, kw_only=True)
class Law:
    """One policy. sizes: (blocks, temp_bytes), sorted. slope: d log(bytes) / d log(blocks); UNKNOWN with one size."""

    remat: str
    sizes: list[tuple[int, float]]
    slope: Estimate
    intercept: float  # natural logarithm of the bytes of one block, from the line

    @property
    def sentence(self) -> str:
        """The exponent with its interval, as a sentence."""
        blocks = f"{self.sizes[0][0]} to {self.sizes[-1][0]} blocks"
        if not self.slope.known:
            return f"{self.remat}: no exponent, because it needs two depths."
        ends = f" [{self.slope.lo:.2f}, {self.slope.hi:.2f}]" if self.slope.has_interval else " (no interval)"
        return f"{self.remat}: scratch memory grows like n^{self.slope.value:.2f}{ends} over {blocks}."


def read(folder: Path) -> list[Law]:
    """One law per policy, in the order of the file; [] without a file. Raises UserError if the file is damaged."""
    path, advice = folder / NAME, "delete it and continue the run to make it again."
    return read_json(path, _parse, advice) if path.is_file() else []


def _parse(file: dict[str, Any]) -> list[Law]:
    policies: dict[str, dict[int, float]] = {}
    for row in file["rows"]:
        if row["temp_bytes"] is not None and float(row["temp_bytes"]) > 0 and int(row["blocks"]) > 0:
            policies.setdefault(str(row["remat"]), {})[int(row["blocks"])] = float(row["temp_bytes"])
    return [_fit(name, sorted(sizes.items())) for name, sizes in policies.items()]


def _fit(remat: str, sizes: list[tuple[int, float]]) -> Law:
    """Ordinary least squares of the logarithms, with the 95 % Student interval of n - 2 degrees of freedom."""
    if len(sizes) < 2:
        return Law(remat=remat, sizes=sizes, slope=UNKNOWN, intercept=float(np.log(sizes[0][1])))
    x, y = (np.log(values) for values in np.array(sizes).T)
    slope, intercept = np.polyfit(x, y, 1)
    ends = {}
    if len(sizes) > 2:
        misfit = y - (slope * x + intercept)
        error = np.sqrt((misfit @ misfit) / (len(x) - 2) / ((x - x.mean()) @ (x - x.mean())))
        half = float(special.stdtrit(len(x) - 2, 0.975) * error)
        ends = dict(lo=float(slope) - half, hi=float(slope) + half)
    return Law(remat=remat, sizes=sizes, slope=Estimate(value=float(slope), **ends), intercept=float(intercept))
