# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""measure.rounds=auto: rounds are added until a look at their confidence intervals, or the time budget, ends the run.

The plan in the manifest says whether the run has ended. So an interrupted run continues, and a run that has ended stays
ended. The caller passes the look itself (`statistics.looks`), because this package must not import the analysis.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from jaxbench.config import Settings
from jaxbench.records.schema import Record, RoundRecord
from jaxbench.records.store import MANIFEST, RunFolder, write_json


class Looked(Protocol):
    """The result of a look: whether and why the run ends, and the points that each of the next rounds visits."""

    @property
    def ended(self) -> str: ...

    @property
    def visits(self) -> tuple[str, ...]: ...

    def to_json(self) -> dict[str, Any]: ...


Look = Callable[..., Looked]  # statistics.looks.look


def plan(settings: Settings) -> dict[str, Any]:
    """The part of the manifest's plan that `look` needs, with the looks that were taken."""
    return {"budget_s": settings.budget_s, "ended": "", "looks": []}


@dataclass(frozen=True)
class Automatic:
    """The rounds of a run that looks decide to end."""

    run: RunFolder
    look: Look

    @property
    def ended(self) -> str:
        return str(self.run.manifest()["plan"]["auto"]["ended"])

    @property
    def budget_s(self) -> float:
        return float(self.run.manifest()["plan"]["auto"]["budget_s"])

    def looked(self, records: Sequence[Record], sets: int, failed: Collection[str]) -> Looked:
        """Looks at the rounds so far. sets: the number of sets of processes that take turns.

        The time budget is not checked here: the sweep does this, because it knows how long the next rounds take.
        """
        asked = self.run.manifest()["plan"]
        return self.look({**asked, "auto": {**asked["auto"], "budget_s": math.inf}}, records, sets=sets, failed=failed)

    @property
    def asked(self) -> dict[str, int]:
        """The number of rounds of each point that the plan requires so far."""
        return {point["point"]: point["rounds"] for point in self.run.manifest()["plan"]["points"]}

    @property
    def spent_s(self) -> float:
        """The seconds spent on rounds until the last look."""
        return max((float(each["spent_s"]) for each in self.run.manifest()["plan"]["auto"]["looks"]), default=0.0)

    def note(
        self, found: Looked, records: Sequence[Record], spent_s: float, ends: str = "", failed: Collection[str] = ()
    ) -> None:
        """Records a look and, if the run ends, the reason in `ends`.

        The plan then requires the existing rounds, except those of points that have failed. spent_s: the seconds spent
        on rounds, without preparation in between.
        """
        manifest = self.run.manifest()
        plan, made = manifest["plan"], [record for record in records if isinstance(record, RoundRecord)]
        plan["rounds"] = max((record.round for record in made), default=-1) + 1
        about = found.to_json() | {"spent_s": round(spent_s, 3)}
        plan["auto"]["looks"].append(about | {"rounds": plan["rounds"], "ended": ends})
        plan["auto"]["ended"] = ends
        done = Counter(record.point for record in made)
        for point in plan["points"]:
            if ends and not point["oversubscribed"] and point["point"] not in failed:
                point["rounds"] = done[point["point"]]
        write_json(self.run.path / MANIFEST, manifest)
