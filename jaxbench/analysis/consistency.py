# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Whether facts that a run folder records twice agree. A value that was changed in only one place is damage."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jaxbench.errors import UserError
from jaxbench.records import model
from jaxbench.records.schema import PointRecord


def require(path: Path, manifest: dict[str, Any], config: dict[str, Any], points: Sequence[Any]) -> None:
    """Checks the points of a training run against its manifest and config.

    Raises UserError if a point was recorded on a device that the machine does not have, with more cores than the
    machine has, or with another amount of work than comparable points.
    """
    recorded = [point for point in points if point.record is not None]
    for point in recorded:
        if why := _elsewhere(point, manifest) or _crowded(point, manifest):
            raise UserError(f"'{path}' is damaged: {point.point} was recorded {why}: restore the file.")
    if why := _other_work([point for point in recorded if not point.explains], config):
        raise UserError(f"'{path}' is damaged: {why}: restore the file.")


def _elsewhere(point: Any, manifest: dict[str, Any]) -> str:
    """A clause if the point's device kind is not in the manifest; else "". With the name of a slower device and its
    lower peak, MFU would look better. A manifest of jobs on different machines is not checked."""
    kinds = {manifest.get("device_kind"), *(manifest.get("device_kinds") or ())} - {None}
    known = kinds and manifest.get("platform") == point.platform and not manifest.get("apart")
    if not known or point.record.device_kind in kinds:
        return ""
    return f"on '{point.record.device_kind}', and its manifest is of '{manifest.get('device_kind')}'"


def _crowded(point: Any, manifest: dict[str, Any]) -> str:
    """A point with more devices than cores that is not marked so, as a clause. Such a point has no efficiency."""
    cores = manifest.get("cores")
    alone = point.processes == 1 and point.platform == "cpu"  # the cores of several processes may be several hosts'
    if not (alone and isinstance(cores, int)) or point.oversubscribed or point.devices <= cores:
        return ""
    return f"with a core for each of its {point.devices} devices, and its manifest has {cores} cores"


def _other_work(points: Sequence[Any], config: dict[str, Any]) -> str:
    """Two points of one model and batch with different work, as a clause. Strategy and devices do not change the FLOPs,
    unless the model grows with the devices."""
    like: dict[Any, PointRecord] = {}
    for point in points:
        if point.scaling == "weak" and config.get("weak") == "model":
            continue
        first = like.setdefault((point.global_batch, *sorted(point.levers.items())), point.record)
        found = model.differences(first, point.record)
        found.pop("gradient_bytes", None)  # one device sends nothing
        if found:
            return f"{first.point} and {point.point} are of one model ({model.sentence(found, 'there', 'here')})"
    return ""
