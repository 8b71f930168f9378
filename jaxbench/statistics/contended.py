# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Which rounds count when other programs used the machine during some of them: docs/metrics, "Load"."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

from jaxbench.core.schema import RoundRecord
from jaxbench.statistics.bootstrap import MIN_PROCESSES
from jaxbench.statistics.timing import session

MOST_TAKEN = 0.05  # a round is contended if others or the hypervisor took more than this share of its CPUs' time
TICKS_S = 0.03  # three ticks of the kernel's clock that counts others' time on a CPU: less may be its rounding
LEAST_LEFT = 10  # rounds that each claiming point must keep; else contention is the normal state of the machine


def wall_s(about: RoundRecord) -> float:
    """The wall seconds of all timed blocks of a round."""
    return sum(about.block_s) + sum(about.double_block_s)


def taken_by(about: RoundRecord) -> dict[str, float]:
    """Who took more of the CPUs' time during a round's blocks than it may, and the share; {} if nobody did."""
    cpu_time = wall_s(about) * about.cpus
    rounding_s = TICKS_S * math.sqrt(about.cpus * len(about.cpu_s))  # of independent readings: each CPU, each block
    spent = {"the hypervisor": sum(about.steal_s), "other processes": sum(about.others_s)}
    return {who: s / cpu_time for who, s in spent.items() if cpu_time and s > max(rounding_s, MOST_TAKEN * cpu_time)}


def enough(rounds: int, workers: Iterable[str]) -> bool:
    """Whether these rounds of a point, by these processes, give an interval that knows how processes differ."""
    return rounds >= LEAST_LEFT and len({*workers}) >= MIN_PROCESSES


def counted(
    rounds: Mapping[str, Sequence[RoundRecord]], claiming: Collection[str]
) -> dict[str, tuple[RoundRecord, ...]]:
    """The rounds of each CPU point of a run with automatic rounds that its statistics use.

    A contended round measured the program and a neighbour together, and an efficiency is about the program. What a
    neighbour takes is counted apart from the time of the program, so leaving rounds out does not select fast ones. A
    round is left out for all points if it is contended for one: a process that is pinned to one CPU does not see the
    neighbour on the next, which slows it down, too. All rounds count if a claiming point would not keep enough.

    claiming: the points that efficiencies rest on: neither oversubscribed nor ablations.
    """
    out = {(session(each), each.round) for name in claiming for each in rounds[name] if taken_by(each)}
    left = {name: tuple(each for each in of if (session(each), each.round) not in out) for name, of in rounds.items()}
    if all(enough(len(left[name]), (each.worker for each in left[name])) for name in claiming):
        return left
    return {name: tuple(of) for name, of in rounds.items()}
