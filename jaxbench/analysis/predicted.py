# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Predicts the time of a step's collectives from the machine profile: alpha for each, and beta for the bytes sent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from jaxbench.analysis.points import MeasuredPoint, hosts_of
from jaxbench.records.schema import Collective

# XLA's names of collectives, and the names in a machine profile.
_OPS = {
    "all-reduce": "all_reduce", "all-gather": "all_gather", "reduce-scatter": "reduce_scatter",
    "all-to-all": "all_to_all", "collective-permute": "ppermute", "collective-broadcast": "broadcast",
}  # fmt: skip


def communication_s(
    point: MeasuredPoint, card: dict[str, Any] | None, workers: Mapping[str, Any] | None = None
) -> float:
    """The seconds of all collectives of one step, one after another; NaN if the profile does not have one of them.

    It is the sum of count x alpha + wire bytes / bus bandwidth (docs/metrics, Communication). card: the machine
    profile. workers: from the manifest, with the hosts of a point's processes.
    """
    if point.record is None or card is None:
        return math.nan
    record, hosts = point.record, hosts_of(point, workers or {})
    spread = record.processes, hosts
    return sum((seconds(one, record.devices, card, *spread) for one in record.passport.collectives), 0.0)


def seconds(collective: Collective, devices: int, card: Mapping[str, Any], processes: int = 1, hosts: int = 1) -> float:
    """The seconds of all collectives of one kind, for these numbers of devices, processes and hosts. NaN if the profile
    does not have that kind and group."""
    group = collective.group or devices
    if group == 1 or not collective.bytes:
        return 0.0
    if processes > 1 and group < devices:
        return math.nan  # the record does not show which processes such a group spans
    link = _link(_OPS.get(collective.kind, ""), (group, processes, hosts), card)
    if link is None or not (collective.wire_bytes and link["bus_bytes_per_s"]):
        return math.nan
    return float(collective.count * link["alpha_s"] + collective.wire_bytes / link["bus_bytes_per_s"])


def _link(op: str, group: tuple[int, int, int], card: Mapping[str, Any]) -> dict[str, Any] | None:
    """The profile's link over a whole mesh of (devices, processes, hosts); float32 if that was measured."""
    whole = [link for link in card["links"] if link["op"] == op and group_of(link) == group]
    whole = [link for link in whole if "x" not in str(link.get("mesh", "")) and link.get("bus_bytes_per_s")]
    return min(whole, key=lambda link: link["dtype"] != "float32", default=None)


def group_of(link: Mapping[str, Any]) -> tuple[int, int, int]:
    """(devices, processes, hosts) of a link. Older profiles were measured in one process."""
    return link["devices"], link.get("group_processes", 1), link.get("group_hosts", 1)
