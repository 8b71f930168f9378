# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The self-contained HTML page: one file, no request leaves it, nothing in it can run.

A page is plain data (`Page`); what it says about a training run is in `training_page`, about cases in `case_page`.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jinja2

from jaxbench import __version__
from jaxbench.records.schema import RoundRecord

RAW_ROUNDS = 2000  # rounds of raw samples the page holds at most; records.jsonl has all of them


class Column(NamedTuple):
    """kind: "" for numbers, "text", or "fold" for text that may break into lines."""

    name: str
    kind: str = ""


class Cell(NamedTuple):
    """A cell with a meaning of its own: `kind` is a class of the style sheet ("ok", "no", "missing", ...)."""

    text: str
    kind: str = ""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One row of a table. first: begins a group. soft: greyed, since its numbers say nothing about speed."""

    cells: tuple[str | Cell, ...]
    first: bool = False
    soft: bool = False


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """A table; one without column names has no header. note: a sentence below it, or alone where there are no lines."""

    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    note: str = ""

    @property
    def header(self) -> bool:
        return any(column.name for column in self.columns)


@dataclass(frozen=True, kw_only=True)
class Picture:
    """One of this package's own figures. name: which, for those who cannot see it."""

    name: str
    svg: bytes
    caption: str = ""

    @property
    def inline(self) -> str:
        return inline(self.svg, self.name)


@dataclass(frozen=True, kw_only=True)
class Fold:
    """What a reader may unfold about one point. raw: its samples; hidden: rounds that `raw` leaves out."""

    name: str
    state: str
    reason: str = ""
    detail: str = ""
    sheets: tuple[Sheet, ...] = ()
    notes: tuple[str, ...] = ()
    raw: Sheet | None = None
    hidden: int = 0


@dataclass(frozen=True, kw_only=True)
class Page:
    """Everything on one page. links: (relative address, text). sources: (heading, JSON-able value) for the end."""

    name: str
    heading: str
    headlines: Sequence[str]
    alarm: bool
    pictures: Sequence[Picture]
    table: Sheet
    sections: Sequence[tuple[str, Sequence[str]]]
    folds: Sequence[Fold] = ()
    links: Sequence[tuple[str, str]] = ()
    sources: Sequence[tuple[str, Any]] = ()
    made_from: str = "manifest.json, config.json and records.jsonl"


def render(page: Page) -> str:
    """Returns the page as HTML. Everything that comes from the run is escaped; the figures are this package's own."""
    sources = [(heading, pretty(value)) for heading, value in page.sources]
    return template("template.html").render(page=page, sources=sources, version=__version__)


@functools.cache
def template(name: str) -> jinja2.Template:
    """One of this package's templates, in which everything is escaped that does not say otherwise."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("jaxbench.report", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)


def inline(svg: bytes, name: str) -> str:
    """The SVG element alone, without comments: matplotlib writes every text of the figure into one.

    Its ids get `name` in front, because every figure calls its first axes the same and all stand in one document.
    """
    text = svg.decode()
    text = text[text.index("<svg") :]
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", text)
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text)
    return re.sub(r'width="[\d.]+pt" height="[\d.]+pt"', f'role="img" aria-label="{name} figure"', text, count=1)


def raw_rounds(rounds: Sequence[RoundRecord], points: int) -> tuple[Sequence[RoundRecord], int]:
    """The rounds of one of `points` points that the page has room for, and how many it leaves out."""
    shown = rounds[: max(3, RAW_ROUNDS // max(1, points))]
    return shown, len(rounds) - len(shown)


def facts(pairs: Sequence[tuple[str, str]]) -> Sheet:
    """A table of names and values."""
    columns = (Column("", "text"), Column("", "text"))
    return Sheet(columns=columns, lines=tuple(Line(cells=pair) for pair in pairs))


def pretty(value: Any) -> str:
    """JSON for people."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)
