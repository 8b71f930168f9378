# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The lever `schedule`: in which order the stages of a pipeline work; their micro-batches are those of `accumulate`."""

from jaxbench.levers._lever import Lever

SCHEDULE = Lever(
    __name__, rank=11, default="gpipe", values=("gpipe", "1f1b", "interleaved"), parse=str, changes="program"
)
