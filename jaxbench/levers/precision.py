# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The lever `precision`: the format that the products of a step are computed in."""

from jaxbench.levers._lever import Lever

# The precisions whose products are made in 16 bits, and the format of their operands.
SIXTEEN_BITS = {"bfloat16": "bfloat16", "float16": "float16", "mixed": "bfloat16"}

PRECISION = Lever(
    __name__,
    rank=1,
    default="default",  # what JAX does unasked: float32 arrays, products as the platform does them
    values=("default", "float32", "tf32", *SIXTEEN_BITS),
    parse=str,
    changes="workload",
    view="precision",
)
