# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Programs that do not fit: an accelerator's compiler raises RESOURCE_EXHAUSTED where a CPU's reports the memory.

To a search this is a result, "does not fit", and the message often says by how much.
"""

from __future__ import annotations

import re

from jaxbench.runner.client import WorkerError

REFUSED = "RESOURCE_EXHAUSTED"
# "Ran out of memory in memory space hbm. Used 18.84G of 15.75G hbm." Letters mean powers of 1024. The size of a single
# allocation is not read, as it is only a part of the step's memory.
_USED = re.compile(r"Used ([\d.]+)([KMGT]?)i?B? of [\d.]+[KMGT]?i?B? hbm")
_SPACE = re.compile(r"memory space (\w+)")
_UNITS = {letter: 1024**power for power, letter in enumerate(["", "K", "M", "G", "T"])}


def refused(error: WorkerError) -> bool:
    """Whether the compiler found that the step does not fit a device's memory.

    A kernel that overflows another memory of the chip (vmem, smem) is an ordinary error.
    """
    reason = str(error)
    space = _SPACE.search(reason)
    return error.stage == "compile" and REFUSED in reason and (space is None or space[1] == "hbm")


def needed_bytes(error: WorkerError) -> int | None:
    """The memory that the refused step needs; None where the message does not say."""
    match = _USED.search(str(error))
    return round(float(match[1]) * _UNITS[match[2]]) if match else None
