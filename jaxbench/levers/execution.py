# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The lever `execution`: how the step reaches the devices."""

from jaxbench.levers._lever import Lever

EXECUTION = Lever(
    __name__,
    rank=7,
    default="donated",
    values=("eager", "unfused", "jit", "donated"),
    parse=str,
    changes="program",
    untrained="a training always compiles its step and donates its state",
)
