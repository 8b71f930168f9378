# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What was compiled for hardware that is not here: a table on the terminal, a page, a figure and summary.csv."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from jaxbench.analysis import compiled, summary
from jaxbench.analysis.compiled import MARK, CompiledRow, gigabytes
from jaxbench.records.store import RunFolder, write_atomic
from jaxbench.report import page
from jaxbench.report.drawing import canvas
from jaxbench.report.figures import compiled as figure
from jaxbench.report.page import Cell, Column, Fold, Line, Page, Picture, Sheet

NOTE = f"Every row: {MARK}. Memory is per device: arguments, results and scratch, what they share once."


def write(run: RunFolder, console: Console | None) -> list[str]:
    """The report of a run that compiled only. Returns what is amiss."""
    found, manifest = compiled.rows(run), run.manifest()
    write_atomic(run.path / "summary.csv", summary.to_csv(compiled.table(found, manifest)))
    title = f"{manifest['plan']['experiment']} on {manifest['target']}: {MARK}"
    files = canvas.render(lambda: figure.draw(found, title=title))
    canvas.write(files, run.path / "figures", "compiled")
    pictures = [Picture(name="compiled", svg=files["svg"], caption=figure.CAPTION)] if files else []
    write_atomic(run.path / "report.html", page.render(_page(found, manifest, title, pictures)))
    if console is not None:
        _show(found, title, console)
    return compiled.amiss(found) if found else ["The plan asks for no points."]


def headline(found: Sequence[CompiledRow]) -> str:
    """ "40 of 40 points compile, 40 fit, 40 communicate what their closed form says." """
    count = len(found)
    compiles = sum(row.record is not None for row in found)
    fits, right = (sum(bool(getattr(row, name)) for row in found) for name in ("fits", "right"))
    asked = sum(row.right is not None for row in found)
    said = f"{compiles} of {count} points compile, {fits} fit into a device's memory"
    return f"{said}, {right} of {asked} communicate exactly what their closed form says." if asked else f"{said}."


def _page(found: Sequence[CompiledRow], manifest: dict[str, Any], title: str, pictures: Sequence[Picture]) -> Page:
    wrong = compiled.amiss(found)
    return Page(
        name=str(manifest["plan"]["experiment"]),
        heading=title,
        headlines=[headline(found), "Nothing was run: no number here is a measured time."],
        alarm=bool(wrong),
        pictures=pictures,
        table=_sheet(found),
        sections=[("Not as asked", wrong)] if wrong else [],
        folds=[_fold(row) for row in found],
        sources=[("Manifest", manifest)],
    )


def _sheet(found: Sequence[CompiledRow]) -> Sheet:
    names = (
        "point",
        "devices",
        "state",
        "memory",
        "compiler's peak",
        "fits",
        "sent a step",
        "closed form",
        "compile, s",
    )
    columns = tuple(Column(name, "text" if name in ("point", "state", "closed form") else "") for name in names)
    return Sheet(columns=columns, lines=tuple(Line(cells=_cells(row)) for row in found), note=NOTE)


def _cells(row: CompiledRow) -> tuple[str | Cell, ...]:
    record = row.record
    memory, peak = (record.peak_bytes, record.compiler_peak_bytes) if record is not None else (None, None)
    return (
        row.name,
        str(row.point.get("devices", "")),
        Cell(row.status, "ok" if record is not None else row.status),
        "" if memory is None else gigabytes(memory),
        "" if peak is None else gigabytes(peak),
        "" if row.fits is None else Cell("yes" if row.fits else "NO", "ok" if row.fits else "no"),
        "" if record is None else gigabytes(row.wire_bytes) if row.wire_bytes else "nothing",
        "" if row.right is None else Cell("equal" if row.right else "DIFFERS", "ok" if row.right else "no"),
        "" if record is None else f"{record.compile_s:.1f}",
    )


def _fold(row: CompiledRow) -> Fold:
    record = row.record
    if record is None:
        return Fold(name=row.name, state=row.status, reason=row.why)
    names = ("collective", "mesh axis", "group", "operands", "bytes", "of them metrics", "sent by a device")
    columns = tuple(Column(name, "text" if name in ("collective", "mesh axis") else "") for name in names)
    lines = tuple(
        Line(
            cells=(
                each.kind, each.axis, str(each.group or ""), str(each.count), f"{each.bytes:,}",
                f"{each.scalar_bytes:,}", f"{each.wire_bytes:,}",
            )
        )
        for each in record.collectives
    )  # fmt: skip
    state = "ok" if row.right is not False else "wrong"
    return Fold(name=row.name, state=state, sheets=(Sheet(columns=columns, lines=lines),), notes=(row.why,))


def _show(found: Sequence[CompiledRow], title: str, console: Console) -> None:
    console.print()
    console.print(Text(title, style="bold"))
    console.print(Text(headline(found)))
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for name in ("point", "memory", "fits", "sent a step", "closed form", "compile"):
        table.add_column(name, justify="left" if name == "point" else "right", no_wrap=name != "point")
    for row in found:
        _, _, state, memory, _, fits, sent, right, seconds = map(_text, _cells(row))
        cells = [row.name, memory if row.record else state, fits, sent, right, f"{seconds} s" if seconds else ""]
        table.add_row(*map(Text, cells), style="red" if row.record is None or row.right is False else "")
    console.print(table)
    console.print(Text(NOTE, style="dim"))
    for sentence in compiled.amiss(found):
        console.print(Text(sentence, style="yellow"))


def _text(cell: str | Cell) -> str:
    return cell if isinstance(cell, str) else cell.text
