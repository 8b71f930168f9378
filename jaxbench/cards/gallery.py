# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench cards`: all cards of a folder as one table and one figure. Damaged cards are listed as damaged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from jaxbench.analysis.intervals import Estimate
from jaxbench.cards import layout, rows
from jaxbench.cards.layout import Card
from jaxbench.cards.rows import Shown
from jaxbench.errors import UserError
from jaxbench.report.drawing import canvas
from jaxbench.report.figures.runs import draw_cards
from jaxbench.report.findings import OVERSUBSCRIBED
from jaxbench.report.table import ALWAYS, TEXT, Cell, Column, Table, TableRow, fill, milliseconds, share

FOLDER = Path("cards")


def cards(folder: Path, filters: Sequence[str], console: Console) -> int:
    """Prints the table and writes `folder`/cards.svg, .pdf and .png. Returns 1 if a card is damaged, else 0.

    filters: `field=pattern` words; every field must match one of its patterns.

    Raises:
      UserError: the folder does not exist, a filter is invalid, or the figure cannot be written.
    """
    asked = rows.read_filters(filters)
    if not folder.is_dir():
        raise UserError(f"there is no folder '{folder}' with cards: make the first with 'jaxbench card --run=DIR'.")
    readable, damaged = _read(folder)
    every = [row for card in readable for row in rows.of_card(card)]
    shown = [row for row in every if rows.matches(row, asked)]
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
        console.print(Text(rows.printable(sentence)), soft_wrap=True)
    return 1 if damaged else 0


def _read(folder: Path) -> tuple[list[Card], list[tuple[Path, str]]]:
    """(the valid cards, (path, problem) of each damaged file)."""
    readable: list[Card] = []
    damaged: list[tuple[Path, str]] = []
    for path in sorted(folder.glob("*.json")):
        try:
            readable.append(layout.read(path))
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


def _table(shown: Sequence[Shown], damaged: Sequence[Path]) -> Table:
    made = fill(_COLUMNS, shown, group=lambda row: row.card.path, soft=lambda row: row.oversubscribed)
    columns, lines = made.columns or _COLUMNS, list(made.lines)
    for path in damaged:
        known = {"machine": Cell(rows.printable(path.name)), "state": Cell("damaged", "no")}
        lines.append(TableRow(cells=tuple(known.get(column.name, Cell("")) for column in columns)))
    return Table(columns=columns, lines=tuple(lines))


def _time(row: Shown) -> Estimate:
    """The step time. If oversubscribed it has no interval, because an interval would look like a finding."""
    return row.step_s.alone() if row.oversubscribed else row.step_s


def _efficiency(row: Shown) -> Estimate | str:
    return "base" if row.base else row.efficiency.alone() if row.oversubscribed else row.efficiency


def _what(row: Shown) -> str:
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
    Column("jax", lambda row: rows.version(row.card), kind=TEXT, terminal=ALWAYS),
    Column("date", lambda row: rows.date(row.card), kind=TEXT, terminal=ALWAYS),
)


def _legend(shown: Sequence[Shown]) -> str:
    note = "Medians with 95 % bootstrap confidence intervals, from the records of each card."
    return note + (OVERSUBSCRIBED if any(row.oversubscribed for row in shown) else "")


def _draw(shown: Sequence[Shown], folder: Path, filters: Sequence[str]) -> list[str]:
    """Writes the figure. Returns sentences: its path, and what it leaves out."""
    lines = rows.lines(shown)
    alone = sorted({rows.printable(line.experiment) for line in lines if len(line.marks) < 2})
    cases = sorted({row.experiment for row in shown if row.card.of_cases})
    left_out = [f"not drawn, because there is only one device count: {', '.join(alone)}"] if alone else []
    left_out += (
        [f"not drawn, because kernels, transfers and links have no efficiency: {', '.join(cases)}"] if cases else []
    )
    title = "Efficiency of all result cards" + (f" with {' '.join(filters)}" if filters else "")
    files = canvas.render(lambda: draw_cards(lines, title=rows.printable(title), further=left_out))
    if not files:
        return [f"The figure was not drawn: no card {'that matches ' if filters else ''}has two device counts."]
    try:
        canvas.write(files, folder, draw_cards.name)
    except OSError as error:
        raise UserError(f"cannot write the figure into '{folder}' ({error.strerror}).") from error
    return [f"Figure: {folder / draw_cards.name}.svg, .pdf, .png", *(f"In the figure {reason}." for reason in left_out)]
