# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench cards`: all cards of a folder as one table and one figure. Damaged cards are listed as damaged."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.typing import LineStyleType
from rich.console import Console
from rich.text import Text

from jaxbench.analysis.run_rows import state as state_of
from jaxbench.errors import UserError, did_you_mean
from jaxbench.features.cards import card as cards_lib
from jaxbench.features.cards.card import Card
from jaxbench.features.comparison.page import clean
from jaxbench.records import identity
from jaxbench.report.drawing import canvas, marks, notes
from jaxbench.report.drawing.axes import devices_axis, efficiency_axis, entitle
from jaxbench.report.drawing.canvas import Sheet, plot, short
from jaxbench.report.drawing.marks import Mark
from jaxbench.report.run_report import OVERSUBSCRIBED
from jaxbench.report.table import ALWAYS, TEXT, Cell, Column, Table, TableRow, fill, milliseconds, share
from jaxbench.statistics.bootstrap import Estimate

_CARDS_STYLES: dict[str, LineStyleType] = {"strong": "-", "weak": ":"}
_ACROSS = 3  # panels in a row
FOLDER = Path("cards")
FIELDS = (
    "card",
    "machine",
    "platform",
    "device_kind",
    "experiment",
    "strategy",
    "scaling",
    "devices",
    "state",
    "jax",
    "date",
)
# A row shows the first of these states that occurs.
_WORST = ("failed", "wrong", "missing", "unsupported", "partial", "unchecked", "ok")
_text = partial(Column, kind=TEXT, terminal=ALWAYS)
_COLUMNS = (
    _text("machine", lambda row: row.fields["machine"]),
    _text("experiment", lambda row: row.fields["experiment"]),
    _text("strategy", lambda row: _what(row)),
    Column("devices", lambda row: f"{row.devices}{'°' if row.oversubscribed else ''}", terminal=ALWAYS),
    Column("ms per step", lambda row: _claim(row, row.step_s), milliseconds, terminal=ALWAYS, interval=1),
    Column(
        "efficiency %",
        lambda row: "base" if row.base else _claim(row, row.efficiency),
        share,
        terminal=ALWAYS,
        interval=2,
    ),
    _text("state", lambda row: row.fields["state"], style=str),
    _text("jax", lambda row: row.fields["jax"]),
    _text("date", lambda row: row.fields["date"]),
)


@dataclass(frozen=True, kw_only=True)
class CardCurve:
    """One strategy of one card in one scaling. marks: efficiency in percent over the number of devices."""

    machine: str
    experiment: str
    strategy: str
    scaling: str
    marks: tuple[Mark, ...]

    @property
    def style(self) -> tuple[str, str, str]:
        return self.machine, self.strategy, self.scaling


