# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The lever `sequence_parallel`: splits positions over the axis `tensor`, between the products that it splits."""

from jaxbench.levers._lever import Lever

SEQUENCE_PARALLEL = Lever(
    __name__, rank=12, default="off", values=("off", "on"), parse=lambda text: text == "on", changes="program"
)
