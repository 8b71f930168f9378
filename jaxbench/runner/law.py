# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How the memory of a step grows with the depth of the model, from compiling alone: the law behind recomputation."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from jaxbench.errors import UserError
from jaxbench.records.store import write_json
from jaxbench.runner import fits
from jaxbench.runner.client import Worker, WorkerError
from jaxbench.runner.plan import Point

FILE = "remat_law.json"
DEPTH = "layers"  # the field of config.model that says how many like blocks a model has


def depths(text: str, model: dict[str, Any]) -> tuple[int, ...]:
    """Reads ``config.depths``. Raises UserError unless it is numbers of blocks and the model has such a field."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if words and DEPTH not in model:
        raise UserError(f"--config.depths={text}: this model has no config.model.{DEPTH}; gpt has.")
    if not all(word.isdecimal() and int(word) > 0 for word in words):
        raise UserError(f"--config.depths={text} is not a list of numbers of blocks such as 4,8,16,32.")
    return tuple(sorted({int(word) for word in words}))


def run(
    points: Sequence[Point],
    *,
    asked: tuple[int, ...],
    experiment: str,
    config: dict[str, Any],
    folder: Path,
    console: Console,
) -> None:
    """Compiles the step of each `remat` at each depth and writes `remat_law.json`, unless the folder has one.

    A step that does not fit the device has no scratch memory to say (None). Raises UserError when one cannot be
    compiled for another reason.
    """
    if not asked or (folder / FILE).exists():
        return
    least = min(point.devices for point in points)
    arms = {point.levers["remat"]: point for point in reversed(points) if point.devices == least}
    (folder / "logs").mkdir(exist_ok=True)
    rows = []
    for blocks in asked:
        with console.status(f"memory of {blocks} blocks: compiling"):
            deep = copy.deepcopy(config)
            deep["model"][DEPTH] = blocks
            setup = {
                **points[0].worker()[1],
                "devices": least,
                "experiment": experiment,
                "config": deep,
                "worker": "law",
            }
            worker = Worker(setup, folder / "logs" / "law.log")
            try:
                for remat, point in reversed(arms.items()):
                    temp = _temp_bytes(worker, point)
                    rows.append({"remat": remat, "blocks": blocks, "temp_bytes": temp})
            except WorkerError as error:
                raise UserError(f"the step of {blocks} blocks cannot be compiled: {error}.") from error
            finally:
                worker.close()
    write_json(folder / FILE, {"schema": 1, "rows": rows})


def _temp_bytes(worker: Worker, point: Point) -> int | None:
    try:
        return worker.ask({"do": "compile", "point": point.to_json()})["temp_bytes"]
    except WorkerError as error:
        if fits.refused(error):
            return None
        raise
