# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Everything that a figure of a run that sweeps levers may draw from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxbench.analysis.arms import Arm, Place, arms_of
from jaxbench.analysis.batches import Knee, Latency
from jaxbench.analysis.largest_batch import Search
from jaxbench.analysis.phases import Phases
from jaxbench.analysis.remat_law import Law


@dataclass(frozen=True, kw_only=True)
class LeverMaterial:
    """A run's conclusions, as the figures see them."""

    experiment: str
    swept: Sequence[str]
    places: Sequence[Place]
    phases: Sequence[Phases] = ()
    knees: Sequence[Knee] = ()
    latencies: Sequence[tuple[Place, list[Latency]]] = ()
    search: Search | None = None
    laws: Sequence[Law] = ()
    unit: str = "examples"

    @property
    def arms(self) -> list[Arm]:
        return arms_of(self.places)
