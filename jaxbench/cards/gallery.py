# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench cards`: all cards of a folder as one table and one figure. Damaged cards are listed as damaged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.summary import state as state_of
from jaxbench.cards import card as cards_lib
from jaxbench.cards.card import Card
from jaxbench.errors import UserError, did_you_mean
from jaxbench.report.drawing import canvas
from jaxbench.report.drawing.marks import Mark
from jaxbench.report.figures import cards as figure
from jaxbench.report.figures.cards import CardCurve
from jaxbench.report.findings import OVERSUBSCRIBED
from jaxbench.report.numbers import milliseconds, share
from jaxbench.report.table import ALWAYS, TEXT, Cell, Column, Table, TableRow, fill
from jaxbench.report.verdicts.words import clean

FOLDER = Path("cards")


@dataclass(frozen=True, kw_only=True)
class GalleryRow:
    """One row of the table.

    Attributes:
      strategy: the strategy and the arm, if there is one; the operation in a card of cases.
      base: whether the efficiencies of its curve are relative to it.
      state: ok | wrong | unchecked | partial | failed | missing; the worst state if the row stands for several cases.
      cases: how many cases the row stands for; it shows the time of the largest. 0 in a training.
    """

    card: Card
    machine: str
    experiment: str
    strategy: str
    scaling: str
    devices: int
    step_s: Estimate
    efficiency: Estimate
    oversubscribed: bool
    base: bool
    state: str
    cases: int = 0

    @property
    def fields(self) -> dict[str, str]:
        """The fields that filters match."""
        manifest = self.card.manifest
        plan = manifest.get("plan")
        planned = plan.get("platform", "") if isinstance(plan, dict) else ""
        return {
            "card": self.card.path.stem,
            "machine": self.machine,
            "platform": str(manifest.get("platform") or planned),
            "device_kind": str(self.card.data["name"].get("device_kind", "")),
            "experiment": self.experiment,
            "strategy": self.strategy,
            "scaling": self.scaling,
            "devices": str(self.devices),
            "state": self.state,
            "jax": version(self.card),
            "date": date(self.card),
        }


FIELDS = (
    "card", "machine", "platform", "device_kind", "experiment", "strategy", "scaling", "devices", "state", "jax",
    "date",
)  # fmt: skip
_WORST = ("failed", "wrong", "missing", "unsupported", "partial", "unchecked", "ok")


def version(card: Card) -> str:
    versions = card.manifest.get("versions")
    return printable(versions.get("jax", "")) if isinstance(versions, dict) else ""


def date(card: Card) -> str:
    """The day on which the run began, such as "2026-11-21"."""
    return printable(card.manifest.get("started", ""))[:10]


def printable(text: Any) -> str:
    """The text without terminal control characters."""
    return clean(str(text))


def machine(card: Card) -> str:
    """The accelerator or the processor, with the number of devices or cores."""
    manifest = card.manifest
    kind = printable(card.data["name"].get("device_kind", "unknown"))
    if kind != "cpu":
        return f"{manifest.get('devices', '?')} x {kind}"
    cores = manifest.get("cores")
    name = printable(manifest.get("cpu_model") or "cpu")
    return f"{name}, {cores} core{'s' if cores != 1 else ''}" if cores else name


def rows_of(card: Card) -> list[GalleryRow]:
    return _of_cases(card) if card.of_cases else [_shown(card, point, _strategy(point)) for point in card.points]


def _strategy(point: dict[str, Any]) -> str:
    return printable(f"{point['strategy']} {point['arm'] or ''}".strip())


def _of_cases(card: Card) -> list[GalleryRow]:
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for point in card.points:
        groups.setdefault((point["op"], point["dtype"], point["devices"]), []).append(point)
    rows = []
    for (op, dtype, _), group in groups.items():
        largest = max(group, key=lambda p: (p["step_s"] is not None, p["payload_bytes"] or p["elements"] or 0))
        states = {_state(point) for point in group}
        worst = next((word for word in _WORST if word in states), "missing")
        rows.append(_shown(card, largest, printable(f"{op} {dtype or ''}".strip()), state=worst, cases=len(group)))
    return rows


