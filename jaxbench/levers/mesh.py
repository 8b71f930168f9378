# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The lever `mesh`: the mesh of the strategy hybrid, "data=2,tensor=4", or "all" possible meshes."""

from jaxbench.levers._lever import Lever

EVERY_MESH = "all"

# The value stays text, because only the strategies know the axes.
MESH = Lever(
    __name__,
    rank=10,
    default="strategy",  # the strategy's own
    parse=str,
    changes="program",
    separator=";",  # a mesh contains commas
    sweeps=(EVERY_MESH,),
)
