# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Whether other programs used a point's CPUs while it was timed: docs/metrics, "Load"."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaxbench.analysis.points import MeasuredPoint
from jaxbench.core.schema import RoundRecord

LEAST_CPU_SHARE = 0.95  # a process with one CPU and one busy device is contended below this CPU time / wall time
MOST_TAKEN = 0.05  # a round is contended if others or the hypervisor took more than this share of its CPUs' time
TICKS_S = 0.02  # two ticks of the kernel's clock that counts others' time: less cannot be seen


@dataclass(frozen=True, kw_only=True)
class Load:
    """The load of a point over its rounds; NaN: the system does not report it, or the records are older.

    Attributes:
      rounds: the number of its rounds with a recorded load.
      contended: the share of these rounds that were contended.
      cpu_share: median over rounds of processor time / wall time. About 1 for one busy device, more for several.
      others, steal: median over rounds of the share of the CPUs' time that other processes and the hypervisor took.
      switches_per_s: median over rounds of involuntary context switches per second.
    """

    rounds: int = 0
    contended: float = math.nan
    cpu_share: float = math.nan
    others: float = math.nan
    steal: float = math.nan
    switches_per_s: float = math.nan


def of(point: MeasuredPoint) -> Load:
    """The load of a point: a training step or a case."""
    timed = [each for each in point.rounds if each.cpu_s]
    if not timed:
        return Load()
    return Load(
        rounds=len(timed),
        contended=float(np.mean([bool(contended(point, each)) for each in timed])),
        cpu_share=_median([sum(each.cpu_s) / wall_s(each) for each in timed]),
        others=_median([np.maximum(0.0, taken(each, each.others_s)) for each in timed]),
        steal=_median([taken(each, each.steal_s) for each in timed]),
        switches_per_s=_median([sum(each.switches) / wall_s(each) for each in timed]),
    )


def contended(point: MeasuredPoint, about: RoundRecord) -> str:
    """Why a round counts as contended, as a clause; "" if it does not, or if its load is unknown.

    A round on an accelerator never does, because its processor only waits.
    """
    if point.platform != "cpu" or not about.cpu_s:
        return ""
    share = sum(about.cpu_s) / wall_s(about)
    # A process with one CPU and one device that waits for no input or copy should always be busy.
    fed = point.levers.get("input", "device") != "device" or point.source
    if about.cpus == 1 and point.devices == 1 and not fed and share < LEAST_CPU_SHARE:
        return f"its process ran for only {100 * share:.0f} % of the time"
    for values, who in ((about.steal_s, "the hypervisor"), (about.others_s, "other processes")):
        if sum(values) > TICKS_S and taken(about, values) > MOST_TAKEN:
            return f"{who} took {100 * taken(about, values):.0f} % of its CPUs"
    return ""


def wall_s(about: RoundRecord) -> float:
    """The wall seconds of all timed blocks of a round."""
    return sum(about.block_s) + sum(about.double_block_s)


def taken(about: RoundRecord, values: Sequence[float]) -> float:
    """The share of the CPUs' time during a round's blocks that `values` seconds are; NaN: unknown."""
    return sum(values) / (wall_s(about) * about.cpus) if values and about.cpus else math.nan


def _median(values: Sequence[float]) -> float:
    return float(np.median(values))
