# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench try EXPERIMENT`: what a model is, which strategies take it and are right, without timing.

Everything runs in one process with fake CPU devices, compiled unoptimised: what is computed and sent is proven, not how
fast.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict
from rich.console import Console
from rich.progress import track
from rich.table import Table
from rich.text import Text

from jaxbench import config as config_lib
from jaxbench import parallel
from jaxbench.errors import UserError
from jaxbench.levers import DEFAULTS
from jaxbench.records.schema import Verdict
from jaxbench.runner.client import Worker, WorkerError
from jaxbench.runner.plan import Point
from jaxbench.runner.run import absolute, refuse_early

DEVICES = (1, 2, 8)
CONCURRENT_COLLECTIVES = 16  # a process with threads for fewer would have to be started anew
BATCH = 16  # examples, of all devices together


@dataclass
class Outcome:
    """One strategy on one number of devices. said: why not, or what is to be known."""

    ok: bool | None
    said: str = ""
    about: dict[str, Any] = field(default_factory=dict)


def run(experiment: str, config: ConfigDict, console: Console) -> bool:
    """Prints what there is to know. True: at least one strategy takes the model, and all that do are right."""
    config_lib.parse(config, parallel.strategy_names(), parallel.of_any_model())
    refuse_early(experiment, config)
    plain, found = config_lib.plain(config), {}
    setup = {"platform": "cpu", "devices": max(DEVICES), "experiment": absolute(experiment), "config": plain}
    setup |= {"concurrent_collectives": CONCURRENT_COLLECTIVES}
    with tempfile.TemporaryDirectory() as folder:
        worker = Worker({**setup, "worker": "try"}, Path(folder) / "log")
        try:
            model = _ask(worker, {"do": "describe"})
            _say_model(model, console)
            # Those of one number of devices together, and of these those of the whole batch: they share a reference.
            first = sorted(model["strategies"], key=lambda name: not name.startswith("jit"))
            tried = [(name, count) for count in DEVICES for name in first]
            for name, count in track(tried, "trying", console=console, transient=True):
                found[name, count] = _try(worker, name, count)
        finally:
            worker.close()
    console.print(_table(model["strategies"], found))
    for line in (*_notes(model["strategies"], found), model["training"]):
        console.print(line, highlight=False, soft_wrap=True)
    results = [outcome.ok for outcome in found.values()]
    return any(results) and False not in results


def _ask(worker: Worker, request: dict[str, Any]) -> dict[str, Any]:
    try:
        return worker.ask(request)
    except WorkerError as error:
        raise UserError(str(error)) from error


def _try(worker: Worker, strategy: str, devices: int) -> Outcome:
    point = Point(
        point=f"{strategy}/strong/{devices}",
        strategy=strategy,
        scaling="strong",
        devices=devices,
        global_batch=BATCH,
        oversubscribed=True,
        levers=dict(DEFAULTS),
        platform="cpu",
    )
    try:
        answer = worker.ask({"do": "try", "point": point.to_json()})
    except WorkerError as error:
        if not error.alive:
            raise UserError(f"{strategy} on {devices} devices: {error}") from error
        refused = error.unsupported or error.stage == "build"  # such as sizes that do not divide
        return Outcome(None if refused else False, str(error))
    checks = [Verdict(**check) for check in answer["checks"]]
    wrong = [check.reason for check in checks if not check.ok]
    more = [check.reason for check in checks if check.ok and check.excess_bytes]
    return Outcome(not wrong, "; ".join(wrong or more), answer)


def _say_model(model: dict[str, Any], console: Console) -> None:
    table = Table(show_header=False, box=None, title=f"{model['name']}, a batch of {BATCH} {model['unit']}")
    largest = ", ".join(f"{path} {shape}" for path, shape in model["largest"])
    for name, value in (
        ("parameters", f"{model['parameters']:,} in {model['arrays']} arrays; largest: {largest}"),
        ("work", f"{model['flops_per_example']:,.0f} FLOPs an example in products, forward and backward"),
        ("loss", model["loss"] + ("; draws at random" if model["draws"] else "")),
        ("state", f"{model['state_numbers']:,} numbers that are not trained" if model["state_numbers"] else "none"),
    ):
        table.add_row(Text(name, style="bold"), Text(value))
    console.print(table)


def _table(strategies: list[str], found: dict[tuple[str, int], Outcome]) -> Table:
    title = f"right on so many fake devices, and what each of {DEVICES[-1]} sends and holds"
    columns = (*(str(n) for n in DEVICES), "sends a step", "model state", "a step holds")
    table = Table("strategy", *columns, title=title)
    for name in strategies:
        about = found[name, DEVICES[-1]].about
        words = [_word(found[name, count].ok) for count in DEVICES]
        sizes = [_size(about.get(key)) for key in ("sent_bytes", "state_bytes", "peak_bytes")]
        table.add_row(name, *words, *sizes)
    return table


def _word(ok: bool | None) -> Text:
    return {
        True: Text("right", style="green"),
        False: Text("wrong", style="bold red"),
        None: Text("cannot", style="yellow"),
    }[ok]


def _size(count: float | None) -> str:
    return "" if count is None else f"{count / 1e6:,.2f} MB" if count >= 1e5 else f"{count:,.0f} B"


def _notes(strategies: list[str], found: dict[tuple[str, int], Outcome]) -> list[str]:
    """A sentence once, with the strategies and counts that it is of."""
    of: dict[str, list[str]] = {}
    for name in strategies:
        for count in DEVICES:
            if found[name, count].said:
                of.setdefault(found[name, count].said, []).append(f"{name} on {count}")
    return [f"{', '.join(where)}: {said}" for said, where in of.items()]
