# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The share of its rated power that an accelerator draws: measured in a run, else published."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jaxbench.catalog import hardware, power_share
from jaxbench.errors import UserError
from jaxbench.report import build

FLAG = "--run"


@dataclass(frozen=True, kw_only=True)
class PowerShare:
    """value: of the rated power, in [0, 1] apart from short excursions. source: where it is from, as a clause. By
    default the published share."""

    value: float = power_share.TRAINING
    source: str = f"{power_share.MEASURED_ON}, published in {power_share.SOURCE}"


def measured(folder: Path, rated: Mapping[str, float]) -> dict[str, PowerShare]:
    """The share that the GPUs of a run drew in its timed blocks, by their name in the catalogue: the median of its
    points.

    rated: watts of one device, by that name. Raises UserError: the run has no readings of GPUs, its device has no
    rating, or its power was limited.
    """
    run = build.find(folder)
    manifest, config, rows = (getattr(run, name, None) for name in ("manifest", "config", "rows"))
    if manifest is None or config is None or rows is None:
        raise UserError(f"{FLAG}={folder} is not a run of 'jaxbench run': give one that was made on a GPU.")
    drawn = [
        row.energy.power_w / row.point.devices
        for row in rows
        if row.energy.source == "GPU" and row.energy.joules_per_step.known
    ]
    if not drawn:
        raise UserError(f"{FLAG}={folder} has no energy of a GPU: give a run with readings, or leave it out.")
    if limit := str(config.get("power_limit") or ""):
        raise UserError(f"{FLAG}={folder} was made at a limit of {limit} W: give a run without --config.power_limit.")
    kind = manifest.get("device_kind", "")
    peak = hardware.find(kind)
    if peak is None or peak.name not in rated:
        known = ", ".join(sorted(rated)) or "none"
        raise UserError(f"{FLAG}={folder} was made on '{kind}', which has no rated power: known are {known}.")
    counted = f"the median of {len(drawn)} points" if len(drawn) > 1 else "one point"
    value = statistics.median(drawn) / rated[peak.name]
    return {peak.name: PowerShare(value=value, source=f"measured in '{folder.name}', {counted}")}
