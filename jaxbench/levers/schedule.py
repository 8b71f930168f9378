# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The lever `schedule`: the order of work in a pipeline's stages. `accumulate` sets the number of micro-batches."""

from jaxbench.levers._lever import Lever

SCHEDULE = Lever(
    __name__, rank=11, default="gpipe", values=("gpipe", "1f1b", "interleaved"), parse=str, changes="program"
)
