# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""measure.rounds=auto: rounds are added, a set of new processes at a time, until a look at their intervals ends it.

The plan in the manifest says how many rounds are asked for so far, so a run that was interrupted is incomplete and
continues, and one that has ended stays ended. The look itself (`analysis.stopping`) is given by the roof: no floor of
this wing imports the analysis.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jaxbench.config import MOST_PROCESSES, ROUNDS_EACH, Settings
from jaxbench.records.store import MANIFEST, RunFolder, write_json
from jaxbench.runner.plan import OVERSUBSCRIBED_ROUNDS

Look = Callable[[RunFolder], dict[str, Any]]  # see analysis.stopping.look; "ended" and "rounds" are read here


def plan(settings: Settings) -> dict[str, Any]:
    """The manifest's plan of what `look` needs, and of the looks that were taken."""
    most = (settings.processes or MOST_PROCESSES) * ROUNDS_EACH
    return {
        "budget_s": settings.budget_s,
        "rounds_each": ROUNDS_EACH,  # of each process
        "most_rounds": most,
        "ended": "",
        "looks": [],
    }


@dataclass(frozen=True)
class Automatic:
    """The rounds of a run that ends by looking."""

    run: RunFolder
    look: Look

    @property
    def asked(self) -> int:
        """How many rounds are asked for so far."""
        return int(self.run.manifest()["plan"]["rounds"])

    @property
    def rounds_each(self) -> int:
        """How many rounds each process measures, as the run began."""
        return int(self.run.manifest()["plan"]["auto"]["rounds_each"])

    def more(self) -> bool:
        """Looks at the finished rounds, and asks for those of one more set of processes unless that ends the run.
        Returns whether it did. Everything is written before anything is measured."""
        manifest = self.run.manifest()
        about = manifest["plan"]["auto"]
        if about["ended"]:
            return False
        found = self.look(self.run)
        if found["ended"] == "nothing":  # all points failed; once they recover, there is something to look at
            return False
        about["looks"].append(found)
        about["ended"] = found["ended"]
        if not found["ended"]:
            rounds = manifest["plan"]["rounds"] = found["rounds"] + about["rounds_each"]
            for point in manifest["plan"]["points"]:
                point["rounds"] = min(rounds, OVERSUBSCRIBED_ROUNDS) if point["oversubscribed"] else rounds
        write_json(self.run.path / MANIFEST, manifest)
        return not found["ended"]
