# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The verdicts of an audit: on the terminal, as audit.csv, and as a page with one figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from rich.console import Console

from jaxbench.core.store import write_atomic
from jaxbench.errors import UserError
from jaxbench.features.audit import checks, table
from jaxbench.features.audit.checks import CANNOT_TELL, CONSISTENT, INCONSISTENT, KINDS, LIMIT, Audited
from jaxbench.report import page
from jaxbench.report.drawing import axes as axis_lib
from jaxbench.report.drawing import canvas, marks, notes, shapes
from jaxbench.report.drawing.canvas import plot
from jaxbench.report.page import Page, Purpose, Section
from jaxbench.report.pictures import pictured
from jaxbench.report.table import ALWAYS, TEXT, Column, fill, share, to_csv
from jaxbench.statistics.bootstrap import Estimate

PAGE, CSV, DEFINITION = "audit.html", "audit.csv", "audit"
_DRAWN, _LISTED = 15, 24  # the most rows that the figure and the terminal show
_BARE = "{rows}: no two of the numbers can be compared."
_GIVE = "Give what holds for all rows, such as {facts}."
# Facts that let a row be checked, with the names under which a row has them.
_FACTS = {"device=H100": "device", "seq_len=4096": "seq", "precision=bf16": "precision"}
_STYLES = {CONSISTENT: "ok", INCONSISTENT: "no", CANNOT_TELL: "missing"}
_WHY = (
    Column("disagree", lambda row: "; ".join(row.contradictions)),
    Column("doubt", "doubt", kind=TEXT),
)
_COLUMNS = (
    Column("row", "row.number", terminal=ALWAYS),
    Column("model", "model.name", kind=TEXT, terminal=8),
    Column("devices", lambda row: span.value if (span := row.get("devices")) else None, "{:g}".format, terminal=8),
    Column("verdict", "verdict", kind=TEXT, style=_STYLES.__getitem__, terminal=ALWAYS),
    Column("formula", "formula", kind=TEXT, terminal=7, definition=DEFINITION),
    Column("peak", "peak", kind=TEXT, terminal=6, definition=DEFINITION),
    Column(
        "efficiency",
        lambda row: _efficiency_estimate(row),
        share,
        terminal=7,
        heading="efficiency, %",
        definition=DEFINITION,
        bounds=True,
    ),
    Column("base", lambda row: row.base or None, terminal=5, heading="over row"),
)


def _efficiency_estimate(row: Audited) -> Estimate | None:
    span = row.efficiency
    return None if span is None else Estimate(value=span.value, lo=span.low, hi=span.high)


@plot("audit")
def draw_audit(rows: Sequence[Audited], *, title: str) -> shapes.Chart | None:
    """How far the numbers of a row are apart, over what their digits allow. Left of the dashed line they agree. Right
    of it they do not, by the percentage next to the mark. Rows that agree best are left out."""
    shown = [(row, [check for check in row.checks if check.kind != LIMIT or not check.ok]) for row in rows]
    every = sorted((entry for entry in shown if entry[1]), key=lambda entry: -max(c.strain for c in entry[1]))
    drawn = every[:_DRAWN]
    made = [
        marks.Mark(
            at=at,
            value=marks.exact(check.strain),
            style=KINDS.index(check.kind),
            text="" if check.ok else f"{100 * check.miss:+.2g} %",
        )
        for at, (_, checks) in enumerate(drawn)
        for check in checks
    ]
    panel = shapes.Panel(
        x="difference over rounding error", layers=[shapes.on(marks.dots, made)], axes=[_strain_axis], level=1
    )
    names = [f"{row.row.number} {canvas.short(row.model.name, 40)}" for row, _ in drawn]
    handles = [marks.handle(at, k, between="none") for at, k in enumerate(KINDS) if at in {m.style for m in made}]
    rest = notes.rest(len(drawn), len(every), "rows, those with the largest differences")
    return shapes.rows(names, [panel], title=title, handles=handles, remarks=rest) if made else None


