# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The page of a training: its wall time by category over all starts, and how far apart checkpoints should be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from jaxbench.catalog import published
from jaxbench.core.store import RunFolder, read_json, write_atomic
from jaxbench.digits import digits
from jaxbench.errors import UserError
from jaxbench.features.training import goodput, trainings
from jaxbench.features.training.figures import draw_goodput, draw_learning
from jaxbench.features.training.goodput import Costs
from jaxbench.features.training.trainings import LABELS, Start
from jaxbench.report import page
from jaxbench.report.drawing import canvas
from jaxbench.report.page import Page, Picture, Section
from jaxbench.report.table import NUMBER, TEXT, Table, plain

PAGE = "training.html"
# {"mtbf_s": the requested mean time between injected kills, "kills": how many there were, "down_s": the time from a
# kill to the next process, recorded by the killer, because the time ledger lacks starts that were killed early}
FAULTS = "faults.json"
GOODPUT = "goodput"  # the section of docs/metrics that defines the numbers


def write(folder: Path, console: Console | None = None, *, look: Mapping[str, Any] | None = None) -> float | None:
    """Writes `training.html` and its figures into the folder of a training. With a `console`, it also prints the page.

    Returns the measured goodput over the expected goodput at the observed rate of injected faults; None without faults.

    Raises:
      UserError: the folder has no time ledger or a damaged one, or it cannot be written.
    """
    starts = trainings.read_ledger(folder)
    if not starts:
        raise UserError(f"'{folder}' has no {trainings.LEDGER}: give the folder of a 'jaxbench train'.")
    trainings.require_possible(starts)
    faults = _faults(folder / FAULTS)
    costs = goodput.measured_costs(starts)
    config = RunFolder(folder).config()
    name, looks = str(config.get("experiment", folder.name)), canvas.look_of(config, look)
    spent, forecast = trainings.totals(starts), _forecast(starts, costs, faults)
    title = f"{name}: where the time of its training went"
    try:
        pictures = _curves(folder, name, looks)
        files = canvas.render(lambda: draw_goodput(spent, costs, title=title, forecast=forecast and forecast[1]), looks)
        canvas.write(files, folder / "figures", draw_goodput.name)
        made = Page(
            name=name,
            heading=title,
            headlines=[_answer(spent, starts), *_expected(spent, faults, forecast)],
            pictures=[*pictures, Picture(name=draw_goodput.name, svg=files["svg"], caption=draw_goodput.caption)],
            table=_table(spent),
            sections=_sections(costs, faults),
            definition=GOODPUT,
            sources=[("Account, by start", [_numbers(start) for start in starts])],
            made_from=f"{trainings.LEDGER} and config.json",
        )
        write_atomic(folder / PAGE, page.render(made))
    except OSError as error:
        raise UserError(f"cannot write the page into '{folder}' ({error.strerror}).") from error
    if console is not None:
        page.show(made, console)
    return trainings.goodput(spent) / forecast[1] if forecast else None


def _curves(folder: Path, name: str, looks: canvas.Look) -> list[Picture]:
    """The learning curve as a figure; [] before the first evaluation."""
    if not trainings.is_training(folder):
        return []
    title = f"{name}: loss and accuracy of its training"
    files = canvas.render(lambda: draw_learning({name: [trainings.read_curve(folder)]}, title=title), looks)
    if not files:
        return []
    canvas.write(files, folder / "figures", draw_learning.name)
    return [Picture(name=draw_learning.name, svg=files["svg"], caption=draw_learning.caption)]


def _faults(path: Path) -> dict[str, float]:
    """The injected faults; {} without a file. Raises UserError if the file is damaged."""
    if not path.exists():
        return {}
    return read_json(
        path,
        lambda found: {name: float(found[name]) for name in ("mtbf_s", "kills", "down_s")},
        "delete it to leave the faults out.",
    )


