# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench cards`: all cards of a folder as one table and one figure. A damaged one is shown as damaged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from jaxbench.analysis.headline import percent
from jaxbench.cards import layout, rows
from jaxbench.cards.layout import Card
from jaxbench.cards.rows import Shown
from jaxbench.errors import UserError
from jaxbench.report import tables
from jaxbench.report.drawing import canvas
from jaxbench.report.figures import cards as figure

FOLDER = Path("cards")
_WIDE = 116  # columns below which the interval of the step time is left out


def cards(folder: Path, filters: Sequence[str], console: Console) -> int:
    """Prints the table and writes `folder`/cards.svg, .pdf and .png. Returns 1 when a card is damaged, else 0.

    filters: `field=pattern` words; all must match, and of several patterns of a field one.

    Raises:
      UserError: there is no such folder, or a filter is none, or the figure cannot be written.
    """
    asked = rows.read_filters(filters)
    if not folder.is_dir():
        raise UserError(f"there is no folder '{folder}' with result cards: 'make card RUN=...' makes the first.")
    found, damaged = _read(folder)
    every = [row for card in found for row in rows.of_card(card)]
    shown = [row for row in every if rows.matches(row, asked)]
    if not found and not damaged:
        console.print(f"{folder} holds no result card: 'make card RUN=...' makes the first.", soft_wrap=True)
        return 0
    console.print(_table(shown, [path for path, _ in damaged], wide=console.width >= _WIDE))
    console.print(Text(_legend(shown), style="dim"))
    sentences = [said for _, said in damaged] + _twins(found)
    if len(shown) < len(every):
        sentences.append(f"{len(shown)} of {len(every)} rows match {' '.join(filters)}.")
    sentences += _draw(shown, folder, filters)
    for said in sentences:
        console.print(Text(rows.printable(said)), soft_wrap=True)
    return 1 if damaged else 0


def _read(folder: Path) -> tuple[list[Card], list[tuple[Path, str]]]:
    """The cards, and the files that are damaged with what is wrong with each."""
    found: list[Card] = []
    damaged: list[tuple[Path, str]] = []
    for path in sorted(folder.glob("*.json")):
        try:
            found.append(layout.read(path))
        except UserError as error:
            damaged.append((path, str(error)))
    return found, damaged


def _twins(found: Sequence[Card]) -> list[str]:
    """A sentence for each two files that tell of one run."""
    said = []
    for place, card in enumerate(found):
        for other in found[:place]:
            names = f"'{other.path.name}' and '{card.path.name}'"
            if card.data["sha256"] == other.data["sha256"]:
                said.append(f"{names} are the same card: delete one.")
            elif (start := card.manifest.get("started")) and start == other.manifest.get("started"):
                if card.data["config"] == other.data["config"]:
                    said.append(f"{names} are two cards of one run, begun {start}: they are no two measurements.")
    return said


def _table(shown: Sequence[Shown], damaged: Sequence[Path], *, wide: bool) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for name in ("machine", "experiment", "strategy"):
        table.add_column(name, overflow="fold")
    for name in ("devices", "ms per step", "efficiency %"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("state", "jax", "date"):
        table.add_column(name, no_wrap=True)
    before = None
    for row in shown:
        if before is not None and before != row.card.path:
            table.add_section()
        before = row.card.path
        cells = map(Text, _cells(row, wide=wide))  # as strings they would be read as markup
        state = Text(row.state, style=tables.colour(row.state))
        last = map(Text, (rows.version(row.card), rows.date(row.card)))
        table.add_row(*cells, state, *last, style="dim" if row.oversubscribed else "")
    for path in damaged:
        table.add_row(
            Text(rows.printable(path.name)), *[Text("")] * 5, Text("damaged", style="bold red"), Text(""), Text("")
        )
    return table


def _cells(row: Shown, *, wide: bool) -> list[str]:
    """An interval around a time or ratio of more devices than cores would look like a finding, so it has none."""
    efficiency = row.efficiency.alone() if row.oversubscribed else row.efficiency
    share = percent(efficiency, fine=False).replace(" %", "") if efficiency.known else ""
    what = f"{row.strategy} {row.scaling}".strip()
    return [
        row.machine,
        row.experiment,
        f"{what} (largest of {row.cases})" if row.cases > 1 else what,
        f"{row.devices}{'°' if row.oversubscribed else ' '}",
        tables.milliseconds(row.step_s, interval=wide and not row.oversubscribed),
        "base" if row.base else share,
    ]


def _legend(shown: Sequence[Shown]) -> str:
    said = "Medians with 95 % intervals over rounds, as each card says them."
    if any(row.oversubscribed for row in shown):
        said += " ° more devices than cores: proves correctness, not speed."
    return said


def _draw(shown: Sequence[Shown], folder: Path, filters: Sequence[str]) -> list[str]:
    """Writes the figure. Returns what it leaves out, and where it is."""
    lines = rows.lines(shown)
    alone = sorted({rows.printable(line.experiment) for line in lines if len(line.marks) < 2})
    cases = sorted({row.experiment for row in shown if row.card.of_cases})
    left_out = [f"not drawn, on one device count only: {', '.join(alone)}"] if alone else []
    left_out += [f"not drawn, as kernels, transfers and links have no efficiency: {', '.join(cases)}"] if cases else []
    title = "Efficiency of all result cards" + (f" with {' '.join(filters)}" if filters else "")
    files = canvas.render(lambda: figure.draw(lines, title=rows.printable(title), further=left_out))
    if not files:
        return [f"The figure was not drawn: no card {'that matches ' if filters else ''}has two device counts."]
    try:
        canvas.write(files, folder, figure.NAME)
    except OSError as error:
        raise UserError(f"cannot write the figure into '{folder}' ({error.strerror}).") from error
    return [f"Figure: {folder / figure.NAME}.svg, .pdf, .png", *(f"In the figure {said}." for said in left_out)]
