# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Whether the machine, and not the program, decided the times of a point, and what on the machine did.

The headline, the waterfall, its figure and the advice all ask here, so they agree.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jaxbench.analysis.gates import QUOTA, Cause, cause, load_of
from jaxbench.analysis.points import MeasuredPoint
from jaxbench.analysis.quantities import devices
from jaxbench.analysis.run_rows import Row, fault
from jaxbench.statistics.timing import throttled

# Above this share of contended rounds there is no advice about the program. The rounds that are left can still say what
# it loses, but a neighbour that comes and goes may have cost them something, too. Quiet runs have up to a tenth.
OFTEN = 1 / 3
FREE = 1 / 3  # with a smaller share of free rounds there is no headline and no waterfall
MENTIONED = 0.1  # a further cause is named if it has at least this share of the contended rounds
# Processes of one device each that together get the CPU time of this many cores or less have only one core.
ONE_CORE = 1.15
# Limits of CPU time, as clauses.
LIMITS = {
    "hidden": "{count} processes of one device each got the CPU time of {cores:.1f} cores, and nobody else took the "
    "rest: a CPU limit that the kernel does not show",
    "quota": "a CPU quota of {cores:.1f} cores leaves less than one for each of {devices}{stopped}",
    "stopped": ", and stopped {point} for {percent:.0f} % of its CPUs' time",
    "affinity": "{devices} take turns, because this process may use only {allowed} of the machine's {cpus} CPUs "
    "(taskset, a cpuset or a scheduler)",
}
NOT_TAKEN = 0.1  # up to this share of the CPUs' time, others and the hypervisor do not explain it


@dataclass(frozen=True, kw_only=True)
class Busy:
    """A point with many contended rounds.

    contended, rounds: how many rounds were contended, and how many there are. causes: what they had in common, the most
    frequent first, each with its number of rounds and with the median of its amounts.
    """

    point: str
    contended: int
    rounds: int
    causes: tuple[tuple[Cause, int], ...]
    limit: str = ""  # a clause: a limit of CPU time that holds for the whole run

    @property
    def mostly(self) -> bool:
        """Whether fewer than a third of the rounds are free: too few for a claim about the program."""
        return bool(self.limit) or self.contended > (1 - FREE) * self.rounds

    @property
    def sentence(self) -> str:
        """ "this machine was busy: other processes took 44 % of its CPUs in 28 of 30 rounds of jit_auto/strong/2" """
        if self.limit:
            return f"this machine was busy: {self.limit}"
        named = [each for each in self.causes if each[1] >= MENTIONED * self.contended]
        (first, rounds), *others = named
        clauses = [f"{first.clause} in {rounds} of {self.rounds} rounds of {self.point}"]
        clauses += [f"{other.clause} in {count}" for other, count in others]
        return f"this machine was busy: {' and '.join(clauses)}"


def of(row: Row) -> Busy | None:
    """What disturbed a point; None if most of its rounds had the machine to themselves."""
    point, found = row.point, of_point(row.point)
    seen = found is not None and found.causes[0][0].kind == QUOTA
    if not seen and (limit := hidden_limit(row)):
        return Busy(point=point.point, contended=0, rounds=len(point.every_round), causes=(), limit=limit)
    return found


def of_point(point: MeasuredPoint) -> Busy | None:
    """`of`, by the rounds of the point alone."""
    if not load_of(point).contended > OFTEN:
        return None
    found: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for each in point.every_round:
        if (disturbed := cause(point, each)) is not None:
            found[disturbed.kind, disturbed.who].append(disturbed.amount)
    causes = [(Cause(kind, who, statistics.median(all_)), len(all_)) for (kind, who), all_ in found.items()]
    return Busy(
        point=point.point,
        contended=sum(count for _, count in causes),
        rounds=len(point.every_round),
        causes=tuple(sorted(causes, key=lambda each: -each[1])),
    )


def hidden_limit(row: Row) -> str:
    """A clause on a limit of CPU time that the kernel does not show; "" if there is no sign of one.

    Processes of one device each wait for nothing, so each of them is busy all the time. If they together get the CPU
    time of one core, and nobody else took the rest, something stops them.
    """
    apart = row.ablations.get("processes")
    if apart is None or fault(apart) or row.point.devices < 2:
        return ""
    load = load_of(apart.point)
    if not load.cpu_share <= ONE_CORE or load.others > NOT_TAKEN or load.steal > NOT_TAKEN:
        return ""
    return LIMITS["hidden"].format(count=row.point.devices, cores=load.cpu_share)


def fewer_cores(rows: Sequence[Row], machine: Mapping[str, Any]) -> str:
    """A clause on a limit that leaves no point of several devices a core for each of them; "" without one.

    machine: the manifest. A machine that simply has no more cores is not limited.
    """
    several = [row.point for row in rows if row.point.devices > 1 and row.point.platform == "cpu"]
    if not several or not all(point.oversubscribed for point in several):
        return ""
    least = min(several, key=lambda point: point.devices)
    quota, allowed, cpus = (machine.get(name) for name in ("cpu_quota", "allowed_cpus", "cpus"))
    if quota is not None and quota < least.devices:
        stopped = max((throttled(each) for each in least.every_round), default=0.0)
        measured = LIMITS["stopped"].format(point=least.point, percent=100 * stopped) if stopped else ""
        return LIMITS["quota"].format(cores=quota, devices=devices(least.devices), stopped=measured)
    if allowed is not None and cpus is not None and allowed < min(cpus, least.devices):
        return LIMITS["affinity"].format(devices=devices(least.devices), allowed=allowed, cpus=cpus)
    return ""
