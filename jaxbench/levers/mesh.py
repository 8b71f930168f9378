# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The lever `mesh`: the mesh of the strategy hybrid, "data=2,tensor=4", or "all" that there are of so many devices."""

from jaxbench.levers._lever import Lever

EVERY_MESH = "all"

# Its value stays text: which axes there are, the strategies know.
MESH = Lever(
    __name__,
    rank=10,
    default="strategy",  # the strategy's own
    parse=str,
    changes="program",
    separator=";",  # a mesh has commas of its own
    sweeps=(EVERY_MESH,),
)
