# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Whether a point had its CPUs for itself while it was timed: docs/metrics, "Load"."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxbench.analysis.measured import Measured
from jaxbench.records.schema import RoundRecord

LEAST_CPU_SHARE = 0.95  # of a process that may use one CPU, and has one device to keep busy
MOST_TAKEN = 0.05  # of the CPUs' time, by others and by the hypervisor
TICKS_S = 0.02  # two ticks of the kernel's clock, in which others' time is counted: less is not seen


@dataclass(frozen=True, kw_only=True)
class Load:
    """The load of a point over its rounds; NaN: the system does not say, or the records are older.

    Attributes:
      rounds: how many of its rounds have a load.
      contended: the share of these that were contended.
      cpu_share: median over rounds of processor time / wall time. About 1 for one busy device, more for several.
      others, steal: median over rounds of others' time, and of the hypervisor's, as a share of the CPUs' time.
      switches_per_s: median over rounds of involuntary context switches a second.
    """

    rounds: int = 0
    contended: float = math.nan
    cpu_share: float = math.nan
    others: float = math.nan
    steal: float = math.nan
    switches_per_s: float = math.nan


def of(point: Measured[Any]) -> Load:
    """The load of a point, of a training step or of a case."""
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


def contended(point: Measured[Any], about: RoundRecord) -> str:
    """Why a round counts as contended, as a clause; "" if it does not, or if nothing is known about it.

    A round of an accelerator never does: its processor only waits.
    """
    if point.platform != "cpu" or not about.cpu_s:
        return ""
    share = sum(about.cpu_s) / wall_s(about)
    if _alone_on_one_cpu(point, about) and share < LEAST_CPU_SHARE:
        return f"its process ran for {100 * share:.0f} % of the time only"
    for values, who in ((about.steal_s, "the hypervisor"), (about.others_s, "other processes")):
        if sum(values) > TICKS_S and taken(about, values) > MOST_TAKEN:
            return f"{who} took {100 * taken(about, values):.0f} % of its CPUs"
    return ""


def wall_s(about: RoundRecord) -> float:
    """Seconds of all timed blocks of a round."""
    return sum(about.block_s) + sum(about.double_block_s)


def taken(about: RoundRecord, values: Sequence[float]) -> float:
    """Seconds that were taken in the blocks of a round, as a share of the time of its CPUs; NaN if unknown."""
    return sum(values) / (wall_s(about) * about.cpus) if values and about.cpus else math.nan


def _alone_on_one_cpu(point: Measured[Any], about: RoundRecord) -> bool:
    """Whether the process should be busy all the time: one CPU, one device, and no wait for input or for a copy."""
    fed = getattr(point, "levers", {}).get("input", "device") != "device"
    return about.cpus == 1 and point.devices == 1 and not fed and not getattr(point, "source", "")


def _median(values: Sequence[float]) -> float:
    return float(np.median(values))
