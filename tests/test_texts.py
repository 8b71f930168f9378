# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Control characters of foreign texts reach no terminal, figure, page or table, and no cell becomes a formula."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import hypothesis.strategies as st
import pytest
from doorway import jaxbench
from hypothesis import given
from matplotlib.figure import Figure
from rich.table import Table
from rich.text import Text

from jaxbench.api.results import frame
from jaxbench.app import Terminal
from jaxbench.report import page
from jaxbench.report.drawing import canvas
from jaxbench.report.table import TEXT, Column, plain, to_csv
from jaxbench.texts import as_cell, from_cell, visible

NASTY = {
    "escape": "a\x1b[2J\x1b[1;31mb", "C1": "a\x9b31mb", "delete": "a\x7f\x08b", "override": "a\u202egnp.exe",
    "isolate": "a\u2066b\u2069", "bell": "a\x07b", "return": "safe\rfaster", "null": "a\x00b",
}  # fmt: skip


def hidden(text: str) -> bool:
    return any(not each.isprintable() and each not in "\n\t" for each in text)


@pytest.mark.parametrize("name", NASTY)
def test_a_control_character_is_shown_by_its_name_everywhere(name: str) -> None:
    foreign = NASTY[name]
    assert visible("µ ± é 日本\n\t") == "µ ± é 日本\n\t" and not hidden(visible(foreign))
    console = Terminal(file=io.StringIO(), width=100, markup=False)
    table = Table()
    table.add_column("model")
    table.add_row(foreign)
    for shown in (foreign, Text(foreign), table):
        console.print(shown)
    assert not hidden(console.file.getvalue())  # type: ignore[attr-defined]
    made = page.Page(
        name="x", heading=foreign, headlines=[foreign], table=plain({"model": TEXT}, [(foreign,)]),
        sections=[page.Section(foreign, [foreign])], pictures=(), sources=[(foreign, {foreign: foreign})],
    )  # fmt: skip
    assert not hidden(page.render(made))
    table_of_csv = to_csv([Column("model", lambda row: row)], [foreign])
    assert not hidden(table_of_csv)

    def draw() -> Figure:
        figure = Figure()
        axes = figure.subplots()
        axes.set_title(foreign)
        axes.plot([1, 2], label=foreign)
        axes.legend()
        return figure

    assert not hidden(canvas.render(draw)["svg"].decode())


def test_an_error_shows_the_characters_of_a_name(tmp_path: Path) -> None:
    done = jaxbench("report", "--run=no\x1b[31mred\x9b", cwd=tmp_path)
    assert done.returncode == 2 and "no\\x1b[31mred\\x9b" in done.stderr and not hidden(done.stderr)


CELLS = ["=1+1", "+1+1", "@SUM(A1)", "-1+1", "\t=1", "=cmd|' /C calc'!A0", "-", "+", "'=1", "''-x"]


@pytest.mark.parametrize("text", CELLS)
def test_a_cell_is_no_formula_and_is_read_back(text: str) -> None:
    made = to_csv([Column("model", lambda row: row)], [text])
    ((cell,),) = list(csv.reader(io.StringIO(made)))[1:]
    assert cell.startswith("'") and from_cell(cell) == text
    assert list(frame(made)["model"]) == [text]


@pytest.mark.parametrize("text", ["-1", "+2.5e-3", "-.5", "plain", "'quoted'", "3-4"])
def test_numbers_and_other_texts_stay(text: str) -> None:
    assert as_cell(text) == text


@given(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Zl", "Zp"])))
def test_every_printable_text_is_read_back(text: str) -> None:
    assert from_cell(as_cell(text)) == text
