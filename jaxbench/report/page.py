# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The self-contained HTML page: a single file without requests and without scripts.

A page is plain data (`Page`), and the terminal shows the same data (`terminal`). `findings`, `lever_findings` and
`case_findings` compute its content.
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
    DETAIL = "only on the page: the terminal shows it in another form"


@dataclass(frozen=True)
class Section:
    """Sentences under a heading. definition: the anchor in docs/metrics of the section that defines their numbers."""

    heading: str
    sentences: Sequence[str]
    purpose: Purpose = Purpose.NOTE
    definition: str = ""


# All headings in the order of every page: (purpose, anchor in docs/metrics of the numbers under it).
HEADINGS = {
    "Incomplete or failed": (Purpose.SHORTFALL, ""),
    "Not supported": (Purpose.NOTE, ""),
    "Refused by the gates": (Purpose.NOTE, "gates"),
    "Not measured": (Purpose.NOTE, ""),
    "Load": (Purpose.NOTE, "load"),  # early, because contention affects all numbers below
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
    """A figure. name: its label for screen readers. svg: from this package's own drawing code, so it is not escaped."""

    name: str
    svg: bytes
    caption: str = ""

    @property
    def inline(self) -> str:
        return inline(self.svg, self.name)


@dataclass(frozen=True, kw_only=True)
class Fold:
    """The details of one point, collapsed on the page. strip, raw: its samples as a drawing and as a table. hidden: how
    many rounds `raw` leaves out."""

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
    """The content of a page.

    Attributes:
      name: for the window's title.
      brief: a shorter `table` for the terminal; None: the terminal shows `table`.
      folds: the details of the points.
      links: (relative URL, text).
      sources: (heading, value that JSON can hold), shown last.
      definition: the anchor in docs/metrics of the numbers in the headlines.
      made_from: the files that the page was made from, for the footer.
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
        """(id, heading, HTML) of each definition that the page's numbers need."""
        tables = [self.table, *(table for fold in self.folds for table in (*fold.tables, fold.raw) if table)]
        anchors = {self.definition, *(section.definition for section in self.sections)}
        anchors.update(column.definition for table in tables if table.lines for column in table.columns)
        return definitions.used(frozenset(anchors))


def render(page: Page) -> str:
    """The page as HTML. All text from the run is escaped; the figures come from this package."""
    said = [replace(part, sentences=[*map(as_typed, part.sentences)]) for part in page.sections]
    page = replace(page, headlines=[*map(as_typed, page.headlines)], sections=said)
    sources = [(heading, pretty(value)) for heading, value in page.sources]
    return template("template.html").render(page=page, sources=sources, version=__version__, Purpose=Purpose)


@functools.cache
def template(name: str) -> jinja2.Template:
    """One of this package's templates. Values are escaped unless the template marks them as safe."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("jaxbench.report", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)


def inline(svg: bytes, name: str) -> str:
    """The SVG element alone. Comments are removed, because matplotlib repeats every text of the figure in a comment.

    Ids get `name` as a prefix, because matplotlib uses the same ids in every figure and all figures share one document.
    """
    text = svg.decode()
    text = text[text.index("<svg") :]
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", text)
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text)
    return re.sub(r'width="[\d.]+pt" height="[\d.]+pt"', f'role="img" aria-label="{name} figure"', text, count=1)


def pretty(value: Any) -> str:
    """The value as indented JSON."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)
