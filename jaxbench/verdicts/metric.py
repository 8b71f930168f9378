# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What two runs can be compared by, each with its direction."""

from __future__ import annotations

from dataclasses import dataclass

from jaxbench.errors import UserError, did_you_mean


@dataclass(frozen=True)
class Metric:
    """power: of the time per step that the metric is, for the same work: 1 a time, -1 a rate. more_is_better: of the
    metric itself."""

    name: str
    unit: str
    power: int
    more_is_better: bool


METRICS = {
    "step_s": Metric("step_s", "s", 1, more_is_better=False),
    "throughput": Metric("throughput", "1/s", -1, more_is_better=True),
}


def named(name: str) -> Metric:
    """Raises UserError for a name that is none."""
    if name not in METRICS:
        raise UserError(f"--metric={name} cannot be compared: {did_you_mean(name, METRICS)}")
    return METRICS[name]
