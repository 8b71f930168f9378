# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What a page shows, and how it becomes HTML and a print on the terminal."""

from __future__ import annotations

import base64
import enum
import functools
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import jinja2
import markupsafe
from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from jaxbench import __version__
from jaxbench.report.drawing.notes import spoken
from jaxbench.report.table import Table
from jaxbench.texts import visible

SHORTFALLS = 6  # how many sentences on shortfalls are shown
FIRST = 3  # sentences of a section that a page shows; the rest is folded
OPEN = 1  # sections that show as many; each further one shows its first sentence
TALL = 2.0  # of a phone's drawing: its height over its width
FIGURES = 2  # of a page; the rest is folded, so that the result fits on two screens
LINES = 8  # of the table that a page shows; a longer one is folded below its first or most telling lines
NOTES = 5  # how many sentences of all other sections are shown together; the page has all
_PREFIX = "def-"  # starts the ids of definitions on a page, because figures have ids, too


class Purpose(enum.Enum):
    """The purpose of a section."""

    SHORTFALL = "why the run is incomplete or wrong: raises the page's alarm"
    NOTE = "what a reader should know"
    DETAIL = "only on the page: the terminal shows it in another form"


# Sections that say how it was measured, not what was found: the page folds them.
BACKGROUND = frozenset(
    (
        *(
            "Communication",
            "Base",
            "Notes",
            "Rounds",
            "Fits",
            "Peaks",
            "Scaling laws",
            "Phases",
            "Utilisation",
            "Machine",
        ),
        *("Results of the runs", "Crossings", "Not measured"),
    )
)


@dataclass(frozen=True)
class Section:
    """Sentences under a heading."""

    heading: str
    sentences: Sequence[str]
    purpose: Purpose = Purpose.NOTE
    definition: str = ""  # the anchor in docs/metrics of the section that defines their numbers


