# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The page of a training: its wall time by category over all starts, and how far apart checkpoints should be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from jaxbench.catalog import published
from jaxbench.core.store import RunFolder, write_atomic
from jaxbench.digits import digits
from jaxbench.errors import UserError
from jaxbench.features.training import costs as costs_lib
from jaxbench.features.training import trainings
from jaxbench.features.training.costs import Costs
from jaxbench.features.training.figures import LEAST_S, draw_goodput, draw_learning
from jaxbench.features.training.trainings import LABELS, Start
from jaxbench.report import page
from jaxbench.report.drawing import canvas
from jaxbench.report.page import Page, Picture, Section
from jaxbench.report.pictures import pictured
from jaxbench.report.table import NUMBER, TEXT, Table, plain

PAGE = "training.html"
GOODPUT = "goodput"  # the section of docs/metrics that defines the numbers


def write(folder: Path, console: Console | None = None, *, look: Mapping[str, object] | None = None) -> None:
    """Writes `training.html` and its figures into the folder of a training. With a `console`, it also prints the page.

    Raises UserError if the folder has no time ledger, or a damaged one.
    """
    _require_account(folder)
    config = RunFolder(folder).config()
    name, looks = str(config.get("experiment", folder.name)), canvas.look_of(config, look)
    made = page_of(folder, _curves(folder, name, looks), looks)
    write_atomic(folder / PAGE, page.render(made))
    if console is not None:
        page.show(made, console)


def _require_account(folder: Path) -> None:
    if not trainings.read_ledger(folder):
        sound = " with a sound line" if trainings.ledger_faults(folder) else ""
        raise UserError(f"'{folder}' has no {trainings.LEDGER}{sound}: give the folder of a 'jaxbench train'.")


def page_of(folder: Path, shown: Sequence[Picture] = (), looks: canvas.Look | None = None) -> Page:
    """The content of the page. looks: also draws the figure of the time into the folder; None: draws nothing.

    Raises UserError if the folder has no time ledger, or a damaged one.
    """
    _require_account(folder)
    starts, faults = trainings.read_ledger(folder), trainings.ledger_faults(folder)
    trainings.require_possible(starts)  # a table that does not add up must not be shown
    costs = costs_lib.measured_costs(starts)
    config = RunFolder(folder).config()
    name = str(config.get("experiment", folder.name))
    spent = trainings.totals(starts)
    title = f"{name}: where the time of its training went"
    whole, counted = sum(spent.values()) / 1e9, spent["steps"] / 1e9
    times = "one start" if len(starts) == 1 else f"{len(starts)} starts"
    counting = f"{counted:.1f} of {whole:.1f} s, in {times}, were steps that count"
    answer = f"{counting}: the goodput is {100 * trainings.goodput(spent):.1f} %."
    skipped = [Section("Skipped lines", faults)] if faults else []
    if looks is not None:
        draw = partial(draw_goodput, spent, costs, title=title)
        files, drawn = pictured(draw_goodput.name, draw, draw_goodput.caption, looks)
        canvas.write(files, folder / "figures", draw_goodput.name)
        shown = [*shown, *drawn]
    return Page(
        name=name,
        heading=f"{name}: its training",
        headlines=[*_result(folder), answer],
        pictures=shown,
        table=_table(spent),
        sections=[*(_sections(costs) if whole >= LEAST_S else []), *skipped],
        definition=GOODPUT,
        sources=[("Time ledger, by start", [_numbers(start) for start in starts])],
        made_from=f"{trainings.LEDGER} and config.json",
    )


def _result(folder: Path) -> list[str]:
    """The result in one sentence: the target, when it was reached, or the newest value; [] before an evaluation."""
    if not trainings.is_training(folder):
        return []
    curve = trainings.read_curve(folder)
    field, reached = f"test_{curve.metric}", curve.at_target()
    last = next((row for row in reversed(curve.rows) if row.get(field) is not None), None)
    row = reached or last
    if row is None:
        return []
    steps, seconds = f"{row['step']:,} step{'s' * (row['step'] != 1)}", trainings.position(row, "seconds", curve.batch)
    score = f"test {curve.metric} {digits(row[field], 4)} after {steps}, {seconds:.2f} s of work"
    return [f"Target {curve.target:g} {'reached' if reached else 'not reached yet'}: {score}."]


def _curves(folder: Path, name: str, looks: canvas.Look) -> list[Picture]:
    """The learning curve as a figure; [] before the first evaluation."""
    if not trainings.is_training(folder):
        return []
    title = f"{name}: loss and accuracy of its training"
    draw = partial(draw_learning, {name: [trainings.read_curve(folder)]}, title=title)
    files, shown = pictured(draw_learning.name, draw, draw_learning.caption, looks)
    if files:
        canvas.write(files, folder / "figures", draw_learning.name)
    return shown


def _table(spent: dict[str, int]) -> Table:
    """The wall time of a training by category, with its total."""
    whole = sum(spent.values())
    named = [(LABELS[name], ns) for name, ns in spent.items()]
    rows = [(name, f"{ns / 1e9:.2f}", f"{100 * ns / whole:.1f}") for name, ns in [*named, ("total", whole)]]
    return plain({"wall time": TEXT, "seconds": NUMBER, "share, %": NUMBER}, rows)


def _sections(costs: Costs | None) -> list[Section]:
    """Costs of checkpoints and restarts, and the best interval at a published failure rate."""
    if costs is None:
        return []
    # A small training says little about large ones, so its costs are carried over to a published failure rate.
    known = published.interruptions()
    at, share = costs_lib.at_devices(costs, devices=known.devices, failures_per_device_hour=known.per_device_hour)
    sentences = [
        f"Checkpoints were {digits(costs.interval_s)} s of progress apart. A checkpoint blocked the training for "
        f"{digits(costs.checkpoint_s)} s and was sealed {digits(costs.latency_s)} s later. A restart took "
        f"{digits(costs.restart_s)} s.",
        f"With these costs, on {known.devices:,} devices with the failure rate of {known.project}, the best interval "
        f"is {digits(at)} s (Daly 2006) and the expected goodput is {100 * share:.1f} %; theirs was above "
        f"{known.goodput:.0%}.",
    ]
    return [Section(heading="How far apart checkpoints should be", sentences=sentences, definition=GOODPUT)]


def _numbers(start: Start) -> dict[str, Any]:
    """One start as JSON values."""
    seconds = {kind: round(ns / 1e9, 3) for kind, ns in start.ns.items()}
    saved = [save.step for save in start.saves]
    return {"begun_ns": start.begun_ns, "from_step": start.from_step, "step": start.step, "saved": saved, "s": seconds}