def _forecast(starts: list[Start], costs: Costs | None, faults: dict[str, float]) -> tuple[float, float] | None:
    """(observed seconds between kills, expected goodput at that rate); None without faults.

    The rate is the number of kills over the time in which they could happen. In a short training it differs from the
    requested rate by chance.
    """
    if costs is None or not faults:
        return None
    costs = replace(costs, down_s=faults["down_s"])
    intervals = len({save.step for saves in trainings.kept_saves(starts) for save in saves})
    useful_s = intervals * costs.useful * costs.interval_s
    exposed_s = (starts[-1].end_ns - starts[0].begun_ns) / 1e9 - faults["kills"] * costs.down_s
    seen_s = exposed_s / faults["kills"] if faults["kills"] else faults["mtbf_s"]
    return seen_s, useful_s / goodput.expected_wall_s(costs, seen_s, intervals=intervals)


def _answer(spent: dict[str, int], starts: list[Start]) -> str:
    whole, counted = sum(spent.values()) / 1e9, spent["steps"] / 1e9
    times = "one start" if len(starts) == 1 else f"{len(starts)} starts"
    return f"Goodput {trainings.goodput(spent):.1%}: {counted:.1f} of {whole:.1f} s, in {times}, were steps that count."


def _expected(spent: dict[str, int], faults: dict[str, float], forecast: tuple[float, float] | None) -> list[str]:
    if forecast is None:
        return []
    seen_s, share = forecast
    return [
        f"It was killed {faults['kills']:g} times, once every {digits(seen_s)} s; {faults['mtbf_s']:g} s on average "
        f"were requested. At the observed rate the expected goodput is {share:.1%}: measured over expected is "
        f"{trainings.goodput(spent) / share:.2f}."
    ]


def _table(spent: dict[str, int]) -> Table:
    whole = sum(spent.values())
    named = [(LABELS[name], ns) for name, ns in spent.items()]
    rows = [(name, f"{ns / 1e9:.2f}", f"{100 * ns / whole:.1f}") for name, ns in [*named, ("total", whole)]]
    return plain({"wall time": TEXT, "seconds": NUMBER, "share, %": NUMBER}, rows)


def _sections(costs: Costs | None, faults: dict[str, float]) -> list[Section]:
    if costs is None:
        return []
    known = published.interruptions()
    at, share = goodput.at_devices(costs, devices=known.devices, failures_per_device_hour=known.per_device_hour)
    sentences = [
        f"Checkpoints were {digits(costs.interval_s)} s of progress apart. A checkpoint blocked the training for "
        f"{digits(costs.checkpoint_s)} s and was sealed {digits(costs.latency_s)} s later. A restart took "
        f"{digits(costs.restart_s)} s.",
        f"With these costs, on {known.devices:,} devices with the failure rate of {known.project}, the best interval "
        f"is {digits(at)} s (Daly 2006) and the expected goodput is {share:.1%}; theirs was above "
        f"{known.goodput:.0%}.",
    ]
    if faults:
        best = goodput.daly(costs.checkpoint_s, faults["mtbf_s"])
        first = goodput.young(costs.checkpoint_s, faults["mtbf_s"])
        gain = goodput.expected_goodput(costs.at_interval(best), faults["mtbf_s"])
        sentences.insert(
            1,
            f"With one kill every {faults['mtbf_s']:g} s the best interval is {digits(best)} s (Daly 2006; "
            f"{digits(first)} s by Young 1974), and the expected goodput of a long training is {gain:.1%}.",
        )
    return [Section(heading="How far apart checkpoints should be", sentences=sentences, definition=GOODPUT)]


def _numbers(start: Start) -> dict[str, Any]:
    seconds = {kind: round(ns / 1e9, 3) for kind, ns in start.ns.items()}
    saved = [save.step for save in start.saves]
    return {"begun_ns": start.begun_ns, "from_step": start.from_step, "step": start.step, "saved": saved, "s": seconds}
