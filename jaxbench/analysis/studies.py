# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What the studies of a run found (`records.manifest`): the largest batch, and how memory grows with depth."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from scipy import special

from jaxbench.analysis.quantities import scaled
from jaxbench.records.documents import decode
from jaxbench.records.reading import read_json
from jaxbench.records.studies import LONGEST, REMAT_LAW, SEARCH, Depths, Longest, Search
from jaxbench.statistics.bootstrap import UNKNOWN, Estimate

T = TypeVar("T")
SEARCHED = {
    "nothing": "No batch was proven to fit into {limit}{failed}.",
    "found": "The largest batch proven to fit into {limit} is {largest}, {predicted}.",
    "above": " {batch} was run too and did not fit.",
    "error": " The compiler predicts {percent:.2g} % {more} memory than was measured.",
    "no error": " The accuracy of the prediction is unknown: memory was not measured.",
}
LAW = {
    "one depth": "{remat}: no exponent, because it needs two depths.",
    "law": "{remat}: scratch memory grows like n^{slope}{ends} over {blocks} blocks.",
}


def _read(path: Path, kind: type[T]) -> T | None:
    """A file of a study; None if the run has none. Raises UserError if it is damaged."""
    advice = "delete it and continue the run to make it again."
    return read_json(path, functools.partial(decode, kind), advice) if path.is_file() else None


def read_search(folder: Path) -> Search | None:
    """The search for the largest batch in a run folder, or None. Raises UserError if its file is damaged."""
    return _read(folder / SEARCH, Search)


def read_longest(folder: Path) -> Longest | None:
    """The search for the longest sequence in a run folder, or None. Raises UserError if its file is damaged."""
    return _read(folder / LONGEST, Longest)


def search_sentence(search: Search) -> str:
    """The largest batch, the prediction and its error, as a sentence."""
    limit = f"{scaled(search.limit_bytes, 'B')} ({search.limit_source})"
    if not search.largest:
        failed = "; ".join(f"{proof.batch}: {proof.reason}" for proof in search.proven if not proof.ok)
        return SEARCHED["nothing"].format(limit=limit, failed=f": {failed}" if failed else "")
    words = "as predicted" if search.predicted == search.largest else f"where {search.predicted} was predicted"
    text = SEARCHED["found"].format(limit=limit, largest=search.largest, predicted=words)
    above = [proof.batch for proof in search.proven if not proof.ok and proof.batch > search.largest]
    if above:
        text += SEARCHED["above"].format(batch=min(above))
    if search.error is None:
        return text + SEARCHED["no error"]
    more = "more" if search.error >= 0 else "less"
    return text + SEARCHED["error"].format(percent=100 * abs(search.error), more=more)


@dataclass(frozen=True, kw_only=True)
class Law:
    """How scratch memory grows with the number of blocks under one rematerialization policy.

    Without rematerialization it grows like n, with a checkpoint every sqrt(n) blocks like sqrt(n) (Chen et al. 2016).
    """

    remat: str
    sizes: list[tuple[int, float]]  # (blocks, temp_bytes), sorted
    # d log(bytes) / d log(blocks); UNKNOWN with one size. The bytes come from the compiler and have no noise, so its
    # interval comes from the misfit of the line.
    slope: Estimate
    intercept: float  # natural logarithm of the bytes of one block, from the line

    @property
    def sentence(self) -> str:
        """The exponent with its interval, as a sentence."""
        ends = f" [{self.slope.lo:.2f}, {self.slope.hi:.2f}]" if self.slope.has_interval else " (no interval)"
        facts = {"remat": self.remat, "blocks": f"{self.sizes[0][0]} to {self.sizes[-1][0]}", "ends": ends}
        return LAW["law" if self.slope.known else "one depth"].format(slope=f"{self.slope.value:.2f}", **facts)


def read_remat_law(folder: Path) -> list[Law]:
    """One law per policy, in the order of the file; [] without a file. Raises UserError if the file is damaged."""
    policies: dict[str, dict[int, float]] = {}
    found = _read(folder / REMAT_LAW, Depths)
    for row in found.rows if found is not None else ():
        if row.temp_bytes and row.temp_bytes > 0 and row.blocks > 0:  # logarithms need it
            policies.setdefault(row.remat, {})[row.blocks] = float(row.temp_bytes)
    return [_fit_law(name, sorted(sizes.items())) for name, sizes in policies.items()]


def _fit_law(remat: str, sizes: list[tuple[int, float]]) -> Law:
    """Ordinary least squares of the logarithms, with the 95 % Student interval of n - 2 degrees of freedom."""
    if len(sizes) < 2:
        return Law(remat=remat, sizes=sizes, slope=UNKNOWN, intercept=float(np.log(sizes[0][1])))
    # A power law is a straight line in the logarithms, and its exponent is the slope.
    x, y = (np.log(values) for values in np.array(sizes).T)
    slope, intercept = np.polyfit(x, y, 1)
    ends = {}
    if len(sizes) > 2:  # two points lie on their line, which leaves no misfit to estimate from
        misfit = y - (slope * x + intercept)
        error = np.sqrt((misfit @ misfit) / (len(x) - 2) / ((x - x.mean()) @ (x - x.mean())))
        half = float(special.stdtrit(len(x) - 2, 0.975) * error)
        ends = dict(lo=float(slope) - half, hi=float(slope) + half)
    return Law(remat=remat, sizes=sizes, slope=Estimate(value=float(slope), **ends), intercept=float(intercept))
