# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How much memory a refused program needs, from the error of XLA."""

from __future__ import annotations

import re

# XLA says "Ran out of memory in memory space hbm. Used 18.84G of 15.75G hbm." or "Ran out of memory on HBM, the total
# memory required for HLO temporaries (8.80G) exceeds available HBM (1.00M)." Letters mean powers of 1024. The size of a
# single allocation is ignored, because it is only a part of the step's memory.
_USED = re.compile(r"(?:Used (?=[^ ]+ of [^ ]+ hbm)|total memory required for HLO temporaries \()([\d.]+)([KMGT]?)i?B?")


def needed_bytes(reason: str) -> int | None:
    """The bytes per device that a refused program needs, from XLA's out-of-memory error; None if that does not say."""
    match = _USED.search(reason)
    return round(float(match[1]) * 1024 ** " KMGT".index(match[2] or " ")) if match else None
