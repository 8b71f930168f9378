# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Parses XLA out-of-memory errors: how much memory the program needs."""

from __future__ import annotations

import re

# "Ran out of memory in memory space hbm. Used 18.84G of 15.75G hbm." and "Ran out of memory on HBM, the total memory
# required for HLO temporaries (8.80G) exceeds available HBM (1.00M)." Letters mean powers of 1024. The size of a single
# allocation is ignored, because it is only a part of the step's memory.
_USED = re.compile(r"(?:Used (?=[^ ]+ of [^ ]+ hbm)|total memory required for HLO temporaries \()([\d.]+)([KMGT]?)i?B?")
_UNITS = {letter: 1024**power for power, letter in enumerate(["", "K", "M", "G", "T"])}


def needed_bytes(reason: str) -> int | None:
    """The bytes per device that the refused program needs; None if the message does not say."""
    match = _USED.search(reason)
    return round(float(match[1]) * _UNITS[match[2]]) if match else None
