# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Programs that do not fit: an accelerator's compiler raises RESOURCE_EXHAUSTED where a CPU's reports the memory.

To a search this is a result, "does not fit", and the message often says by how much.
"""

from __future__ import annotations

import re

from jaxbench.records import schema
from jaxbench.runner.client import WorkerError

REFUSED = "RESOURCE_EXHAUSTED"
_SPACE = re.compile(r"memory space (\w+)")


def refused(error: WorkerError) -> bool:
    """Whether the compiler found that the step does not fit a device's memory.

    A kernel that overflows another memory of the chip (vmem, smem) is an ordinary error.
    """
    reason = str(error)
    space = _SPACE.search(reason)
    return error.stage == "compile" and REFUSED in reason and (space is None or space[1] == "hbm")


def needed_bytes(error: WorkerError) -> int | None:
    """The memory that the refused step needs; None where the message does not say."""
    return schema.needed_bytes(str(error))
