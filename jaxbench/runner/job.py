# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The input of a sweep: points, rounds, and the sets of processes that share them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxbench.config import counts
from jaxbench.records.store import RunFolder
from jaxbench.runner.automatic import Automatic
from jaxbench.runner.crew import Crew
from jaxbench.runner.plan import Placed


@dataclass(frozen=True, kw_only=True)
class SweepJob:
    """The input of a sweep.

    order: the CPU cores to take first. memory_bytes: of the machine. source: the copy of this package that its
    processes run, as in `machine.source.of`; None: that of this process. automatic: decides when there are enough
    rounds; None: their number is fixed. crew: the processes of the launch; None: there is no launch.
    """

    run: RunFolder
    points: Sequence[Placed]
    config: dict[str, Any]
    experiment: str  # a name or an absolute path
    session: int  # how often this run folder was continued
    order: Sequence[int] = ()
    memory_bytes: float = math.inf
    source: dict[str, str] | None = None
    automatic: Automatic | None = None
    crew: Crew | None = None

    @property
    def counts(self) -> tuple[int, int]:
        """(rounds, sets of processes) that the config asks for; with rounds=auto the smallest number of rounds."""
        return counts(self.config["measure"]["rounds"], self.config["measure"]["processes"])

    @property
    def live(self) -> bool:
        """Whether all sets of processes may live at the same time.

        They may not on an accelerator, which belongs to one process, nor in a launch, because the free memory of the
        other hosts is unknown here."""
        return not self.crew and all(point.worker()[1]["platform"] == "cpu" for point in self.points)
