# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The longest sequence that fits the memory of a device, by number of devices, from compiling alone.

A length fits if the memory of the compiled step (`peak_bytes`) is within the limit. It does not fit if the compiler
runs out of memory. The answer is exact to an eighth of the length.
"""

from __future__ import annotations

from typing import Any

from jaxbench.errors import UserError
from jaxbench.runner.plan import Point
from jaxbench.runner.studies.study import Study, largest_within

FILE = "longest.json"
LENGTH = "context"  # the field of config.model with the number of positions of a sequence
SHARPNESS = 8  # the answer is exact to this part of itself


def asked(config: dict[str, Any]) -> bool:
    """Whether the config wants this study."""
    return bool(config["search"] == LENGTH)


def run(study: Study) -> dict[str, Any]:
    """Searches for each device count.

    Raises UserError if the model has no sequences, or the length in the config does not fit."""
    if not study.config["model"].get(LENGTH):
        raise UserError(f"--config.search=context: this model has no config.model.{LENGTH} of its own; gpt has.")
    by_devices = {point.devices: point for point in reversed(study.points)}
    rows = [_longest(study, by_devices[devices]) for devices in sorted(by_devices)]
    return {"limit_bytes": study.limit.bytes, "limit_source": study.limit.source, "rows": rows}


def _longest(study: Study, point: Point) -> dict[str, Any]:
    """The search on one device count."""
    tried: dict[int, int] = {}

    def peak_bytes(length: int) -> int:
        worker = study.with_model(**{LENGTH: length}).worker("max_sequence", point)
        with study.compiling(f"the step of {length} positions", worker) as compiled:
            memory = compiled(point.to_json())
        if length == shortest:
            what = f"a sequence of {length} on {point.devices} device{'s' if point.devices > 1 else ''}"
            study.require_fits(what, memory, f"use a smaller --config.model.{LENGTH}")
        return tried.setdefault(length, memory.peak_bytes)

    shortest = study.config["model"][LENGTH]
    with study.console.status(f"searching the longest sequence on {point.devices} devices: compiling"):
        longest = largest_within(
            peak_bytes,
            study.limit.bytes,
            first=shortest,
            step=lambda length: max(2 * point.devices, length // SHARPNESS),
        )
    return {"devices": point.devices, "longest": longest, "tried": [list(pair) for pair in sorted(tried.items())]}
