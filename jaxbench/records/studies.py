# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The files that `sweep.studies` leaves in a run folder, and that reports read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

SEARCH, LONGEST, REMAT_LAW = "search.json", "longest.json", "remat_law.json"


@dataclass(frozen=True, kw_only=True)
class CompiledBatch:
    """peak_bytes: predicted for one device. refused: the compiler's message if it does not fit."""

    batch: int
    peak_bytes: float
    refused: str = ""


@dataclass(frozen=True, kw_only=True)
class TriedBatch:
    """One batch that was run. peak_bytes: the predicted memory. measured_bytes: in use while it ran. None: unknown."""

    batch: int
    ok: bool
    reason: str = ""
    peak_bytes: float | None = None
    measured_bytes: float | None = None


@dataclass(frozen=True, kw_only=True)
class Search:
    """The search for the largest batch, in search.json.

    Attributes:
      point, levers: what was compiled, with other batches.
      limit_bytes: the memory of a device.
      step: batches are multiples of it.
      tried: by batch, ascending.
      predicted: the largest batch that should fit by the prediction.
      proven: the batches that were run.
      largest: the largest batch that ran; 0 if none did.
      error: predicted / measured memory - 1 for the largest batch that ran; None: not measured.
    """

    schema: Literal[1] = 1
    point: str = ""
    levers: dict[str, str] = field(default_factory=dict)
    limit_bytes: float
    limit_source: str
    step: int = 1
    tried: tuple[CompiledBatch, ...]
    predicted: int
    proven: tuple[TriedBatch, ...]
    largest: int
    error: float | None = None


@dataclass(frozen=True, kw_only=True)
class LongestOn:
    """The longest sequence on one device count. tried: (length, peak bytes of a device), ascending."""

    devices: int
    longest: int
    tried: tuple[tuple[int, float], ...]


@dataclass(frozen=True, kw_only=True)
class Longest:
    """The longest sequence that fits a device, by device count, in longest.json."""

    schema: Literal[1] = 1
    limit_bytes: int
    limit_source: str
    rows: tuple[LongestOn, ...]


@dataclass(frozen=True, kw_only=True)
class Depth:
    """The scratch memory of a step with this number of blocks; None: it does not fit, or nothing is known."""

    remat: str
    blocks: int
    temp_bytes: float | None


@dataclass(frozen=True, kw_only=True)
class Depths:
    """Memory over the number of blocks, in remat_law.json."""

    schema: Literal[1] = 1
    rows: tuple[Depth, ...]
