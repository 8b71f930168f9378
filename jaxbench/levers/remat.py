# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The lever `remat`: rematerialization, which activations the backward pass recomputes instead of storing them."""

from jaxbench.levers._lever import Lever

REMAT = Lever(
    __name__,
    rank=2,
    default="none",
    values=("none", "sqrt", "block", "dots_saveable", "offload"),
    parse=str,
    changes="workload",
    view="remat",
)
