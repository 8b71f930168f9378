# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The lever `input`: the source of the batch of each step."""

from typing import NamedTuple

from jaxbench.levers._lever import Lever


class Source(NamedTuple):
    """kind: device, host or pipeline. ahead: the number of batches that a pipeline prefetches."""

    kind: str
    ahead: int = 0


def _parse(text: str) -> Source:
    kind, _, ahead = text.partition(":")
    if text in ("device", "host"):
        return Source(text)
    if kind != "pipeline" or not ahead.isdecimal():
        raise ValueError("is unknown: use device, host or pipeline:2, for example.")
    return Source(kind, int(ahead))


INPUT = Lever(
    __name__,
    rank=8,
    default="device",
    parse=_parse,
    changes="feed",
    untrained="a training reads real data in its own order",
    view="inputs",
)