@plot("cards")
def draw_cards(lines: Sequence[CardCurve], *, title: str, further: Sequence[str] = ()) -> Figure | None:
    """Efficiency over devices of all result cards, as recorded in each card."""
    drawn = sorted((line for line in lines if len(line.marks) > 1), key=lambda line: line.style)
    if not drawn:
        return None
    styles = list(dict.fromkeys(line.style for line in drawn))
    experiments = sorted({line.experiment for line in drawn})
    across = min(_ACROSS, len(experiments))
    sheet = Sheet(-(-len(experiments) // across), across, heights=2.2)
    panels = list(sheet.panels.flat)
    for axes, experiment in zip(panels, experiments, strict=False):
        _panel(axes, [line for line in drawn if line.experiment == experiment], styles, title=experiment)
    for axes in panels[len(experiments) :]:  # the last row may have fewer panels than the grid
        axes.set_axis_off()
    handles = [
        marks.handle(place, f"{short(machine, 34)}: {short(strategy, 30)}, {scaling}", between=_CARDS_STYLES[scaling])
        for place, (machine, strategy, scaling) in enumerate(styles)
    ]
    every = [mark for line in drawn for mark in line.marks]
    states = {mark.state for mark in every}
    remarks = [f"{notes.BARS}; n is in each card"] if any(mark.value.has_interval for mark in every) else []
    remarks += [note for state, note in (("hollow", notes.HOLLOW), ("wrong", notes.WRONG)) if state in states]
    return sheet.finish(title, [*handles, marks.guide_handle("ideal")], [*remarks, *further], even=False)


def _panel(axes: Axes, lines: Sequence[CardCurve], styles: list[tuple[str, str, str]], *, title: str) -> None:
    """Draws the efficiencies of several cards over devices."""
    marks.unity(axes, at=100, along="y")
    for place, line in enumerate(lines):
        # Dodged: cards of one machine have the same device counts, and their intervals would cover each other.
        factor, style = marks.dodge(place, len(lines)), _CARDS_STYLES.get(line.scaling, "-")
        made = [replace(mark, at=factor * mark.at) for mark in line.marks]
        marks.line(axes, made, place=styles.index(line.style), between=style)
    devices_axis(axes, sorted({int(mark.at) for line in lines for mark in line.marks}))
    efficiency_axis(axes)
    entitle(axes, f"{short(title, 18)}: efficiency, %")


@dataclass(frozen=True, kw_only=True)
class GalleryRow:
    """One row of the table: a point of a training, or an operation of a card of cases.

    Attributes:
      fields: what filters match, by FIELDS. strategy: with the arm, if there is one; of cases, the operation. state:
        the worst state of its cases. date: the day on which the run began.
      base: whether the efficiencies of its curve are relative to it.
      cases: how many cases the row stands for; it shows the time of the largest. 0 in a training.
    """

    card: Card
    fields: dict[str, str]
    devices: int
    step_s: Estimate
    efficiency: Estimate
    oversubscribed: bool
    base: bool
    cases: int = 0


def printable(text: Any) -> str:
    """The text without terminal control characters."""
    return clean(str(text))


def machine(card: Card) -> str:
    """The accelerator or the processor, with the number of devices or cores."""
    kind = card.data["name"]["device_kind"]  # manifests of older cards may have none
    return printable(identity.machine_name({**card.manifest, "platform": kind, "device_kind": kind}))


def rows_of(card: Card) -> list[GalleryRow]:
    name, manifest = card.data["name"], card.manifest
    # The manifest of a card is not decoded: cards of other versions, and of other people, may lack any of this.
    planned, versions = (about if isinstance(about := manifest.get(key), dict) else {} for key in ("plan", "versions"))
    common = {
        "card": card.path.stem,
        "machine": machine(card),
        "platform": manifest.get("platform") or planned.get("platform", ""),
        "device_kind": name["device_kind"],
        "experiment": name["experiment"],
        "jax": versions.get("jax", ""),
        "date": str(manifest.get("started", ""))[:10],
    }
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for point in card.points:
        key = (point["op"], point["dtype"], point["devices"]) if card.of_cases else (point["point"],)
        groups.setdefault(key, []).append(point)  # a card of cases has hundreds of sizes
    rows = []
    for group in groups.values():
        # One row for all payloads of an operation: the largest shows its bandwidth rather than its latency.
        largest = max(group, key=lambda p: (p["step_s"] is not None, p.get("payload_bytes") or p.get("elements") or 0))
        states = {state_of(point["status"], point["check_ok"]) for point in group}
        own = {
            "strategy": " ".join(filter(None, map(largest.get, ("op", "dtype", "strategy", "arm")))),
            "scaling": largest.get("scaling") or "",
            "devices": largest["devices"],
            "state": next((word for word in _WORST if word in states), "missing"),
        }
        rows.append(
            GalleryRow(
                card=card,
                fields={field: printable(value) for field, value in (common | own).items()},
                devices=largest["devices"],
                step_s=_estimate(largest, "step_s"),
                efficiency=_estimate(largest, "efficiency"),
                oversubscribed=bool(largest["oversubscribed"]),
                base=largest.get("base_devices") == largest["devices"],
                cases=len(group) if card.of_cases else 0,
            )
        )
    return rows


def _estimate(point: dict[str, Any], name: str) -> Estimate:
    """A number of a card with its interval."""
    # JSON has no NaN: a number that is not known is null in a card.
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
        filters.setdefault(field, []).extend(patterns.lower().split(","))  # device kinds are written in any case
    return filters


def curves_of(rows: Sequence[GalleryRow]) -> list[CardCurve]:
    """The curves of the figure: one for each card, strategy and scaling, over the points with an efficiency."""
    groups: dict[tuple[Any, ...], list[GalleryRow]] = {}
    for row in rows:
        if row.efficiency.known and row.fields["state"] not in ("failed", "missing", "unsupported"):
            groups.setdefault((row.card.path, row.fields["strategy"], row.fields["scaling"]), []).append(row)
    curves = []
    for group in groups.values():
        states = ["wrong" if r.fields["state"] == "wrong" else "hollow" if r.oversubscribed else "solid" for r in group]
        pairs = zip(group, states, strict=True)
        marks = tuple(Mark(at=row.devices, value=row.efficiency.times(100), state=state) for row, state in pairs)
        named = {name: group[0].fields[name] for name in ("machine", "experiment", "strategy", "scaling")}
        curves.append(CardCurve(**named, marks=marks))
    return curves


def cards(folder: Path, filters: Sequence[str], console: Console) -> int:
    """Prints the table and writes `folder`/cards.svg, .pdf and .png. Returns 1 if a card is damaged, else 0.

    With filters, the file is named after them: cards-experiment-cnn.svg.

    filters: `field=pattern` words; every field must match one of its patterns.

    Raises UserError if the folder does not exist, or a filter is invalid.
    """
    asked = read_filters(filters)  # refused before any card is read: each is analysed again
    if not folder.is_dir():
        raise UserError(f"there is no folder '{folder}' with cards: make the first with 'jaxbench card --run=DIR'.")
    readable: list[Card] = []
    damaged: dict[Path, str] = {}
    for path in sorted(folder.glob("*.json")):
        try:
            readable.append(cards_lib.read(path))
        except UserError as error:  # one damaged card must not hide the others, nor be hidden by them
            damaged[path] = str(error)
    if not readable and not damaged:
        console.print(f"{folder} holds no result card: make the first with 'jaxbench card --run=DIR'.", soft_wrap=True)
        return 0
    every = [row for card in readable for row in rows_of(card)]
    shown = [
        row
        for row in every
        if all(any(fnmatchcase(row.fields[name].lower(), p) for p in patterns) for name, patterns in asked.items())
    ]
    console.print(_table(shown, damaged).terminal(console.width))
    # From the records and not from the cards' own tables, which somebody may have edited.
    note = "Medians with 95 % bootstrap confidence intervals, from the records of each card."
    console.print(Text(note + (OVERSUBSCRIBED if any(row.oversubscribed for row in shown) else ""), style="dim"))
    sentences = [*damaged.values(), *_twins(readable)]
    if len(shown) < len(every):
        sentences.append(f"{len(shown)} of {len(every)} rows match {' '.join(filters)}.")
    for sentence in (*sentences, *_draw(shown, folder, filters)):
        console.print(Text(printable(sentence)), soft_wrap=True)
    return 1 if damaged else 0


def _twins(readable: Sequence[Card]) -> list[str]:
    """A sentence for each pair of files that hold the same run."""
    sentences = []
    # A run that is counted twice looks like a result that was reproduced.
    for card, other in itertools.combinations(readable, 2):
        names, start = f"'{card.path.name}' and '{other.path.name}'", card.manifest.get("started")
        if card.data["sha256"] == other.data["sha256"]:
            sentences.append(f"{names} are the same card: delete one.")
        elif start and start == other.manifest.get("started") and card.data["config"] == other.data["config"]:
            sentences.append(f"{names} are two cards of one run, started {start}, not two measurements.")
    return sentences


def _table(shown: Sequence[GalleryRow], damaged: Iterable[Path]) -> Table:
    """A row for each card, and one for each damaged file."""
    made = fill(_COLUMNS, shown, group=lambda row: row.card.path, soft=lambda row: row.oversubscribed)
    columns, lines = made.columns or _COLUMNS, list(made.lines)
    for path in damaged:  # as rows, too: a gallery that leaves them out would look complete
        known = {"machine": Cell(printable(path.name)), "state": Cell("damaged", "no")}
        lines.append(TableRow(cells=tuple(known.get(column.name, Cell("")) for column in columns)))
    return Table(columns=columns, lines=tuple(lines))


def _claim(row: GalleryRow, value: Estimate) -> Estimate:
    """Without an interval if the row is oversubscribed, because an interval would look like a finding."""
    return value.alone() if row.oversubscribed else value


def _what(row: GalleryRow) -> str:
    """The strategy and scaling of a row, or how many cases it stands for."""
    what = f"{row.fields['strategy']} {row.fields['scaling']}".strip()
    return f"{what} (largest of {row.cases})" if row.cases > 1 else what


def _draw(shown: Sequence[GalleryRow], folder: Path, filters: Sequence[str]) -> list[str]:
    """Writes the figure. Returns sentences: its path, and what it leaves out."""
    left_out = _left_out(shown)
    name = draw_cards.name
    if filters:  # never the figure of all cards, which a project commits
        name = f"{name}-{'-'.join(re.sub(r'[^a-z0-9]+', '-', word.lower()).strip('-') for word in filters)}"[:80]
    files = canvas.render(lambda: drawn(shown, filters))
    if not files:
        return [f"The figure was not drawn: no card {'that matches ' if filters else ''}has two device counts."]
    canvas.write(files, folder, name)
    return [f"Figure: {folder / name}.svg, .pdf, .png", *(f"In the figure {reason}." for reason in left_out)]


def drawn(shown: Sequence[GalleryRow], filters: Sequence[str]) -> Figure | None:
    """The figure of the cards' rows."""
    title = "Efficiency of all result cards" + (f" with {' '.join(filters)}" if filters else "")
    return draw_cards(curves_of(shown), title=printable(title), further=_left_out(shown))


def _left_out(shown: Sequence[GalleryRow]) -> list[str]:
    """What the figure lacks of the table above it."""
    curves, left_out = curves_of(shown), []
    if alone := sorted({curve.experiment for curve in curves if len(curve.marks) < 2}):
        left_out.append(f"not drawn, because there is only one device count: {', '.join(alone)}")
    if cases := sorted({row.fields["experiment"] for row in shown if row.card.of_cases}):
        left_out.append(f"not drawn, because kernels, transfers and links have no efficiency: {', '.join(cases)}")
    return left_out
