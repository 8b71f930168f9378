# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Whether what a run folder says twice agrees: a number that was changed in one place only is damage."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jaxbench.errors import UserError
from jaxbench.records import identity
from jaxbench.records.schema import PointRecord


def require(path: Path, manifest: dict[str, Any], config: dict[str, Any], points: Sequence[Any]) -> None:
    """points: of training steps. Raises UserError for one that is recorded on another device than the machine has, or
    as if it had cores for itself that the machine lacks, or with another amount of work than its like."""
    recorded = [point for point in points if point.record is not None]
    for point in recorded:
        if why := _elsewhere(point, manifest) or _crowded(point, manifest):
            raise UserError(f"'{path}' is damaged: {point.point} was recorded {why}: restore the file.")
    if why := _other_work([point for point in recorded if not point.explains], config):
        raise UserError(f"'{path}' is damaged: {why}: restore the file.")


def _elsewhere(point: Any, manifest: dict[str, Any]) -> str:
    """A faster device by a slower one's name has a smaller peak. Jobs on different machines are named as such."""
    kinds = {manifest.get("device_kind"), *(manifest.get("device_kinds") or ())} - {None}
    known = kinds and manifest.get("platform") == point.platform and not manifest.get("apart")
    if not known or point.record.device_kind in kinds:
        return ""
    return f"on '{point.record.device_kind}', and its manifest is of '{manifest.get('device_kind')}'"


def _crowded(point: Any, manifest: dict[str, Any]) -> str:
    """Devices that share cores have no efficiency."""
    cores = manifest.get("cores")
    alone = point.processes == 1 and point.platform == "cpu"  # the cores of several processes may be several hosts'
    if not (alone and isinstance(cores, int)) or point.oversubscribed or point.devices <= cores:
        return ""
    return f"with a core for each of its {point.devices} devices, and its manifest has {cores} cores"


def _other_work(points: Sequence[Any], config: dict[str, Any]) -> str:
    """One model has the same FLOPs at the same batch, whatever strategy and devices, unless it grows with them."""
    like: dict[Any, PointRecord] = {}
    for point in points:
        if point.scaling == "weak" and config.get("weak") == "model":
            continue
        first = like.setdefault((point.global_batch, *sorted(point.levers.items())), point.record)
        found = identity.model_differences(first, point.record)
        found.pop("gradient_bytes", None)  # one device sends nothing
        if found:
            return (
                f"{first.point} and {point.point} are of one model ({identity.model_sentence(found, 'there', 'here')})"
            )
    return ""
