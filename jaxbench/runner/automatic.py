# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""measure.rounds=auto: rounds are added until a look at their intervals, or the time that they have, ends the run.

The plan in the manifest says whether the run has ended, so one that was interrupted continues, and one that has ended
stays ended. The look itself (`analysis.stopping`) is given by the roof: no floor of this wing imports the analysis.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jaxbench.config import Settings
from jaxbench.records.schema import RoundRecord
from jaxbench.records.store import MANIFEST, RunFolder, write_json

Look = Callable[[RunFolder], dict[str, Any]]  # see analysis.stopping.look; "ended" and "shares" are read here


def plan(settings: Settings) -> dict[str, Any]:
    """The manifest's plan of what `look` needs, and of the looks that were taken."""
    return {"budget_s": settings.budget_s, "ended": "", "looks": []}


@dataclass(frozen=True)
class Automatic:
    """The rounds of a run that ends by looking."""

    run: RunFolder
    look: Look

    @property
    def about(self) -> dict[str, Any]:
        """The plan, as it is now."""
        return dict(self.run.manifest()["plan"]["auto"])

    @property
    def spent_s(self) -> float:
        """The seconds that rounds took until the last look."""
        return max((float(each["spent_s"]) for each in self.about["looks"]), default=0.0)

    def looked(self, rounds: int, spent_s: float, *, ends: str = "") -> dict[str, Any]:
        """Looks at the rounds so far, and writes what it found. ends: why no round follows, "precise" or "budget".

        rounds: how many there are. spent_s: the seconds that they took.
        """
        manifest = self.run.manifest()
        plan = manifest["plan"]
        plan["rounds"] = rounds
        write_json(self.run.path / MANIFEST, manifest)
        found = {**self.look(self.run), "rounds": rounds, "spent_s": round(spent_s, 3)}
        if found["ended"] != "nothing":  # all points failed; once they recover, there is something to look at
            kept = {name: value for name, value in found.items() if name != "shares"}
            if ends:
                plan["auto"]["ended"] = kept["ended"] = ends
                done = Counter(each.point for each in self.run.records() if isinstance(each, RoundRecord))
                for point in plan["points"]:
                    if not point["oversubscribed"]:
                        point["rounds"] = max(point["rounds"], done[point["point"]])
            plan["auto"]["looks"].append(kept)
            write_json(self.run.path / MANIFEST, manifest)
        return found
