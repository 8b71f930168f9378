# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Reads the files that `sweep.studies` leaves in a run folder."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special

from jaxbench.analysis.quantities import scaled
from jaxbench.core.store import read_json
from jaxbench.statistics.bootstrap import UNKNOWN, Estimate

_ADVICE = "delete it and continue the run to make it again."


SEARCH = "search.json"


@dataclass(frozen=True, kw_only=True)
class TriedBatch:
    """One batch that was run. peak_bytes: the predicted memory. measured_bytes: in use while it ran. None: unknown."""

    batch: int
    ok: bool
    peak_bytes: float | None
    measured_bytes: float | None
    reason: str


@dataclass(frozen=True, kw_only=True)
class Search:
    """The search for the largest batch.

    Attributes:
      limit_bytes: the memory of a device.
      tried: (batch, predicted bytes), sorted.
      predicted: the largest batch that should fit by the prediction.
      proven: the batches that were run.
      largest: the largest batch that ran; 0 if none did.
      error: predicted / measured memory - 1 for the largest batch that ran; NaN: not measured.
    """

    limit_bytes: float
    limit_source: str
    tried: list[tuple[int, float]]
    predicted: int
    proven: list[TriedBatch]
    largest: int
    error: float

    @property
    def sentence(self) -> str:
        """The largest batch, the prediction and its error, as a sentence."""
        limit = f"{scaled(self.limit_bytes, 'B')} ({self.limit_source})"
        if not self.largest:
            failed = "; ".join(f"{proof.batch}: {proof.reason}" for proof in self.proven if not proof.ok)
            return f"No batch was proven to fit into {limit}{f': {failed}' if failed else ''}."
        words = "as predicted" if self.predicted == self.largest else f"where {self.predicted} was predicted"
        text = f"The largest batch proven to fit into {limit} is {self.largest}, {words}."
        above = [proof.batch for proof in self.proven if not proof.ok and proof.batch > self.largest]
        if above:
            text += f" {min(above)} was run too and did not fit."
        if math.isfinite(self.error):
            word = "more" if self.error >= 0 else "less"
            return f"{text} The compiler predicts {100 * abs(self.error):.2g} % {word} memory than was measured."
        return f"{text} The accuracy of the prediction is unknown: memory was not measured."


def read_search(folder: Path) -> Search | None:
    """The search in a run folder, or None. Raises UserError if its file is damaged."""
    path = folder / SEARCH
    return read_json(path, _parse_search, _ADVICE) if path.is_file() else None


def _parse_search(file: dict[str, Any]) -> Search:
    def number(value: Any) -> float | None:
        return None if value is None else float(value)

    proven = [
        TriedBatch(
            batch=int(row["batch"]), ok=bool(row["ok"]), peak_bytes=number(row.get("peak_bytes")),
            measured_bytes=number(row.get("measured_bytes")), reason=str(row.get("reason", "")),
        ) for row in file["proven"]
    ]  # fmt: skip
    return Search(
        limit_bytes=float(file["limit_bytes"]), limit_source=str(file["limit_source"]), proven=proven,
        tried=sorted((int(row["batch"]), float(row["peak_bytes"])) for row in file["tried"]),
        predicted=int(file["predicted"]), largest=int(file["largest"]),
        error=math.nan if file.get("error") is None else float(file["error"]),
    )  # fmt: skip


LONGEST = "longest.json"


def read_longest(folder: Path) -> dict[str, Any] | None:
    """{"limit_bytes", "limit_source", "rows": [{"devices", "longest", "tried": [[length, peak bytes], ...]}]}, or None
    if the run has no such file. Raises UserError if the file is damaged."""
    path = folder / LONGEST
    return read_json(path, _parse_longest, _ADVICE) if path.is_file() else None


def _parse_longest(file: dict[str, Any]) -> dict[str, Any]:
    rows = [{"devices": int(r["devices"]), "longest": int(r["longest"]), "tried": r["tried"]} for r in file["rows"]]
    return {"limit_bytes": int(file["limit_bytes"]), "limit_source": str(file["limit_source"]), "rows": rows}


REMAT_LAW = "remat_law.json"


@dataclass(frozen=True, kw_only=True)
class Law:
    """How scratch memory grows with the number of blocks under one rematerialization policy.

    Without rematerialization it grows like n, with a checkpoint every sqrt(n) blocks like sqrt(n) (Chen et al. 2016).
    The bytes come from the compiler and have no noise, so the slope's interval comes from the misfit of the line.
    sizes: (blocks, temp_bytes), sorted. slope: d log(bytes) / d log(blocks); UNKNOWN with one size.
    """

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


def read_remat_law(folder: Path) -> list[Law]:
    """One law per policy, in the order of the file; [] without a file. Raises UserError if the file is damaged."""
    path = folder / REMAT_LAW
    return read_json(path, _parse_laws, _ADVICE) if path.is_file() else []


def _parse_laws(file: dict[str, Any]) -> list[Law]:
    policies: dict[str, dict[int, float]] = {}
    for row in file["rows"]:
        if row["temp_bytes"] is not None and float(row["temp_bytes"]) > 0 and int(row["blocks"]) > 0:
            policies.setdefault(str(row["remat"]), {})[int(row["blocks"])] = float(row["temp_bytes"])
    return [_fit_law(name, sorted(sizes.items())) for name, sizes in policies.items()]


def _fit_law(remat: str, sizes: list[tuple[int, float]]) -> Law:
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
