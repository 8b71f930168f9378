# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What a run will measure: the points, in the order they are prepared, and which process measures each."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from jaxbench.config import Settings
from jaxbench.errors import UserError

CPU_DEVICES = (1, 2, 4, 8)


@dataclass(frozen=True, kw_only=True)
class Point:
    """One thing to measure. `point` is its id in the records."""

    point: str
    strategy: str
    scaling: str
    devices: int
    global_batch: int
    oversubscribed: bool

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def device_counts(settings: Settings, machine: dict[str, Any]) -> tuple[int, ...]:
    """The counts to sweep. `machine`: a manifest. Raises UserError for more accelerators than there are."""
    if machine["platform"] == "cpu":
        counts = settings.devices or CPU_DEVICES
    else:
        have = machine["devices"]
        counts = settings.devices or _powers_of_two(have)
        if max(counts) > have:
            raise UserError(
                f"--config.mesh.devices asks for {max(counts)} devices, this machine has {have} "
                f"({machine['device_kind']}): ask for at most {have}, or for fake ones with --config.mesh.platform=cpu."
            )
    if settings.max_devices:
        counts = tuple(n for n in counts if n <= settings.max_devices)
    return counts


def _powers_of_two(most: int) -> tuple[int, ...]:
    """1, 2, 4, ... and `most` itself."""
    return tuple(sorted({2**i for i in range(most.bit_length()) if 2**i <= most} | {most}))


def make(settings: Settings, machine: dict[str, Any]) -> list[Point]:
    """All points of the sweep. Raises UserError when the batch does not divide over a device count."""
    points = []
    for devices in device_counts(settings, machine):
        for strategy in settings.strategies:
            for scaling in settings.scalings:
                points.append(
                    Point(
                        point=f"{strategy}/{scaling}/{devices}",
                        strategy=strategy,
                        scaling=scaling,
                        devices=devices,
                        global_batch=_global_batch(settings.batch, scaling, devices),
                        oversubscribed=machine["platform"] == "cpu" and devices > machine["cores"],
                    )
                )
    return points


def _global_batch(batch: int, scaling: str, devices: int) -> int:
    if scaling == "weak":
        return batch * devices
    if batch % devices:
        near = max(devices, round(batch / devices) * devices)
        raise UserError(f"--config.batch={batch} does not divide over {devices} devices: use {near}, for example.")
    return batch


def groups(points: list[Point], platform: str) -> dict[str, list[Point]]:
    """Which worker process measures which points.

    A CPU process has one device count for life, pinned to as many cores. An accelerator belongs to one process at a
    time, so there one worker measures every count on a part of the devices.
    """
    found: dict[str, list[Point]] = {}
    for point in points:
        name = f"cpu{point.devices}" if platform == "cpu" else platform
        found.setdefault(name, []).append(point)
    return found
