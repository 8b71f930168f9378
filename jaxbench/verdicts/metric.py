# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The metrics by which two runs can be compared, each with its direction."""

from __future__ import annotations

from dataclasses import dataclass

from jaxbench.errors import UserError, did_you_mean


@dataclass(frozen=True)
class Metric:
    """power: the metric is proportional to (time per step) ** power: 1 for a time, -1 for a rate."""

    name: str
    unit: str
    power: int
    more_is_better: bool


METRICS = {
    "step_s": Metric("step_s", "s", 1, more_is_better=False),
    "throughput": Metric("throughput", "1/s", -1, more_is_better=True),
}


def named(name: str) -> Metric:
    """The metric `name`. Raises UserError for an unknown name."""
    if name not in METRICS:
        raise UserError(f"--metric={name} cannot be compared: {did_you_mean(name, METRICS)}")
    return METRICS[name]
