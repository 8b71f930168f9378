# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Parses XLA out-of-memory errors.

For a program that does not fit, an accelerator's compiler raises RESOURCE_EXHAUSTED; a CPU's only reports the memory.
To a search this is a result, "does not fit", and the message often says how much memory the program needs.
"""

from __future__ import annotations

import re

from jaxbench.records import schema
from jaxbench.runner.client import WorkerError

REFUSED = "RESOURCE_EXHAUSTED"
_SPACE = re.compile(r"memory space (\w+)")


def refused(error: WorkerError) -> bool:
    """Whether the compiler refused the step because it does not fit the memory of a device.

    A kernel that overflows another memory of the chip (vmem, smem) is an ordinary error.
    """
    reason = str(error)
    space = _SPACE.search(reason)
    return error.stage == "compile" and REFUSED in reason and (space is None or space[1] == "hbm")


def needed_bytes(error: WorkerError) -> int | None:
    """The bytes that the refused step needs; None if the message does not tell."""
    return schema.needed_bytes(str(error))
