# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Compilers that refuse: an accelerator's raises RESOURCE_EXHAUSTED where a CPU's would say how much a step holds.

To a search this is an answer, "does not fit", and the sentence often says by how much.
"""

from __future__ import annotations

import re

from jaxbench.runner.client import WorkerError

REFUSED = "RESOURCE_EXHAUSTED"
# "Ran out of memory in memory space hbm. Used 18.84G of 15.75G hbm." Letters mean powers of 1024. What a sentence says
# of a single allocation is not read: it is a part of what the step holds.
_USED = re.compile(r"Used ([\d.]+)([KMGT]?)i?B? of [\d.]+[KMGT]?i?B? hbm")
_SPACE = re.compile(r"memory space (\w+)")
_UNITS = {letter: 1024**power for power, letter in enumerate(["", "K", "M", "G", "T"])}


def refused(error: WorkerError) -> bool:
    """Whether the compiler found that the step does not fit a device's memory.

    A kernel that overflows another memory of the chip (vmem, smem) is an error as any other.
    """
    reason = str(error)
    space = _SPACE.search(reason)
    return error.stage == "compile" and REFUSED in reason and (space is None or space[1] == "hbm")


def said_bytes(error: WorkerError) -> int | None:
    """What the refused step would hold; None where the sentence does not say."""
    found = _USED.search(str(error))
    return round(float(found[1]) * _UNITS[found[2]]) if found else None
