# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Whether other programs used a point's CPUs while it was timed: docs/metrics, "Load"."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaxbench.analysis.points import MeasuredPoint
from jaxbench.core.schema import RoundRecord
from jaxbench.statistics.contended import taken_by, wall_s

LEAST_CPU_SHARE = 0.95  # a process with one CPU and one busy device is contended below this CPU time / wall time


@dataclass(frozen=True, kw_only=True)
class Load:
    """The load of a point over its rounds; NaN: the system does not report it, or the records are older."""

    contended: float = math.nan  # the share of rounds with a recorded load that were contended
    cpu_share: float = math.nan  # median over rounds of processor time / wall time: about 1 for each busy device
    # The share of the CPUs' time in all rounds that other processes and the hypervisor took. A median would hide a
    # neighbour that is active in a third of the rounds.
    others: float = math.nan
    steal: float = math.nan


def of(point: MeasuredPoint, rounds: Sequence[RoundRecord] | None = None) -> Load:
    """The load of a point: a training step or a case. rounds: some of its rounds; None: all."""
    timed = [each for each in (point.every_round if rounds is None else rounds) if each.cpu_s]
    if not timed:
        return Load()
    return Load(
        contended=float(np.mean([bool(contended(point, each)) for each in timed])),
        cpu_share=float(np.median([sum(each.cpu_s) / wall_s(each) for each in timed])),
        others=_taken([each for each in timed if each.others_s], "others_s"),
        steal=_taken([each for each in timed if each.steal_s], "steal_s"),
    )


def contended(point: MeasuredPoint, record: RoundRecord) -> str:
    """Why a round counts as contended, as a clause; "" if it does not, or if its load is unknown.

    A round on an accelerator never does, because its processor only waits.
    """
    if point.platform != "cpu" or not record.cpu_s:
        return ""
    share = sum(record.cpu_s) / wall_s(record)
    # A process with one CPU and one device that waits for no input or copy should always be busy.
    fed = point.levers.get("input", "device") != "device" or point.source
    if record.cpus == 1 and point.devices == 1 and not fed and share < LEAST_CPU_SHARE:
        return f"its process ran for only {100 * share:.0f} % of the time"
    return next((f"{who} took {100 * share:.0f} % of its CPUs" for who, share in taken_by(record).items()), "")


def _taken(rounds: Sequence[RoundRecord], name: str) -> float:
    """A share of the CPUs' time of all these rounds; NaN: unknown. Ticks may make it a little less than 0."""
    cpu_s = sum(wall_s(each) * each.cpus for each in rounds)
    return max(0.0, sum(sum(getattr(each, name)) for each in rounds) / cpu_s) if cpu_s else math.nan
