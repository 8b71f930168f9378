# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The longest sequence whose step fits a device's memory, by number of devices, from compiling alone.

A length fits if what the compiled step says it holds (`peak_bytes`) is within the limit, and does not if the compiler
refuses it for want of memory. Lengths are doubled until one
does not fit, then the gap is narrowed to an eighth of the length, along the power law through its two ends.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from jaxbench.errors import UserError
from jaxbench.records.store import write_json
from jaxbench.runner import fits
from jaxbench.runner.client import Worker, WorkerError
from jaxbench.runner.plan import Point
from jaxbench.runner.search import Limit

FILE = "longest.json"
LENGTH = "context"  # the field of config.model that says how many positions a sequence has
SHARPNESS = 8  # the answer is exact to this part of itself


def run(
    points: Sequence[Point], *, experiment: str, config: dict[str, Any], limit: Limit, folder: Path, console: Console
) -> None:
    """Searches for each device count and writes `longest.json`, unless the folder has one.

    Raises UserError when the model has no such field, or not even the length that the config asks for fits.
    """
    if (folder / FILE).exists():
        return
    if not config["model"].get(LENGTH):
        raise UserError(f"--config.search=context: this model has no config.model.{LENGTH} of its own; gpt has.")
    (folder / "logs").mkdir(exist_ok=True)
    by_devices = {point.devices: point for point in reversed(points)}
    rows = []
    for devices in sorted(by_devices):
        with console.status(f"searching the longest sequence on {devices} devices: compiling"):
            tried: dict[int, int] = {}
            found = _Search(by_devices[devices], experiment, config, folder, tried, limit).longest()
        rows.append({"devices": devices, "longest": found, "tried": [list(pair) for pair in sorted(tried.items())]})
    write_json(folder / FILE, {"schema": 1, "limit_bytes": limit.bytes, "limit_source": limit.source, "rows": rows})


class _Search:
    """The search on one device count. tried: length -> peak bytes, filled as it goes."""

    def __init__(
        self, point: Point, experiment: str, config: dict[str, Any], folder: Path, tried: dict[int, int], limit: Limit
    ):
        self._point, self._experiment, self._config, self._folder = point, experiment, config, folder
        self._tried, self._limit = tried, limit
        self._refused: dict[int, str] = {}

    def longest(self) -> int:
        low, limit = self._config["model"][LENGTH], self._limit
        peak = self._peak(low)
        if low in self._refused:
            raise UserError(
                f"not even a sequence of {low} fits {limit.bytes:,} bytes ({limit.source}) on {self._point.devices} "
                f"devices, its compiler says ({self._refused[low]}): use a smaller --config.model.{LENGTH}."
            )
        if peak > limit.bytes:
            raise UserError(
                f"a sequence of {low} needs {self._tried[low]:,} bytes on {self._point.devices} devices and the limit "
                f"is {limit.bytes:,} ({limit.source}): give more with --config.search_bytes={2 * self._tried[low]}."
            )
        while self._peak(2 * low) <= limit.bytes:
            low *= 2
        high, step = 2 * low, max(2 * self._point.devices, low // SHARPNESS)
        while high - low > step:
            guess = low + int(self._share(low, high, limit.bytes) * (high - low)) // step * step
            middle = min(max(guess, low + step), high - step)
            low, high = (middle, high) if self._peak(middle) <= limit.bytes else (low, middle)
        return low

    def _share(self, low: int, high: int, limit: int) -> float:
        """How far between two lengths the limit lies, if memory is a power of the length."""
        below, above = self._peak(low), self._peak(high)
        slope = math.log(above / below) / math.log(high / low) if above > below else 1.0
        return fits.share(((limit / below) ** (1 / slope) - 1) * low / (high - low), above, limit)

    def _peak(self, length: int) -> int:
        if length not in self._tried:
            config = copy.deepcopy(self._config)
            config["model"][LENGTH] = length
            setup = {**self._point.worker()[1], "experiment": self._experiment, "config": config, "worker": "longest"}
            worker = Worker(setup, self._folder / "logs" / "longest.log")
            try:
                self._tried[length] = worker.ask({"do": "compile", "point": self._point.to_json()})["peak_bytes"]
            except WorkerError as error:
                if not fits.refused(error):
                    raise UserError(f"the step of {length} positions cannot be compiled: {error}.") from error
                self._tried[length] = fits.needed_bytes(error, self._limit.bytes)
                self._refused[length] = str(error)
            finally:
                worker.close()
        return self._tried[length]
