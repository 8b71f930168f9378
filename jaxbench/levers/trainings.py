# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The lever `trainings`: the number of equal concurrent trainings on the same devices, each in its own process."""

from typing import NamedTuple

from jaxbench.levers._lever import Lever


class Sharing(NamedTuple):
    """at_once: the number of concurrent trainings. mps: whether they share a GPU by NVIDIA's Multi-Process Service.

    The service overlaps their kernels. Without it they take turns.
    """

    at_once: int
    mps: bool = False


def _parse(text: str) -> Sharing:
    count, colon, service = text.partition(":")
    if not count.isdecimal() or int(count) < 1 or (colon and service != "mps"):
        raise ValueError("is no number of trainings: use 2, or 2:mps on an NVIDIA GPU, for example.")
    return Sharing(int(count), bool(colon))


TRAININGS = Lever(
    __name__,
    rank=14,
    default="1",
    parse=_parse,
    changes="feed",
    untrained="several trainings at once are measured, not kept",
    view="sharing",
)
