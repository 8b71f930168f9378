# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A search for the largest batch that fits, as it left itself in ``search.json``: predicted by the compiler, proven."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxbench.analysis.quantities import scaled
from jaxbench.errors import UserError

NAME = "search.json"


@dataclass(frozen=True, kw_only=True)
class Proof:
    """One batch that was really run. peak_bytes: predicted; measured_bytes: what was held; None where unknown."""

    batch: int
    ok: bool
    peak_bytes: float | None
    measured_bytes: float | None
    reason: str


@dataclass(frozen=True, kw_only=True)
class Search:
    """tried: (batch, predicted bytes) by batch. predicted: the largest batch that should fit.

    error: predicted over measured memory, less 1, of the largest batch that ran; NaN: nothing measured it.
    """

    limit_bytes: float
    limit_source: str
    tried: list[tuple[int, float]]
    predicted: int
    proven: list[Proof]
    largest: int
    error: float

    @property
    def sentence(self) -> str:
        """The largest batch, what was predicted, and how well."""
        limit = f"{scaled(self.limit_bytes, 'B')} ({self.limit_source})"
        if not self.largest:
            failed = "; ".join(f"{proof.batch}: {proof.reason}" for proof in self.proven if not proof.ok)
            return f"No batch was proven to fit into {limit}{f': {failed}' if failed else ''}."
        words = "as predicted" if self.predicted == self.largest else f"where {self.predicted} was predicted"
        said = f"The largest batch proven to fit into {limit} is {self.largest}, {words}."
        above = [proof.batch for proof in self.proven if not proof.ok and proof.batch > self.largest]
        if above:
            said += f" {min(above)} was run too and did not fit."
        if math.isfinite(self.error):
            word = "more" if self.error >= 0 else "less"
            return f"{said} The compiler predicts {100 * abs(self.error):.2g} % {word} memory than was measured."
        return f"{said} The accuracy of the prediction is unknown: nothing measured the memory."


def read(folder: Path) -> Search | None:
    """The search of a run folder, or None if there was none. Raises UserError when its file is damaged."""
    path = folder / NAME
    if not path.is_file():
        return None
    try:
        found = json.loads(path.read_text())
        return Search(
            limit_bytes=float(found["limit_bytes"]),
            limit_source=str(found["limit_source"]),
            tried=sorted((int(one["batch"]), float(one["peak_bytes"])) for one in found["tried"]),
            predicted=int(found["predicted"]),
            proven=[
                Proof(
                    batch=int(one["batch"]), ok=bool(one["ok"]), peak_bytes=_maybe(one.get("peak_bytes")),
                    measured_bytes=_maybe(one.get("measured_bytes")),
                    reason=str(one.get("reason", "")),
                )
                for one in found["proven"]
            ],
            largest=int(found["largest"]),
            error=math.nan if found.get("error") is None else float(found["error"]),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, UnicodeDecodeError) as error:
        raise UserError(f"'{path}' is damaged ({error!r}): remove it, or search again.") from error


def _maybe(value: Any) -> float | None:
    return None if value is None else float(value)