def _shown(card: Card, point: dict[str, Any], strategy: str, *, state: str = "", cases: int = 0) -> GalleryRow:
    return GalleryRow(
        card=card,
        machine=machine(card),
        experiment=printable(card.data["name"].get("experiment", "")),
        strategy=strategy,
        scaling=printable(point.get("scaling") or ""),
        devices=point["devices"],
        step_s=_estimate(point, "step_s"),
        efficiency=_estimate(point, "efficiency"),
        oversubscribed=bool(point["oversubscribed"]),
        base=point.get("base_devices") == point["devices"],
        state=state or _state(point),
        cases=cases,
    )


def _state(point: dict[str, Any]) -> str:
    return printable(state_of(point["status"], point["check_ok"]))


def _estimate(point: dict[str, Any], name: str) -> Estimate:
    value, lo, hi = (math.nan if point.get(f) is None else point[f] for f in (name, f"{name}_lo", f"{name}_hi"))
    return Estimate(value=value, lo=lo, hi=hi)


def read_filters(words: Sequence[str]) -> dict[str, list[str]]:
    """`experiment=cnn devices=1,8 strategy=zero*` -> patterns by field. Raises UserError."""
    filters: dict[str, list[str]] = {}
    for word in words:
        field, equals, patterns = word.partition("=")
        if not equals or not patterns:
            raise UserError(f"'{word}' is not a filter: write field=pattern, such as experiment=cnn or strategy=zero*.")
        if field not in FIELDS:
            raise UserError(f"cards have no field '{field}' to filter by: {did_you_mean(field, FIELDS)}")
        filters.setdefault(field, []).extend(patterns.lower().split(","))
    return filters


def matches(row: GalleryRow, filters: dict[str, list[str]]) -> bool:
    """Whether every filtered field matches one of its patterns, ignoring case."""
    fields = row.fields
    return all(any(fnmatchcase(fields[name].lower(), p) for p in patterns) for name, patterns in filters.items())


def curves_of(rows: Sequence[GalleryRow]) -> list[CardCurve]:
    """The curves of the figure: one for each card, strategy and scaling, over the points with an efficiency."""
    groups: dict[tuple[Any, ...], list[GalleryRow]] = {}
    for row in rows:
        if row.efficiency.known and row.state not in ("failed", "missing", "unsupported"):
            groups.setdefault((row.card.path, row.strategy, row.scaling), []).append(row)
    return [
        CardCurve(
            machine=group[0].machine,
            experiment=group[0].experiment,
            strategy=strategy,
            scaling=scaling,
            marks=tuple(Mark(at=row.devices, value=row.efficiency.times(100), state=_mark(row)) for row in group),
        )
        for (_, strategy, scaling), group in groups.items()
    ]


def _mark(row: GalleryRow) -> str:
    return "wrong" if row.state == "wrong" else "hollow" if row.oversubscribed else "solid"


def cards(folder: Path, filters: Sequence[str], console: Console) -> int:
    """Prints the table and writes `folder`/cards.svg, .pdf and .png. Returns 1 if a card is damaged, else 0.

    filters: `field=pattern` words; every field must match one of its patterns.

    Raises:
      UserError: the folder does not exist, a filter is invalid, or the figure cannot be written.
    """
    asked = read_filters(filters)
    if not folder.is_dir():
        raise UserError(f"there is no folder '{folder}' with cards: make the first with 'jaxbench card --run=DIR'.")
    readable, damaged = _read(folder)
    every = [row for card in readable for row in rows_of(card)]
    shown = [row for row in every if matches(row, asked)]
    if not readable and not damaged:
        console.print(f"{folder} holds no result card: make the first with 'jaxbench card --run=DIR'.", soft_wrap=True)
        return 0
    console.print(_table(shown, [path for path, _ in damaged]).terminal(console.width))
    console.print(Text(_legend(shown), style="dim"))
    sentences = [sentence for _, sentence in damaged] + _twins(readable)
    if len(shown) < len(every):
        sentences.append(f"{len(shown)} of {len(every)} rows match {' '.join(filters)}.")
    sentences += _draw(shown, folder, filters)
    for sentence in sentences:
        console.print(Text(printable(sentence)), soft_wrap=True)
    return 1 if damaged else 0


