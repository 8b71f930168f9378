# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The lever `part`: the whole step, the step without its last phases, or inference."""

from jaxbench.levers._lever import Lever

PART = Lever(
    __name__,
    rank=6,
    default="step",
    values=("step", "forward", "gradient", "local", "inference"),
    parse=str,
    changes="program",
    untrained="a part of a step does not train",
    view="phases",
)
