# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench run --price_per_hour=2.50`: what the run's steps cost, and the energy that the run used."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from jaxbench.analysis import points, price, scaling, spread
from jaxbench.errors import UserError
from jaxbench.machine import energy
from jaxbench.records.store import RunFolder


def require_price(per_hour: float | None) -> None:
    """Raises UserError for a price that is none."""
    if per_hour is not None and not 0 < per_hour < math.inf:
        raise UserError(f"--price_per_hour={per_hour:g} is not a price: use 2.50, for example.")


class Meter:
    """Counts the energy from its creation until `stop`. Without a price it does nothing."""

    def __init__(self, per_hour: float | None, config: Mapping[str, Any]):
        """Raises UserError for a price that is none, and for a run that has no steps."""
        require_price(per_hour)
        if per_hour is not None and config.get("measures") == "cases":
            raise UserError("--price_per_hour needs a model, which has steps: use jaxbench run cnn, for example.")
        self._per_hour = per_hour
        self._before, self._started = energy.read() if per_hour else {}, time.monotonic()
        self._used: dict[str, float] = {}
        self._wall_s = 0.0

    def stop(self) -> None:
        if self._per_hour is not None:
            self._used = energy.between(self._before, energy.read())
            self._wall_s = time.monotonic() - self._started

    def show(self, workdir: Path, console: Console) -> None:
        """Prints what a thousand steps of each point and the training to target cost, and the joules."""
        if self._per_hour is None:
            return
        run = RunFolder(workdir)
        config = run.config()
        rows = scaling.analyse(points.load(run), config=config, spread=spread.read(run.path))
        known = price.steps_to_target(workdir, config)
        console.print(f"\nAt {self._per_hour:g} an hour for this machine", style="bold", highlight=False)
        for sentence in price.sentences(rows, self._per_hour, known, self._used, self._wall_s):
            console.print(f"  {sentence}", highlight=False, soft_wrap=True)
