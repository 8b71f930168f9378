# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The files that `sweep.studies` leaves in a run folder, and that reports read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from jaxbench.records.documents import AtLeastOne, Count, Positive

SEARCH, LONGEST, REMAT_LAW = "search.json", "longest.json", "remat_law.json"


@dataclass(frozen=True, kw_only=True)
class CompiledBatch:
    """One batch that was compiled."""

    batch: AtLeastOne
    peak_bytes: float  # predicted for one device
    refused: str = ""  # the compiler's message if it does not fit


@dataclass(frozen=True, kw_only=True)
class TriedBatch:
    """One batch that was run."""

    batch: AtLeastOne
    ok: bool
    reason: str = ""
    peak_bytes: float | None = None  # the predicted memory; None: unknown
    measured_bytes: float | None = None  # in use while it ran; None: unknown


@dataclass(frozen=True, kw_only=True)
class Search:
    """The search for the largest batch, in search.json."""

    schema: Literal[1] = 1
    point: str = ""  # what was compiled, with other batches
    levers: dict[str, str] = field(default_factory=dict)
    limit_bytes: Positive  # the memory of a device
    limit_source: str
    step: AtLeastOne = 1  # batches are multiples of it
    tried: tuple[CompiledBatch, ...]  # by batch, ascending
    predicted: Count  # the largest batch that should fit by the prediction
    proven: tuple[TriedBatch, ...]  # the batches that were run
    largest: Count  # the largest batch that ran; 0 if none did
    error: float | None = None  # predicted / measured memory - 1 for the largest batch that ran; None: not measured


@dataclass(frozen=True, kw_only=True)
class LongestOn:
    """The longest sequence on one device count."""

    devices: AtLeastOne
    longest: Count
    tried: tuple[tuple[int, float], ...]  # (length, peak bytes of a device), ascending


@dataclass(frozen=True, kw_only=True)
class Longest:
    """The longest sequence that fits a device, by device count, in longest.json."""

    schema: Literal[1] = 1
    limit_bytes: Count
    limit_source: str
    sharpness: AtLeastOne = 8  # a length is exact to one part in this; 1: the search only doubled it
    rows: tuple[LongestOn, ...]


@dataclass(frozen=True, kw_only=True)
class Depth:
    """The scratch memory of a step with this number of blocks."""

    remat: str
    blocks: AtLeastOne
    temp_bytes: float | None  # None: it does not fit, or nothing is known


@dataclass(frozen=True, kw_only=True)
class Depths:
    """Memory over the number of blocks, in remat_law.json."""

    schema: Literal[1] = 1
    rows: tuple[Depth, ...]
