# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The seconds of products and attention kernels on a GPU, by their sizes.

A product is divided into tiles, and each multiprocessor computes one tile at a time, so the last wave of tiles may
leave most of them idle. The constants are those that agree best with a published sweep of single products
(`catalog/published/xla_products.csv`). The rates of attention are from published measurements by width and length
(`catalog/attention.csv`). Nothing here is fitted to a training run.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from jaxbench.catalog import rows
from jaxbench.hlo.product_flops import ProductSize

# Rows and columns of a tile, and the share of the rate of the largest tile that it reaches.
_TILES = ((256, 128, 1.0), (128, 128, 0.95), (64, 128, 0.8), (64, 64, 0.65))
_FILL = 128  # a tile takes as long as if this much more were contracted: it is filled at first and written at last
PRODUCT_S = 5e-6  # the shortest product of the sweep takes this long
KERNEL_S = 1e-6  # of any other kernel, as XLA's own model assumes (openxla/xla, gpu_performance_model_base.h)
# Work takes this much longer while a message travels, because both use multiprocessors and memory: the mean over models
# and GPUs of arXiv:2507.03114, July 2025 (at most 40 %).
OVERLAP = 0.189
_AT = ("fa2", "forward", 128, 2048)  # what `attention_share` of ceilings.csv is measured for


def product_s(size: ProductSize, flop_per_s: float, cores: int) -> float:
    """The seconds of a product. flop_per_s: what a large product reaches. cores: multiprocessors of the GPU."""
    spent = []
    # The library picks the best tile and either orientation, so the shortest time counts.
    for sides in (size.rows, size.columns), (size.columns, size.rows):
        for tall, wide, share in _TILES:
            tiles = size.batch * math.ceil(sides[0] / tall) * math.ceil(sides[1] / wide)
            tile_s = 2 * tall * wide * (size.contracted + _FILL) * cores / (share * flop_per_s)
            spent.append(math.ceil(tiles / cores) * tile_s)  # whole waves: idle multiprocessors wait for the last tile
    return PRODUCT_S + min(spent)


def attention_factor(kernel: str, direction: str, width: int, positions: int) -> float:
    """The rate of an attention kernel over that of FlashAttention-2 forward at width 128 and 2,048 positions.

    kernel: fa2 | cudnn. direction: forward | backward. Between measured sizes it is interpolated over their logarithms,
    and beyond them it is that of the nearest.
    """
    known = _attention()
    widths = sorted({of[2] for of in known if of[:2] == (kernel, direction)})
    lengths = sorted({of[3] for of in known if of[:2] == (kernel, direction)})
    by_width = []
    for at in widths:  # every width was measured at every length
        measured = [known[kernel, direction, at, length] for length in lengths]
        by_width.append(float(np.interp(math.log(positions), np.log(lengths), measured)))
    return float(np.interp(math.log(width), np.log(widths), by_width)) / known[_AT]


@functools.cache
def _attention() -> dict[tuple[str, str, int, int], float]:
    """TFLOP/s by kernel, direction, head width and positions."""
    return {
        (row["kernel"], row["direction"], int(row["width"]), int(row["positions"])): float(row["tflops"])
        for row in rows("attention.csv")
    }