# All headings in the order of every page: (purpose, anchor in docs/metrics of the numbers under it). What may make all
# other numbers wrong comes first, what explains them next, and where they come from last.
HEADINGS = {
    "Incomplete or failed": (Purpose.SHORTFALL, ""),
    "Not supported": (Purpose.NOTE, ""),
    "Refused by the gates": (Purpose.NOTE, "gates"),
    "Not measured": (Purpose.NOTE, ""),
    "Load": (Purpose.NOTE, "load"),  # early, because contention affects all numbers below
    "Change during the run": (Purpose.NOTE, "first-and-last-third"),
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
    "Preparation": (Purpose.DETAIL, "preparation"),
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
    "Generation": (Purpose.NOTE, "generation"),
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
    """A figure."""

    name: str  # its label for screen readers, and the prefix of its ids
    svg: bytes  # from this package's own drawing code, so it is not escaped; b"": there is only a caption
    caption: str = ""
    folded: bool = False  # behind its name, because it shows how it was measured
    narrow: bytes = b""  # the same figure for a phone, with its panels below each other; b"": the wide one is scaled

    @property
    def title(self) -> str:
        """Its name in words: "collectives-alpha_beta" -> "collectives, alpha beta", "stream-stream" -> "stream"."""
        return ", ".join(dict.fromkeys(part.replace("_", " ") for part in self.name.split("-")))

    @property
    def inline(self) -> str:
        return inline(self.svg, self.name)

    @property
    def inline_narrow(self) -> str:
        return inline(self.narrow, f"{self.name}-narrow")

    @property
    def is_tall(self) -> bool:
        """Whether the drawing for a phone is higher than most of a screen, so a page shows its top first."""
        box = re.search(rb'viewBox="[\d.]+ [\d.]+ ([\d.]+) ([\d.]+)"', self.narrow)
        return box is not None and float(box[2]) > TALL * float(box[1])


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """The blocks of a point in the order of time."""

    svg: str  # elements made from numbers alone, so they are not escaped
    caption: str


@dataclass(frozen=True, kw_only=True)
class Fold:
    """The details of one point, collapsed on the page."""

    name: str
    state: str
    reason: str = ""
    detail: str = ""  # the stack trace of a failure
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    strip: Timeline | None = None  # its samples as a drawing
    raw: Table | None = None  # its samples as a table
    hidden: int = 0  # how many rounds `raw` leaves out


@dataclass(frozen=True, kw_only=True)
class Page:
    """The content of a page."""

    name: str  # for the window's title
    heading: str
    headlines: Sequence[str]
    pictures: Sequence[Picture]
    table: Table
    brief: Table | None = None  # a shorter `table` for the terminal; None: the terminal shows `table`
    telling: Table | None = None  # its most telling lines, if it is long; None: its first lines
    sections: Sequence[Section]
    ledger: Table | None = None  # what preparing has cost
    folds: Sequence[Fold] = ()  # the details of the points
    links: Sequence[tuple[str, str]] = ()  # (relative URL, text)
    sources: Sequence[tuple[str, object]] = ()  # (heading, value that JSON can hold), shown last
    definition: str = ""  # the anchor in docs/metrics of the numbers in the headlines
    made_from: str = "manifest.json, config.json and records.jsonl"  # for the footer

    @property
    def front(self) -> Table:
        """The table that is not folded: with at most `LINES` lines, so that the result fits on two screens."""
        if len(self.table.lines) <= LINES:
            return self.table
        shorter = self.telling or self.brief or self.table
        return replace(shorter, lines=shorter.lines[:LINES])

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
        return used(frozenset(anchors))


def render(page: Page) -> str:
    """The page as HTML. All text from the run is escaped; the figures come from this package."""
    page = in_words(page)
    sources = [(heading, pretty(value)) for heading, value in page.sources]
    return template("template.html").render(page=page, sources=sources, version=__version__, Purpose=Purpose)


def in_words(page: Page) -> Page:
    """The page with ids of points in words. Files keep the ids, so that records and tables can be joined."""
    return replace(
        page,
        headlines=[*map(spoken, page.headlines)],
        sections=[replace(part, sentences=[*map(spoken, part.sentences)]) for part in page.sections],
        folds=[
            replace(each, name=spoken(each.name), reason=spoken(each.reason), notes=tuple(map(spoken, each.notes)))
            for each in page.folds
        ],
    )


@functools.cache
def template(name: str) -> jinja2.Template:
    """One of this package's templates. Values are escaped unless the template marks them as safe."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("jaxbench.report", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,  # by default a misspelled name prints nothing
        finalize=lambda value: visible(value) if type(value) is str else value,  # markup is a class of its own
    )
    environment.filters["slug"] = slug
    script = Path(__file__).with_name("page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # The policy of the page allows this script and no other.
    environment.globals.update(
        script=markupsafe.Markup(script),
        script_hash=f"sha256-{digest}",
        FIRST=FIRST,
        OPEN=OPEN,
        FIGURES=FIGURES,
        BACKGROUND=BACKGROUND,
    )
    return environment.get_template(name)


def slug(heading: str) -> str:
    """The id of a heading: "Why not 100 %" -> "why-not-100"."""
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")


def inline(svg: bytes, name: str) -> str:
    """The SVG element alone, with ids of its own and a label for screen readers."""
    text = svg.decode()
    text = text[text.index("<svg") :]  # an XML declaration may only begin a document
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)  # matplotlib repeats every text of the figure in a comment
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", text)
    # Matplotlib uses the same ids in every figure, and all figures share one document.
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text)
    # Without a fixed size, the style sheet scales the figure to its column.
    return re.sub(r'width="[\d.]+pt" height="[\d.]+pt"', f'role="img" aria-label="{name} figure"', text, count=1)


def pretty(value: object) -> str:
    """The value as indented JSON."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)


def show(page: Page, console: Console) -> None:
    """Prints the page. Text from the run is never interpreted as markup."""
    page = in_words(page)
    table = page.brief or page.table
    said = 0  # of the shortfalls
    console.print()
    if page.alarm:  # in the first line, so that it is easy to find in a log; its section does not repeat it
        why = next(part.sentences[0] for part in page.sections if part.purpose is Purpose.SHORTFALL)
        console.print(Text(f"Failed: {why}", style="bold red"))
        said = 1
    console.print(Text(page.heading, style="bold"))
    for sentence in page.headlines:
        console.print(Text(sentence))
    console.print()
    console.print(table.terminal(console.width))
    console.print()
    console.print(Text(table.note, style="dim"))
    for part in page.sections:
        if part.purpose is Purpose.SHORTFALL and part.sentences[said:]:
            more = len(part.sentences) - SHORTFALLS
            rest = [f"and {more} more on the page."] if more > 0 else []
            section(part.heading, [*part.sentences[said:SHORTFALLS], *rest], console)
    _print_notes([part for part in page.sections if part.purpose is Purpose.NOTE], console)


def _print_notes(parts: Sequence[Section], console: Console) -> None:
    """Prints notes: the first sentence of every section, then the second of each, until there are `NOTES`."""
    turns = sorted((nr, at) for at, part in enumerate(parts) for nr in range(len(part.sentences)))
    shown = Counter(at for _, at in turns[:NOTES])
    for at, count in sorted(shown.items()):
        section(parts[at].heading, parts[at].sentences[:count], console)
    if len(turns) > NOTES:
        console.print(Text(f"And {len(turns) - NOTES} more on the page.", style="dim"))


def section(heading: str, sentences: Sequence[str], console: Console) -> None:
    """Prints sentences under a heading."""
    console.print(Text(heading, style="bold"))
    console.print(*(Padding(Text(sentence), (0, 0, 0, 2)) for sentence in sentences), sep="")


@dataclass(frozen=True, kw_only=True)
class Definition:
    """A section of docs/metrics/."""

    file: str  # its name
    anchor: str
    heading: str
    text: str  # Markdown, without the heading


def definitions() -> dict[str, Definition]:
    """Every section of docs/metrics/ by its anchor, in the order of the files. Anchors are unique across files."""
    # A wheel has the folder inside the package; in a checkout it is next to the package.
    package = Path(__file__).resolve().parents[1]
    bundled, definitions = package / "_bundled" / "docs" / "metrics", {}
    folder = bundled if bundled.is_dir() else package.parent / "docs" / "metrics"
    for file in sorted(folder.glob("*.md")):
        parts = re.split(r"^##+ (.*)$", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for heading, text in zip(parts[1::2], parts[2::2], strict=True):
            anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")  # as GitHub makes anchors of headings
            plain = heading.replace("`", "")
            definitions[anchor] = Definition(file=file.name, anchor=anchor, heading=plain, text=text.strip())
    return definitions


@functools.cache  # Markdown is slow to render, and all runs of one kind need the same sections
def used(anchors: frozenset[str]) -> tuple[tuple[str, str, str], ...]:
    """(id, heading, HTML) of the sections with these anchors, in the order of the files.

    A link to another section or to another file becomes plain text.
    """
    chosen = [definition for anchor, definition in definitions().items() if anchor in anchors]
    return tuple((_PREFIX + each.anchor, each.heading, _definition_html(each.text, anchors)) for each in chosen)


def _definition_html(text: str, anchors: Iterable[str]) -> str:
    """Markdown as HTML. HTML inside the Markdown is escaped."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(text)
    for token in tokens:
        if token.children:
            token.children = _linked(token.children, anchors)
    return str(markdown.renderer.render(tokens, markdown.options, {}))


def _linked(tokens: list[Token], anchors: Iterable[str]) -> list[Token]:
    """The tokens of a line without links to sections that are not on the page."""
    kept, leads = [], False
    for token in tokens:
        if token.type == "link_open":
            file, _, anchor = str(token.attrs["href"]).partition("#")
            leads = "/" not in file and anchor in anchors
            token.attrs = {"href": f"#{_PREFIX}{anchor}"}
        if leads or token.type not in ("link_open", "link_close"):
            kept.append(token)
    return kept
