# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The numbers of an export: what they are called, their intervals, and the raw times behind them."""

from __future__ import annotations

from dataclasses import dataclass

from jaxbench.statistics.bootstrap import Estimate


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """A kind of number, and its name in each format.

    Attributes:
      name: for trackers.
      measure: Bencher's slug. Its built-in measures are latency (nanoseconds) and throughput (operations per second).
      scale: from the unit of `metric` to that of `measure`.
      metric: the name in OpenMetrics, which ends with the unit.
      unit: of `metric`.
      help: one sentence.
    """

    name: str
    measure: str
    scale: float = 1.0
    metric: str
    unit: str
    help: str


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One number of one point, with its interval if it has one. devices: None for an overall answer."""

    point: str
    devices: int | None
    quantity: Quantity
    value: Estimate


@dataclass(frozen=True, kw_only=True)
class Samples:
    """The raw times of one point. step_s: seconds per step of each timed block. steps: in the shortest block."""

    point: str
    devices: int
    step_s: tuple[float, ...]
    steps: int
