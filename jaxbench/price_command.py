# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench run --price_per_hour=2.50`: the cost of the run's steps, and the energy that the run used."""

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
    """Raises UserError for a price that is not positive and finite. None: no price."""
    if per_hour is not None and not 0 < per_hour < math.inf:
        raise UserError(f"--price_per_hour={per_hour:g} is not a price: use 2.50, for example.")


class Meter:
    """Counts the energy from its creation until `stop`. Without a price it does nothing."""

    def __init__(self, per_hour: float | None, config: Mapping[str, Any]):
        """Raises UserError for an invalid price, and for a run without steps."""
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
        """Prints the cost of 1,000 steps of each point and of the training to the target, and the joules."""
        if self._per_hour is None:
            return
        run = RunFolder(workdir)
        config = run.config()
        rows = scaling.analyse(points.load(run), config=config, spread=spread.read(run.path))
        known = price.steps_to_target(workdir, config)
        console.print(f"\nAt {self._per_hour:g} an hour for this machine", style="bold", highlight=False)
        for sentence in price.sentences(rows, self._per_hour, known, self._used, self._wall_s):
            console.print(f"  {sentence}", highlight=False, soft_wrap=True)
