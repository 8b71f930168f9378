# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The self-contained HTML page: one file, no request leaves it, nothing in it can run.

A page is plain data (`Page`), which the terminal shows too (`terminal`). What it says is in `findings`,
`lever_findings` and `case_findings`.
"""

from __future__ import annotations

import enum
import functools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jinja2

from jaxbench import __version__
from jaxbench.command_form import as_typed
from jaxbench.report import definitions
from jaxbench.report.strip import Strip
from jaxbench.report.table import Table


class Purpose(enum.Enum):
    """The purpose of a section."""

    SHORTFALL = "why the run is incomplete or wrong: raises the page's alarm"
    NOTE = "what a reader should know"
    DETAIL = "on the page only: the terminal shows it in another form"


@dataclass(frozen=True)
class Section:
    """Sentences under a heading. definition: the anchor in docs/metrics of the numbers that they give."""

    heading: str
    sentences: Sequence[str]
    purpose: Purpose = Purpose.NOTE
    definition: str = ""


# Each heading once, in the order of every page: (purpose, anchor in docs/metrics of the numbers under it).
HEADINGS = {
    "Incomplete or failed": (Purpose.SHORTFALL, ""),
    "Not supported": (Purpose.NOTE, ""),
    "Refused by the gates": (Purpose.NOTE, "gates"),
    "Not measured": (Purpose.NOTE, ""),
    "Load": (Purpose.NOTE, "load"),  # first, because the numbers below are those of a busy machine
    "Why not 100 %": (Purpose.NOTE, "waterfall"),
    "What would help": (Purpose.NOTE, "waterfall"),
    "Baseline": (Purpose.NOTE, "levers"),
    "Compiler options": (Purpose.DETAIL, "levers"),
    "Inconclusive": (Purpose.NOTE, "levers"),
    "Stragglers": (Purpose.NOTE, "stragglers"),
    "Communication": (Purpose.DETAIL, "communication-alone-and-hidden"),
    "Base": (Purpose.DETAIL, "speed-up-and-efficiency"),
    "Notes": (Purpose.NOTE, ""),
    "Rounds": (Purpose.NOTE, "rounds"),
    "Crossings": (Purpose.NOTE, "crossings"),
    "Where the time goes": (Purpose.NOTE, "transfer-start-and-work"),
    "Training to a target": (Purpose.NOTE, "ways-to-a-target"),
    "Fits": (Purpose.NOTE, "fits-of-time-against-size"),
    "Is this normal?": (Purpose.NOTE, "is-this-normal"),
    "Peaks": (Purpose.NOTE, "ceilings-and-shares-of-a-peak"),
    "Scaling laws": (Purpose.NOTE, "scaling-laws"),
    "Phases": (Purpose.NOTE, "phases"),
    "Largest batch": (Purpose.NOTE, "batch"),
    "Memory by depth": (Purpose.NOTE, "recomputation"),
    "Real tokens": (Purpose.NOTE, "throughput"),
    "Utilisation": (Purpose.NOTE, "work-and-utilisation"),
    "Machine": (Purpose.DETAIL, "the-same-machine-and-the-same-model"),
}


def sections(sentences: Mapping[str, Sequence[str]]) -> list[Section]:
    """The sections that have sentences, in the order of `HEADINGS`. sentences: by heading."""
    return [
        Section(heading, sentences[heading], *HEADINGS[heading])
        for heading in sorted(sentences, key=list(HEADINGS).index)
        if sentences[heading]
    ]


@dataclass(frozen=True, kw_only=True)
class Picture:
    """One of this package's own figures. name: for readers who cannot see it."""

    name: str
    svg: bytes
    caption: str = ""

    @property
    def inline(self) -> str:
        return inline(self.svg, self.name)


@dataclass(frozen=True, kw_only=True)
class Fold:
    """Details of one point, folded. strip, raw: its samples drawn and written; hidden: how many rounds `raw` leaves
    out."""

    name: str
    state: str
    reason: str = ""
    detail: str = ""
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    strip: Strip | None = None
    raw: Table | None = None
    hidden: int = 0


@dataclass(frozen=True, kw_only=True)
class Page:
    """Everything on one page. links: (relative address, text). sources: (heading, JSON-able value), shown last.

    brief: a shorter `table` for the terminal; None: the terminal shows all of it. definition: the anchor in
    docs/metrics of what the headlines say.
    """

    name: str
    heading: str
    headlines: Sequence[str]
    pictures: Sequence[Picture]
    table: Table
    brief: Table | None = None
    sections: Sequence[Section]
    folds: Sequence[Fold] = ()
    links: Sequence[tuple[str, str]] = ()
    sources: Sequence[tuple[str, Any]] = ()
    definition: str = ""
    made_from: str = "manifest.json, config.json and records.jsonl"

    @property
    def alarm(self) -> bool:
        """Whether something is incomplete or wrong."""
        return any(section.purpose is Purpose.SHORTFALL for section in self.sections)

    @property
    def definitions(self) -> tuple[tuple[str, str, str], ...]:
        """(id, heading, HTML) of each definition that a number of the page rests on."""
        tables = [self.table, *(table for fold in self.folds for table in (*fold.tables, fold.raw) if table)]
        anchors = {self.definition, *(section.definition for section in self.sections)}
        anchors.update(column.definition for table in tables if table.lines for column in table.columns)
        return definitions.used(frozenset(anchors))


def render(page: Page) -> str:
    """Returns the page as HTML. Everything that comes from the run is escaped; the figures are this package's own."""
    said = [replace(part, sentences=[*map(as_typed, part.sentences)]) for part in page.sections]
    page = replace(page, headlines=[*map(as_typed, page.headlines)], sections=said)
    sources = [(heading, pretty(value)) for heading, value in page.sources]
    return template("template.html").render(page=page, sources=sources, version=__version__, Purpose=Purpose)


@functools.cache
def template(name: str) -> jinja2.Template:
    """One of this package's templates. Values are escaped unless the template says otherwise."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("jaxbench.report", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)


def inline(svg: bytes, name: str) -> str:
    """The SVG element alone, without comments: matplotlib repeats every text of the figure in one.

    Ids get `name` as a prefix: matplotlib uses the same ids in every figure, and all figures share one document.
    """
    text = svg.decode()
    text = text[text.index("<svg") :]
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", text)
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text)
    return re.sub(r'width="[\d.]+pt" height="[\d.]+pt"', f'role="img" aria-label="{name} figure"', text, count=1)


def pretty(value: Any) -> str:
    """JSON for people."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)
