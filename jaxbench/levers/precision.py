# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The lever `precision`: the number format of the products in a step."""

from jaxbench.levers._lever import Lever

# The 16-bit precisions, and the format of the operands of their products.
SIXTEEN_BITS = {"bfloat16": "bfloat16", "float16": "float16", "float16_unscaled": "float16", "mixed": "bfloat16"}

PRECISION = Lever(
    __name__,
    rank=1,
    default="default",  # JAX's default: float32 arrays, and products in the platform's default precision
    values=("default", "float32", "tf32", *SIXTEEN_BITS),
    parse=str,
    changes="workload",
    view="precision",
)
