# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What a device did during a timed block. No jax."""

from __future__ import annotations

from dataclasses import dataclass

from jaxbench.catalog.gpu_clocks import FAULTS, LEAST_CLOCK
from jaxbench.records.documents import AtLeastOne, Count, Finite, NonNegative


@dataclass(frozen=True, kw_only=True)
class DevicePower:
    """One device during one timed block: means over the readings; None: the device does not say.

    device: "GPU 0", or "package-0" of the processors. reasons: the bits that were set in any reading
    (`catalog.gpu_clocks`). joules: of the block, from the counter before and after it. default_mhz: the clock that the
    device is rated for.
    """

    device: str
    readings: AtLeastOne
    sm_mhz: NonNegative | None = None
    memory_mhz: NonNegative | None = None
    power_w: NonNegative | None = None
    temperature_c: Finite | None = None
    reasons: Count | None = None
    joules_before: NonNegative | None = None
    joules_after: NonNegative | None = None
    joules: NonNegative | None = None
    default_mhz: NonNegative | None = None

    @property
    def slowed(self) -> bool:
        """Whether heat or a fault of the hardware lowered its clock, or the clock was below `LEAST_CLOCK` of the
        default."""
        low = self.sm_mhz is not None and bool(self.default_mhz) and self.sm_mhz < LEAST_CLOCK * (self.default_mhz or 0)
        return bool((self.reasons or 0) & FAULTS) or low
