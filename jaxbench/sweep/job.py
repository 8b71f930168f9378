# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The input of a sweep: points, rounds, the sets of processes that share them, and when rounds=auto ends.

With measure.rounds=auto, rounds are added until a look at their confidence intervals, or the time budget, ends the run.
The plan in the manifest says whether the run has ended. So an interrupted run continues, and a run that has ended stays
ended. The caller passes the look itself (`statistics.looks`), because this package must not import the analysis.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from jaxbench.catalog.allocators import SYSTEM
from jaxbench.config import counts
from jaxbench.core.point import Point
from jaxbench.core.schema import Record, RoundRecord
from jaxbench.core.store import RunFolder, write_manifest
from jaxbench.machine.program_cache import ProgramCache
from jaxbench.processes.launch import Followers
from jaxbench.records.manifest import LookEntry, Plan
from jaxbench.sweep.plan import worker_of


class Looked(Protocol):
    """The result of a look: whether and why the run ends, and the points that each of the next rounds visits."""

    @property
    def ended(self) -> str: ...

    @property
    def visits(self) -> tuple[str, ...]: ...

    def to_json(self) -> LookEntry: ...


Look = Callable[..., Looked]  # statistics.looks.look


@dataclass(frozen=True)
class Automatic:
    """The rounds of a run that looks decide to end."""

    run: RunFolder
    look: Look

    @property
    def _recorded_plan(self) -> Plan:
        return self.run.manifest()["plan"]

    @property
    def ended(self) -> str:
        return str(self._recorded_plan["auto"]["ended"])

    @property
    def budget_s(self) -> float:
        return float(self._recorded_plan["auto"]["budget_s"])

    def looked(self, records: Sequence[Record], sets: int, failed: Collection[str]) -> Looked:
        """Looks at the rounds so far. sets: the number of sets of processes that take turns.

        The time budget is not checked here: the sweep does this, because it knows how long the next rounds take.
        """
        plan = self._recorded_plan
        return self.look({**plan, "auto": {**plan["auto"], "budget_s": math.inf}}, records, sets=sets, failed=failed)

    @property
    def asked(self) -> dict[str, int]:
        """The number of rounds of each point that the plan requires so far."""
        return {point["point"]: point["rounds"] for point in self._recorded_plan["points"]}

    @property
    def spent_s(self) -> float:
        """The seconds spent on rounds until the last look."""
        return max((float(look["spent_s"]) for look in self._recorded_plan["auto"]["looks"]), default=0.0)

    def note(
        self, look: Looked, records: Sequence[Record], spent_s: float, ends: str = "", failed: Collection[str] = ()
    ) -> None:
        """Records a look and, if the run ends, the reason in `ends`.

        The plan then requires the existing rounds, except those of points that have failed. spent_s: the seconds spent
        on rounds, without preparation in between.
        """
        manifest = self.run.manifest()
        plan, rounds = manifest["plan"], [record for record in records if isinstance(record, RoundRecord)]
        plan["rounds"] = max((record.round for record in rounds), default=-1) + 1
        entry = look.to_json()
        entry["spent_s"], entry["rounds"], entry["ended"] = round(spent_s, 3), plan["rounds"], ends
        plan["auto"]["looks"].append(entry)
        plan["auto"]["ended"] = ends
        done = Counter(record.point for record in rounds)
        for point in plan["points"]:
            # A failed point keeps its number, so that a later start measures it.
            if ends and not point["oversubscribed"] and point["point"] not in failed:
                point["rounds"] = done[point["point"]]
        write_manifest(self.run.path, manifest)


@dataclass(frozen=True, kw_only=True)
class SweepJob:
    """The input of a sweep.

    order: the CPU cores to take first. memory_bytes: of the machine. source: the copy of this package that its
    processes run, as in `machine.source.of`; None: that of this process. python: the interpreter of its processes; "":
    that of this process. automatic: decides when there are enough
    rounds; None: their number is fixed. followers: the other processes of a launch; None: there is none.
    programs: where compiled programs are kept; None: nowhere, as the sentence not_kept says. begun_s: of this start, in
    seconds of the monotonic clock.
    """

    run: RunFolder
    points: Sequence[Point]
    config: dict[str, Any]
    experiment: str  # a name or an absolute path
    session: int  # how often this run folder was continued
    order: Sequence[int] = ()
    memory_bytes: float = math.inf
    source: dict[str, str] | None = None
    python: str = ""
    automatic: Automatic | None = None
    followers: Followers | None = None
    programs: ProgramCache | None = None
    not_kept: str = ""
    begun_s: float = field(default_factory=time.monotonic)

    @property
    def counts(self) -> tuple[int, int]:
        """(rounds, sets of processes) that the config asks for; with rounds=auto the smallest number of rounds."""
        return counts(self.config["measure"]["rounds"], self.config["measure"]["processes"], live=self.live)

    @property
    def allocator(self) -> str:
        """Of its processes, as in `measure.allocator`."""
        return str(self.config.get("measure", {}).get("allocator", SYSTEM))

    @property
    def live(self) -> bool:
        return live(self.points, self.followers)


def live(points: Sequence[Point], followers: Followers | None) -> bool:
    """Whether all sets of processes may live at the same time.

    They may not on an accelerator, which belongs to one process, nor in a launch, because the free memory of the other
    hosts is unknown here.
    """
    return not followers and all(worker_of(point)[1].platform == "cpu" for point in points)