def _strain_axis(axes: Axes) -> None:
    """Linear up to 1, which is where rows stop to agree, and logarithmic from there: differences of 0 have a place."""
    top = max(axes.dataLim.x1, 2.0)
    axes.set_xscale("symlog", linthresh=1.0, linscale=0.5)
    axes.set_xlim(-0.05, top * 1.6)
    ticks = [0.0, 0.5, *axis_lib.round_ticks(1.0, max(10.0, top))]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: axis_lib.plain(value)))


def _not_compared(rows: Sequence[Audited]) -> list[str]:
    """Sentences on all rows in which nothing could be checked, and on the facts that none of them has."""
    bare = [row for row in rows if row.verdict == CANNOT_TELL and not row.doubt]
    if not bare:
        return []
    which = f"Row {bare[0].row.number}" if len(bare) == 1 else f"{len(bare)} rows, such as {bare[0].row.number}"
    known = {name for each in bare for name in (*each.row.texts, *each.row.values)}
    lacking = [fact for fact, name in _FACTS.items() if name not in known]
    return [_BARE.format(rows=which), *([_GIVE.format(facts=" ".join(lacking))] if lacking else [])]


def audit(path: Path, facts: Sequence[str], folder: Path, console: Console) -> bool:
    """Prints the verdicts, and writes audit.html, audit.csv and figures/audit. Returns whether no row is inconsistent.

    Raises UserError: there is no table or no such fact, or the folder cannot be written.
    """
    columns = table.read(path, facts)
    rows, words = checks.audit(columns)
    ordered = sorted(rows, key=lambda row: row.verdict != INCONSISTENT)  # for what shows only the first rows
    counts, title = Counter(row.verdict for row in rows), f"Do the numbers of {path.name} agree?"
    known = [column.header for column in columns if column.meanings or column.text]
    others = [column.header for column in columns if column.header not in known]
    headlines = [
        f"{len(rows)} rows: {', '.join(f'{counts[verdict]} {verdict}' for verdict in _STYLES)}.",
        f"Understood: {', '.join(known) or 'no column'}. Not understood: {', '.join(others) or 'none'}.",
        *(f"'{header}' leaves open what it means. It is taken to be {how}." for header, how in words.items()),
    ]
    wrong = [f"Row {row.row.number} {row.model.name}: {clause}." for row in rows for clause in row.contradictions]
    doubted = [row for row in rows if row.doubt and row.verdict == CANNOT_TELL]
    doubts = [f"Row {row.row.number} {row.model.name}: {row.doubt}." for row in doubted] + _not_compared(rows)
    known_models = {row.model.name: row.model.known for row in rows if row.model.known not in ("", row.model.name)}
    taken = [f"{name} is taken as {model}." for name, model in known_models.items()]
    found = {
        "Inconsistent": wrong,
        "Cannot tell": doubts,
        "Where a forecast lies": checks.forecasts(rows),
        "Models": taken,
    }
    sections = [
        Section(each, texts, Purpose.SHORTFALL if texts is wrong else Purpose.NOTE, DEFINITION)
        for each, texts in found.items()
        if texts
    ]
    more = f"{len(rows) - _LISTED} more rows are on the page." if len(rows) > _LISTED else ""
    files, shown = pictured("audit", lambda: draw_audit(ordered, title=title), draw_audit.caption)
    made = Page(
        name="audit",
        heading=title,
        headlines=headlines,
        table=fill(_COLUMNS, rows),
        sections=sections,
        brief=fill(_COLUMNS, ordered[:_LISTED], note=more),
        definition=DEFINITION,
        made_from=path.name,
        pictures=shown,
    )
    try:
        canvas.write(files, folder / "figures", "audit")
        write_atomic(folder / CSV, to_csv((*_COLUMNS, *_WHY), rows))
        write_atomic(folder / PAGE, page.render(made))
    except OSError as error:
        raise UserError(f"cannot write the audit into '{folder}' ({error.strerror}).") from error
    page.show(made, console)
    console.print(f"\nPage, figure and table: {folder / PAGE}", highlight=False, soft_wrap=True)
    return not wrong
