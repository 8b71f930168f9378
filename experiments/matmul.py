# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Matrix products: square, tall and batched, by number format, tiled and untiled; or a search for the fastest (3 min).

A size s is the side of the square product. The tall product, (16 s, s/4) by (s/4, s/4), and the batched one, 64 of side
s/4, have as many FLOPs. --config.search=true measures only XLA's product, over a grid of shapes (or all combinations of
three --config.sizes, if given), to find the highest FLOP/s of the machine.
"""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.workloads import CaseSet
from jaxbench.workloads.cases import choose, sizes, typed
from jaxbench.workloads.kernels.matmul import DTYPES, IMPLS, SHAPES, cases, search, shape

SIDES = [2**i for i in range(8, 15)]


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.measures = "cases"
    config.dtypes = "float32,bfloat16,float16"
    config.shapes = "square,tall,batched"
    config.impls = "all"  # jit, numpy, and tiled and untiled in both
    config.search = False
    return config


def build(config: ConfigDict) -> CaseSet:
    choose("ops", config.ops, ("matmul",))
    dtypes, impls = choose("dtypes", config.dtypes, DTYPES), choose("impls", config.impls, IMPLS)
    if config.search:
        shapes, impls = search(sizes("sizes", config.sizes, ())), ("jit",)
    else:
        sides = sizes("sizes", config.sizes, SIDES)
        shapes = tuple(shape(name, side) for name in choose("shapes", config.shapes, SHAPES) for side in sides)
    return CaseSet(
        name="matmul",
        view="matmul",
        cases=tuple(case for each in shapes for dtype in dtypes for case in cases(each, dtype, impls)),
        typed=typed(config.sizes),
    )
