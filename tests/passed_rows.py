# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Rows with gates chosen by the test, for tests of later analysis without the gates."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fabricate_cases as fab

from jaxbench.analysis import points as case_points
from jaxbench.analysis import run_rows
from jaxbench.analysis.points import MeasuredPoint
from jaxbench.analysis.run_rows import Row
from jaxbench.core.store import RunFolder
from jaxbench.statistics import timing
from jaxbench.statistics.bootstrap import BootstrapSamples

RATES = ("flop_per_s", "bytes_per_s", "algbw", "busbw")


def rows(path: Path, made: Sequence[fab.Made], *, refused: Sequence[str] = (), **facts: Any) -> list[Row]:
    """Writes a run folder and reads it back as rows that passed every gate, except the points in `refused`."""
    points = case_points.load_cases(RunFolder(fab.case_folder(path, made, **facts)))
    resampling = timing.resampling_of(points)
    return [_row(point, resampling, refused=point.point in refused) for point in points]


def _row(point: MeasuredPoint, resampling: BootstrapSamples, *, refused: bool) -> Row:
    row = Row(point=point, timing=timing.measure(point, resampling, examples=1), gate="passed")
    if refused:
        row = dataclasses.replace(row, gate="refused", gate_reason="it lies")
    if not row.timing.step_s.known:
        return dataclasses.replace(row, gate="")
    known = run_rows.rates(point, row.timing)
    return dataclasses.replace(row, **{name: getattr(known, name) for name in RATES})


def sweep(op: str, impl: str, sizes: Sequence[int], *, start_s: float, per_s: float, **facts: Any) -> list[fab.Made]:
    """An element-wise kernel over `sizes` with t = start_s + elements / per_s."""
    return [fab.kernel(op, n, impl=impl, call_s=start_s + n / per_s, **facts) for n in sizes]
