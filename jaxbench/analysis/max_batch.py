# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Reads ``search.json``: the largest batch that fits, predicted by the compiler and confirmed by running it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxbench.analysis.quantities import scaled
from jaxbench.records.store import read_json

NAME = "search.json"


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


def read(folder: Path) -> Search | None:
    """The search in a run folder, or None. Raises UserError if its file is damaged."""
    path, advice = folder / NAME, "delete it and continue the run to make it again."
    return read_json(path, _parse, advice) if path.is_file() else None


def _parse(file: dict[str, Any]) -> Search:
    return Search(
        limit_bytes=float(file["limit_bytes"]),
        limit_source=str(file["limit_source"]),
        tried=sorted((int(row["batch"]), float(row["peak_bytes"])) for row in file["tried"]),
        predicted=int(file["predicted"]),
        proven=[
            TriedBatch(
                batch=int(row["batch"]),
                ok=bool(row["ok"]),
                peak_bytes=_maybe(row.get("peak_bytes")),
                measured_bytes=_maybe(row.get("measured_bytes")),
                reason=str(row.get("reason", "")),
            )
            for row in file["proven"]
        ],
        largest=int(file["largest"]),
        error=math.nan if file.get("error") is None else float(file["error"]),
    )


def _maybe(value: Any) -> float | None:
    return None if value is None else float(value)
