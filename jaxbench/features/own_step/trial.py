# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench try` for a user's own step: what was found in it, and whether it does the same on several devices.

Each device count has a process of its own with that many fake CPU devices. Nothing is timed.
"""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path

from ml_collections import ConfigDict
from rich.console import Console
from rich.table import Table
from rich.text import Text

from jaxbench import config as config_lib
from jaxbench import levers
from jaxbench.core.plan import Placed, Point
from jaxbench.core.schema import OWN
from jaxbench.features.own_step.references import References
from jaxbench.processes.client import Worker, WorkerError
from jaxbench.processes.messages import Answer, Explain, Request, Setup
from jaxbench.sweep.progress import working
from jaxbench.sweep.run import absolute
from jaxbench.workloads.own_step import PyTree

COUNTS = (1, 2, 4, 8)
STYLES = {"right": "green", "wrong": "bold red", "cannot tell": "yellow", "error": "red"}


def run(experiment: str, config: ConfigDict, console: Console) -> bool:
    """Prints what was found. True: the step does the same on every device count."""
    setup = Setup(
        platform="cpu", devices=1, experiment=absolute(experiment), config=config_lib.plain(config), worker="try"
    )
    points = [_point(count, config.batch) for count in COUNTS if config.batch % count == 0]
    with tempfile.TemporaryDirectory() as folder:
        workers = _Processes(setup, Path(folder), points)
        try:
            with working(console, "one device is the reference"):
                references = References(Path(folder), points)
                for point in points:
                    references.make(workers, point)
            found = {}
            for point in points:
                with working(console, f"trying {point.devices} devices"):
                    found[point.devices] = _explained(workers, point, references.told(point))
        finally:
            workers.close()
    _print_step(found, console)
    words = {about["word"] for about in found.values()}
    return words == {"right"}


def _point(devices: int, batch: int) -> Point:
    return Point(
        point=f"{OWN}/strong/{devices}", strategy=OWN, scaling="strong", devices=devices, global_batch=batch,
        oversubscribed=True, levers=dict(levers.DEFAULTS), platform="cpu",
    )  # fmt: skip


class _Processes:
    """One process for each device count."""

    def __init__(self, setup: Setup, folder: Path, points: list[Point]):
        self._workers: dict[int, Worker] = {}
        for count in (point.devices for point in points):
            self._workers[count] = Worker(dataclasses.replace(setup, devices=count), folder / f"log{count}")

    def ask_for(self, point: Placed, request: Request[Answer]) -> Answer:
        assert isinstance(point, Point)
        return self._workers[point.devices].ask(request)

    def close(self) -> None:
        for worker in self._workers.values():
            worker.close()


def _explained(workers: _Processes, point: Point, told: dict[str, PyTree]) -> dict[str, PyTree]:
    try:
        about = workers.ask_for(point, Explain(point=point.to_json(), reference=told))
    except WorkerError as error:
        return {"word": "error", "notes": [str(error)]}
    checks = about.checks
    wrong = [check.reason for check in checks if not check.ok and not check.unchecked]
    unknown = [check.reason for check in checks if check.unchecked]
    word = "wrong" if wrong else "cannot tell" if unknown else "right"
    shown = {"name": about.name, "examples": about.examples, "facts": about.facts, **about.cells}
    return {**shown, "word": word, "notes": wrong or unknown or [checks[0].reason]}


def _print_step(found: dict[int, dict[str, PyTree]], console: Console) -> None:
    first = next((about for about in found.values() if about["word"] != "error"), None)
    if first is not None:
        table = Table(show_header=False, box=None, title=f"{first['name']}, a batch of {first['examples']} examples")
        for name, value in first["facts"]:
            table.add_row(Text(name, style="bold"), Text(value))
        console.print(table)
    columns = ("devices", "", "state", "batch", "collectives, per device", "state per device", "peak of a step")
    table = Table(*columns, title="the same step on several fake devices")
    for count, about in found.items():
        cells = [about.get(name, "") for name in ("state", "batch", "collectives", "state_bytes", "peak")]
        table.add_row(str(count), Text(about["word"], style=STYLES[about["word"]]), *map(Text, cells))
    console.print(table)
    notes: dict[str, list[str]] = {}
    for count, about in found.items():
        for note in about["notes"]:
            notes.setdefault(note, []).append(str(count))
    for note, counts in notes.items():
        noun = "device" if counts == ["1"] else "devices"
        console.print(f"{', '.join(counts)} {noun}: {note}.", highlight=False, soft_wrap=True)
    console.print("The step is your own: its collectives are listed, not judged.", highlight=False, soft_wrap=True)
