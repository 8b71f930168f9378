# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The lever `reduction`: how gradients are averaged over devices. The suffix ":bfloat16" chooses the number format."""

from typing import NamedTuple

from jaxbench.levers._lever import Lever

WAYS = ("each", "fused", "bucketed", "scatter", "ring")


class Reduction(NamedTuple):
    """way: one of `WAYS`. dtype: of the sums and of the transfers; None: each array's own."""

    way: str
    dtype: str | None


def _parse(text: str) -> Reduction | None:
    """The value of a word; None for the strategy's own way."""
    way, _, dtype = text.partition(":")
    return None if text == "strategy" else Reduction(way, dtype or None)


REDUCTION = Lever(
    __name__,
    rank=9,
    default="strategy",
    values=("strategy", *(way + dtype for dtype in ("", ":bfloat16") for way in WAYS)),
    parse=_parse,
    changes="program",
    untrained="a training averages gradients as its strategy does",
)
