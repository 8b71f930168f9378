# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The page of a training: where its wall time went, over all its starts, and how far apart checkpoints should be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from jaxbench.analysis import goodput
from jaxbench.analysis.goodput import Costs
from jaxbench.catalog import published
from jaxbench.digits import digits
from jaxbench.errors import UserError
from jaxbench.records import account, learned
from jaxbench.records.account import LABELS, Start
from jaxbench.records.store import RunFolder, write_atomic
from jaxbench.report import page, terminal
from jaxbench.report.drawing import canvas
from jaxbench.report.figures import goodput as figure
from jaxbench.report.figures import learning
from jaxbench.report.page import Page, Picture, Section
from jaxbench.report.table import NUMBER, TEXT, Table, plain

PAGE = "training.html"
# {"mtbf_s": the stated mean time between injected kills, "kills": how many there were, "down_s": from one to the next
# process, as whoever killed knows it: in the account it holds starts that did not live to open it}
FAULTS = "faults.json"
GOODPUT = "goodput"  # where docs/metrics defines the numbers


def write(folder: Path, console: Console | None = None, *, look: Mapping[str, Any] | None = None) -> float | None:
    """Writes `training.html` and its figure into the folder of a training, and prints it if there is a `console`.

    Returns the measured goodput over the one expected at the rate of injected faults that it saw; None without faults.

    Raises:
      UserError: the folder has no account of a training, a damaged one, or cannot be written.
    """
    starts = account.read(folder)
    if not starts:
        raise UserError(f"'{folder}' has no {account.ACCOUNT}: give the folder of a 'jaxbench train'.")
    account.require_possible(starts)
    faults = _faults(folder / FAULTS)
    costs = goodput.measured_costs(starts)
    config = RunFolder(folder).config()
    name, looks = str(config.get("experiment", folder.name)), canvas.look_of(config, look)
    spent, forecast = account.totals(starts), _forecast(starts, costs, faults)
    title = f"{name}: where the time of its training went"
    try:
        pictures = _curves(folder, name, looks)
        files = canvas.render(lambda: figure.draw(spent, costs, title=title, forecast=forecast and forecast[1]), looks)
        canvas.write(files, folder / "figures", figure.NAME)
        made = Page(
            name=name,
            heading=title,
            headlines=[_answer(spent, starts), *_expected(spent, faults, forecast)],
            pictures=[*pictures, Picture(name=figure.NAME, svg=files["svg"], caption=figure.CAPTION)],
            table=_table(spent),
            sections=_sections(costs, faults),
            definition=GOODPUT,
            sources=[("Account, by start", [_numbers(start) for start in starts])],
            made_from=f"{account.ACCOUNT} and config.json",
        )
        write_atomic(folder / PAGE, page.render(made))
    except OSError as error:
        raise UserError(f"cannot write the page into '{folder}' ({error.strerror}).") from error
    if console is not None:
        terminal.show(made, console)
    return account.goodput(spent) / forecast[1] if forecast else None


def _curves(folder: Path, name: str, looks: canvas.Look) -> list[Picture]:
    """What it has learnt, as a figure; [] before the first evaluation."""
    if not learned.is_training(folder):
        return []
    title = f"{name}: loss and accuracy of its training"
    files = canvas.render(lambda: learning.draw({name: [learned.read(folder)]}, title=title), looks)
    if not files:
        return []
    canvas.write(files, folder / "figures", learning.NAME)
    return [Picture(name=learning.NAME, svg=files["svg"], caption=learning.CAPTION)]


def _faults(path: Path) -> dict[str, float]:
    """{} without a file. Raises UserError when it is damaged."""
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text())
        return {name: float(found[name]) for name in ("mtbf_s", "kills", "down_s")}
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is damaged ({error}): delete it, and the page leaves the faults out.") from error


def _forecast(starts: list[Start], costs: Costs | None, faults: dict[str, float]) -> tuple[float, float] | None:
    """(seconds between kills that this training saw, the goodput to expect at that rate); None without faults.

    The rate is kills over the time in which they could happen: a short training sees another one than was stated.
    """
    if costs is None or not faults:
        return None
    costs = replace(costs, down_s=faults["down_s"])
    intervals = len({save.step for saves in account.kept_saves(starts) for save in saves})
    useful_s = intervals * costs.useful * costs.interval_s
    exposed_s = (starts[-1].end_ns - starts[0].begun_ns) / 1e9 - faults["kills"] * costs.down_s
    seen_s = exposed_s / faults["kills"] if faults["kills"] else faults["mtbf_s"]
    return seen_s, useful_s / goodput.expected_wall_s(costs, seen_s, intervals=intervals)


def _answer(spent: dict[str, int], starts: list[Start]) -> str:
    whole, counted = sum(spent.values()) / 1e9, spent["steps"] / 1e9
    times = "one start" if len(starts) == 1 else f"{len(starts)} starts"
    return f"Goodput {account.goodput(spent):.1%}: {counted:.1f} of {whole:.1f} s, in {times}, were steps that count."


def _expected(spent: dict[str, int], faults: dict[str, float], forecast: tuple[float, float] | None) -> list[str]:
    if forecast is None:
        return []
    seen_s, share = forecast
    return [
        f"It was killed {faults['kills']:g} times, once every {digits(seen_s)} s; {faults['mtbf_s']:g} s on average "
        f"were asked for. At the rate that it saw {share:.1%} is to be expected: measured over expected is "
        f"{account.goodput(spent) / share:.2f}."
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
        f"Checkpoints were {digits(costs.interval_s)} s of progress apart. One blocked {digits(costs.checkpoint_s)} s "
        f"and was sealed {digits(costs.latency_s)} s later. A restart took {digits(costs.restart_s)} s.",
        f"On {known.devices:,} devices that fail as often as those of {known.project} did, the best interval is "
        f"{digits(at)} s (Daly 2006) and the goodput to expect {share:.1%}, at these costs; theirs was above "
        f"{known.goodput:.0%}.",
    ]
    if faults:
        best = goodput.daly(costs.checkpoint_s, faults["mtbf_s"])
        first = goodput.young(costs.checkpoint_s, faults["mtbf_s"])
        gain = goodput.expected_goodput(costs.at_interval(best), faults["mtbf_s"])
        sentences.insert(
            1,
            f"At one kill every {faults['mtbf_s']:g} s the best interval is {digits(best)} s (Daly 2006; "
            f"{digits(first)} s by Young 1974), with which a long training can expect {gain:.1%}.",
        )
    return [Section(heading="How far apart checkpoints should be", sentences=sentences, definition=GOODPUT)]


def _numbers(start: Start) -> dict[str, Any]:
    seconds = {kind: round(ns / 1e9, 3) for kind, ns in start.ns.items()}
    saved = [save.step for save in start.saves]
    return {"begun_ns": start.begun_ns, "from_step": start.from_step, "step": start.step, "saved": saved, "s": seconds}