def _read(folder: Path) -> tuple[list[Card], list[tuple[Path, str]]]:
    """(the valid cards, (path, problem) of each damaged file)."""
    readable: list[Card] = []
    damaged: list[tuple[Path, str]] = []
    for path in sorted(folder.glob("*.json")):
        try:
            readable.append(cards_lib.read(path))
        except UserError as error:
            damaged.append((path, str(error)))
    return readable, damaged


def _twins(readable: Sequence[Card]) -> list[str]:
    """A sentence for each pair of files that hold the same run."""
    sentences = []
    for place, card in enumerate(readable):
        for other in readable[:place]:
            names = f"'{other.path.name}' and '{card.path.name}'"
            if card.data["sha256"] == other.data["sha256"]:
                sentences.append(f"{names} are the same card: delete one.")
            elif (start := card.manifest.get("started")) and start == other.manifest.get("started"):
                if card.data["config"] == other.data["config"]:
                    sentences.append(f"{names} are two cards of one run, started {start}, not two measurements.")
    return sentences


def _table(shown: Sequence[GalleryRow], damaged: Sequence[Path]) -> Table:
    made = fill(_COLUMNS, shown, group=lambda row: row.card.path, soft=lambda row: row.oversubscribed)
    columns, lines = made.columns or _COLUMNS, list(made.lines)
    for path in damaged:
        known = {"machine": Cell(printable(path.name)), "state": Cell("damaged", "no")}
        lines.append(TableRow(cells=tuple(known.get(column.name, Cell("")) for column in columns)))
    return Table(columns=columns, lines=tuple(lines))


def _time(row: GalleryRow) -> Estimate:
    """The step time. If oversubscribed it has no interval, because an interval would look like a finding."""
    return row.step_s.alone() if row.oversubscribed else row.step_s


def _efficiency(row: GalleryRow) -> Estimate | str:
    return "base" if row.base else row.efficiency.alone() if row.oversubscribed else row.efficiency


def _what(row: GalleryRow) -> str:
    what = f"{row.strategy} {row.scaling}".strip()
    return f"{what} (largest of {row.cases})" if row.cases > 1 else what


_COLUMNS = (
    Column("machine", "machine", kind=TEXT, terminal=ALWAYS),
    Column("experiment", "experiment", kind=TEXT, terminal=ALWAYS),
    Column("strategy", _what, kind=TEXT, terminal=ALWAYS),
    Column("devices", lambda row: f"{row.devices}{'°' if row.oversubscribed else ''}", terminal=ALWAYS),
    Column("ms per step", _time, milliseconds, terminal=ALWAYS, interval=1),
    Column("efficiency %", _efficiency, share, terminal=ALWAYS, interval=2),
    Column("state", "state", kind=TEXT, style=str, terminal=ALWAYS),
    Column("jax", lambda row: version(row.card), kind=TEXT, terminal=ALWAYS),
    Column("date", lambda row: date(row.card), kind=TEXT, terminal=ALWAYS),
)


def _legend(shown: Sequence[GalleryRow]) -> str:
    note = "Medians with 95 % bootstrap confidence intervals, from the records of each card."
    return note + (OVERSUBSCRIBED if any(row.oversubscribed for row in shown) else "")


def _draw(shown: Sequence[GalleryRow], folder: Path, filters: Sequence[str]) -> list[str]:
    """Writes the figure. Returns sentences: its path, and what it leaves out."""
    lines = curves_of(shown)
    alone = sorted({printable(line.experiment) for line in lines if len(line.marks) < 2})
    cases = sorted({row.experiment for row in shown if row.card.of_cases})
    left_out = [f"not drawn, because there is only one device count: {', '.join(alone)}"] if alone else []
    left_out += (
        [f"not drawn, because kernels, transfers and links have no efficiency: {', '.join(cases)}"] if cases else []
    )
    title = "Efficiency of all result cards" + (f" with {' '.join(filters)}" if filters else "")
    files = canvas.render(lambda: figure.draw(lines, title=printable(title), further=left_out))
    if not files:
        return [f"The figure was not drawn: no card {'that matches ' if filters else ''}has two device counts."]
    try:
        canvas.write(files, folder, figure.NAME)
    except OSError as error:
        raise UserError(f"cannot write the figure into '{folder}' ({error.strerror}).") from error
    return [f"Figure: {folder / figure.NAME}.svg, .pdf, .png", *(f"In the figure {reason}." for reason in left_out)]
