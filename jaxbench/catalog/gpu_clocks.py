# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Why the clock of an NVIDIA GPU is lower than its work asks for, by the bits of NVML.

Source: NVIDIA, NVML API Reference, nvmlDeviceGetCurrentClocksEventReasons.
"""

from __future__ import annotations

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
