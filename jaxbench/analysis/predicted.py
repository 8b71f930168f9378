# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What the machine's card predicts for the collectives of a step: alpha for each, and beta for the bytes sent."""

from __future__ import annotations

import math
from typing import Any

from jaxbench.analysis.points import Point
from jaxbench.records.schema import Collective

# XLA's names, and those of the measured collectives of a card.
_OPS = {
    "all-reduce": "all_reduce", "all-gather": "all_gather", "reduce-scatter": "reduce_scatter",
    "all-to-all": "all_to_all", "collective-permute": "ppermute", "collective-broadcast": "broadcast",
}  # fmt: skip


def communication_s(point: Point, card: dict[str, Any] | None) -> float:
    """Seconds of all collectives of one step, one after the other; NaN if the card lacks one of them.

    The sum of count x alpha + wire bytes / bus bandwidth (docs/METRICS.md, Communication).
    """
    if point.record is None or card is None:
        return math.nan
    return sum((seconds(one, point.devices, card) for one in point.record.passport.collectives), 0.0)


def seconds(collective: Collective, devices: int, card: dict[str, Any]) -> float:
    """Of one kind of collective among so many devices; NaN if the card lacks it."""
    group = collective.group or devices
    if group == 1 or not collective.bytes:
        return 0.0
    link = _link(_OPS.get(collective.kind, ""), group, card)
    if link is None or not (collective.wire_bytes and link["bus_bytes_per_s"]):
        return math.nan
    return float(collective.count * link["alpha_s"] + collective.wire_bytes / link["bus_bytes_per_s"])


def _link(op: str, group: int, card: dict[str, Any]) -> dict[str, Any] | None:
    """Of a whole mesh of so many devices, in float32 where that was measured."""
    whole = [link for link in card["links"] if (link["op"], link["devices"]) == (op, group)]
    whole = [link for link in whole if "x" not in str(link.get("mesh", "")) and link.get("bus_bytes_per_s")]
    return min(whole, key=lambda link: link["dtype"] != "float32", default=None)
