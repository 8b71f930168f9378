# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What a sweep is to measure: points, rounds, and the processes that share them."""

from __future__ import annotations

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

    order: the CPU cores to take first. source: the copy of this package that its processes run, as `machine.source.of`;
    None: that of this process. automatic: decides when there are enough rounds; None: their number is fixed. crew: the
    processes of the launch that measures; None: there is one.
    """

    run: RunFolder
    points: Sequence[Placed]
    config: dict[str, Any]
    experiment: str  # a name or an absolute path
    session: int  # how often this run folder was continued
    order: Sequence[int] = ()
    source: dict[str, str] | None = None
    automatic: Automatic | None = None
    crew: Crew | None = None

    @property
    def counts(self) -> tuple[int, int]:
        """(rounds, processes) that are asked for so far."""
        if self.automatic is not None:
            return self.automatic.asked, self.automatic.asked // self.automatic.rounds_each
        return counts(self.config["measure"]["rounds"], self.config["measure"]["processes"])

    @property
    def rounds(self) -> int:
        return self.counts[0]

    @property
    def fresh(self) -> list[int]:
        """The rounds before which processes are replaced, so that several measure each point; not oversubscribed ones,
        whose times claim nothing."""
        rounds, processes = self.counts
        return [rounds * i // processes for i in range(1, processes)]

    def more(self) -> bool:
        """Whether further rounds are asked for, now that all so far are measured."""
        return self.automatic is not None and self.automatic.more()
