# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What a device did during a timed block. No jax.

Source of the reasons for a low clock: NVIDIA, NVML API Reference, nvmlDeviceGetCurrentClocksEventReasons.
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxbench.records.documents import AtLeastOne, Count, Finite, NonNegative

POWER_LIMIT = 0x4
# Other bits, such as an idle GPU or a clock that somebody set, are no fault.
REASONS = {
    POWER_LIMIT: "the power limit",
    0x8: "a hardware slowdown",
    0x20: "heat (by the driver)",
    0x40: "heat (by the hardware)",
    0x80: "the power brake",
}
# Heat and hardware. A power limit lowers the clock of every GPU that works hard.
FAULTS = sum(bit for bit in REASONS if bit != POWER_LIMIT)
# A block below this share of the default clock is slowed. NVBench discards such samples (NVIDIA/nvbench#231).
LEAST_CLOCK = 0.75


def named(bits: int) -> list[str]:
    """The reasons that are set."""
    return [text for bit, text in REASONS.items() if bits & bit]


@dataclass(frozen=True, kw_only=True)
class DevicePower:
    """One device during one timed block: means over the readings; None: the device does not say.

    device: "GPU 0", or "package-0" of the processors. reasons: the bits that were set in any reading
    (`REASONS`). joules: of the block, from the counter before and after it. default_mhz: the clock that the
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
