# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench try` for a user's own step: what was found in it, and whether it does the same on several devices.

Each device count has a process of its own with that many fake CPU devices. Nothing is timed.
"""

from __future__ import annotations

import dataclasses
import tempfile
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict
from rich.console import Console
from rich.table import Table
from rich.text import Text

from jaxbench import config as config_lib
from jaxbench import levers
from jaxbench.analysis import step_work
from jaxbench.analysis.step_work import Stated
from jaxbench.core.point import Point
from jaxbench.core.schema import OWN
from jaxbench.processes.client import Worker, WorkerError
from jaxbench.processes.forkserver import ForkServers
from jaxbench.processes.messages import Answer, Explain, Fields, Request, Setup
from jaxbench.sweep.progress import working
from jaxbench.sweep.references import References
from jaxbench.sweep.run import absolute

COUNTS = (1, 2, 4, 8)  # of fake CPU devices, whatever this machine has
STYLES = {"right": "green", "wrong": "bold red", "cannot tell": "yellow", "error": "red"}


def run(experiment: str, config: ConfigDict, console: Console) -> bool:
    """Prints what was found. True: the step does the same on every device count."""
    setup = Setup(
        platform="cpu", devices=1, experiment=absolute(experiment), config=config_lib.plain(config), worker="try"
    )
    points = [
        Point(
            point=f"{OWN}/strong/{count}",
            strategy=OWN,
            scaling="strong",
            devices=count,
            global_batch=config.batch,
            oversubscribed=True,
            levers=dict(levers.DEFAULTS),
            platform="cpu",
        )
        for count in COUNTS
        if config.batch % count == 0
    ]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        workers = _Processes()
        forks = stack.enter_context(closing(ForkServers(["jaxbench.features.own_step.recipe"])))
        for point in points:
            log = Path(folder) / f"log{point.devices}"
            workers[point.devices] = Worker(dataclasses.replace(setup, devices=point.devices), log, forks=forks)
            stack.callback(workers[point.devices].close)
        with working(console, "one device is the reference"):
            references = References(Path(folder), points)
            for point in points:
                references.make(workers, point)
        found = {}
        for point in points:
            with working(console, f"trying {point.devices} devices"):
                found[point.devices] = _explained(workers, point, references.told(point))
    _print_step(found, console)
    words = {about["word"] for about in found.values()}
    return words == {"right"}


class _Processes(dict[int, Worker]):
    """One process for each device count: a trainer may use all of `jax.devices()`."""

    def ask_for(self, point: Point, request: Request[Answer]) -> Answer:
        return self[point.devices].ask(request)


def _explained(workers: _Processes, point: Point, told: Fields) -> dict[str, Any]:
    """What a trial shows of one device count: a word, numbers and notes."""
    try:
        about = workers.ask_for(point, Explain(point=point.to_json(), reference=told))
    except WorkerError as error:  # other device counts may work, and the difference is what a user looks for
        return {"word": "error", "notes": [str(error)]}
    checks = about.checks
    contradiction = Stated(about.flops, about.examples, point.devices).contradiction(about.work)
    wrong = [check.reason for check in checks if not check.ok and not check.unchecked]
    wrong += [contradiction] if contradiction else []  # a run would refuse the row
    unknown = [check.reason for check in checks if check.unchecked]
    word = "wrong" if wrong else "cannot tell" if unknown else "right"  # one wrong check outweighs what is unknown
    shown = {"name": about.name, "examples": about.examples, "facts": about.facts, **about.cells}
    notes = [*(wrong or unknown or [checks[0].reason]), *step_work.sentences(about.work)]
    return {**shown, "word": word, "notes": notes}


def _print_step(found: dict[int, dict[str, Any]], console: Console) -> None:
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
    for count, about in found.items():  # most notes hold for several device counts
        for note in about["notes"]:
            notes.setdefault(note, []).append(str(count))
    for note, counts in notes.items():
        noun = "device" if counts == ["1"] else "devices"
        console.print(f"{', '.join(counts)} {noun}: {note.rstrip('.')}.", highlight=False, soft_wrap=True)
    console.print("The step is your own: its collectives are listed, not judged.", highlight=False, soft_wrap=True)
