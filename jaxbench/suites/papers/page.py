# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The page of a paper, and the gallery of all papers, from their `paper.json` and figures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from jaxbench import __version__
from jaxbench.core.store import write_atomic
from jaxbench.digits import digits
from jaxbench.errors import UserError
from jaxbench.features.comparison.claims import CLAIM_VERDICTS, DIVERGED, FAILS, HOLDS, NOT_MEASURED, NOT_TESTABLE
from jaxbench.features.comparison.judge import CANNOT_TELL
from jaxbench.records import identity
from jaxbench.records.reading import read_document
from jaxbench.report import page
from jaxbench.report.page import Picture
from jaxbench.report.table import FOLD, TEXT, Cell, Table, plain
from jaxbench.suites import first_run_page as first_run
from jaxbench.suites.papers import figure

DOCUMENT, KIND = "paper.json", "jaxbench paper"
PAGE = "paper.html"
GALLERY, MARKDOWN, GALLERY_FIGURES = "gallery.html", "GALLERY.md", "figures/papers"
TITLE = "Papers as claims"
_KINDS = {HOLDS: "ok", FAILS: "no"}
_COUNTED = {
    HOLDS: ("holds here", "hold here"),
    FAILS: ("does not hold here", "do not hold here"),
    CANNOT_TELL: ("cannot be decided", "cannot be decided"),
    DIVERGED: ("diverged", "diverged"),
    NOT_MEASURED: ("is not measured yet", "are not measured yet"),
    NOT_TESTABLE: ("is not testable here", "are not testable here"),
}
ABOUT = (
    "Each claim is a sentence of the paper with one quantity, measured on this machine. It holds here if the whole "
    "95 % confidence interval of the quantity is within the claim's limit. It does not hold here if the whole interval "
    "is outside. Otherwise the runs cannot tell. Dashed and grey: published; coloured: measured here."
)


@dataclass(frozen=True, kw_only=True)
class PaperEntry:
    """One paper of a page. command: what makes it again. machine: its name; "" before anything was measured."""

    id: str
    heading: str
    citation: str
    command: str
    machine: str
    counts: str
    pictures: Sequence[Picture]
    claims: Table
    runs: Table


def read(path: Path) -> dict[str, Any]:
    """Raises UserError for a file that is no document of a paper."""
    fields = ("id", "title", "citation", "preset", "runs", "claims", "machine")
    return read_document(path, KIND, 1, fields, "delete it, and the command makes it again.")


def number(claim: Mapping[str, Any]) -> str:
    """ "0.93 [0.91, 0.95]"; a number without noise stands alone; "" without one."""
    value, lo, hi = claim["value"], claim["lo"], claim["hi"]
    if value is None:
        return ""
    between = lo is not None and hi is not None and lo != hi  # an exact number is its own interval
    return digits(value) + (f" [{digits(lo)}, {digits(hi)}]" if between else "")


def command_of(document: Mapping[str, Any]) -> str:
    """The command that measures the paper again."""
    preset = "" if document["preset"] == "auto" else f" --preset={document['preset']}"
    return f"jaxbench paper {document['id']}{preset}"


def write(folder: Path, document: Mapping[str, Any]) -> None:
    """Writes `paper.html` into the folder of a paper."""
    made = render(str(document["title"]), [entry(folder, document)], [document], made_from=DOCUMENT)
    write_atomic(folder / PAGE, made)


def render(heading: str, entries: Sequence[PaperEntry], papers: Sequence[Mapping[str, Any]], *, made_from: str) -> str:
    """The page as HTML. Everything that comes from a run is escaped; the figures are this package's own."""
    made: dict[str, Any] = dict(name=heading, heading=heading, about=ABOUT, papers=entries, made_from=made_from)
    made["overview"] = overview(papers) if len(papers) > 1 else None  # of one paper it would repeat the claims
    sources = [(f"The machine of {paper['id']}", page.pretty(paper["machine"])) for paper in papers if paper["machine"]]
    return page.template("papers.html").render(page=made, sources=sources, version=__version__)


def entry(folder: Path, document: Mapping[str, Any]) -> PaperEntry:
    """What the page says of one paper. folder: which holds its figure."""
    wide, narrow = (folder / figure.FOLDER / name for name in (f"{figure.NAME}.svg", figure.PHONE))
    drawn = [file.read_bytes() if file.is_file() else b"" for file in (wide, narrow)]
    pictures = [Picture(name=f"paper-{document['id']}", svg=drawn[0], narrow=drawn[1])] if drawn[0] else []
    return PaperEntry(
        id=document["id"],
        heading=document["title"],
        citation=document["citation"],
        command=command_of(document),
        machine=machine(document),
        counts=counts(document["claims"]),
        pictures=pictures,
        claims=claims(document["claims"]),
        runs=first_run.parts(document["runs"]),
    )


def machine(document: Mapping[str, Any]) -> str:
    """The name of the machine; "" before anything was measured."""
    return identity.machine_name(document["machine"]) if document["machine"] else ""


def counts(judged: Sequence[Mapping[str, Any]]) -> str:
    """ "2 hold here, 1 is not testable here": how many claims have each verdict."""
    words = [claim["verdict"] for claim in judged]
    numbers = [(words.count(verdict), *_COUNTED[verdict]) for verdict in CLAIM_VERDICTS if verdict in words]
    return ", ".join(f"{n} {one if n == 1 else more}" for n, one, more in numbers) or "no claim was judged"


def overview(papers: Sequence[Mapping[str, Any]]) -> Table:
    """How many claims of each paper have each verdict."""
    rows: list[tuple[str | Cell, ...]] = []
    for paper in papers:
        words = [claim["verdict"] for claim in paper["claims"]]
        numbers = (str(words.count(verdict) or "") for verdict in CLAIM_VERDICTS)
        rows.append((str(paper["id"]), str(paper["title"]), *numbers))
    return plain({"paper": TEXT, "what it measures": FOLD} | dict.fromkeys(CLAIM_VERDICTS, ""), rows)


def claims(judged: Sequence[Mapping[str, Any]]) -> Table:
    """Every claim with its verdict, its number, its limit, and what two cores can show of it."""
    rows: list[tuple[str | Cell, ...]] = []
    for claim in judged:
        value = number(claim)
        read = f"{claim['quantity']}: {value} ({claim['detail']})" if value else claim["quantity"]
        verdict = Cell(claim["verdict"], _KINDS.get(claim["verdict"], "missing"))
        paper = f"{claim['sentence']} ({claim['source']})"
        rows.append((paper, verdict, read, claim["limit"], claim["why"], claim["here"]))
    headings = ("claim", "verdict", "quantity", "claimed", "why", "what two cores can show")
    kinds = dict.fromkeys(headings, FOLD) | {"verdict": TEXT, "claimed": TEXT}
    return plain(kinds, rows)


def gallery(folder: Path, console: Console, docs: Path | None = None) -> None:
    """Writes gallery.html into `folder`, and GALLERY.md with its figures into `docs`, else into `folder` too.

    Raises UserError if the folder has no paper, or one that cannot be read.
    """
    files = sorted(folder.glob(f"*/{DOCUMENT}"))
    if not files:
        raise UserError(f"'{folder}' has no paper yet: run one first, such as jaxbench paper rajbhandari2020.")
    papers = [read(file) for file in files]
    entries = [entry(file.parent, paper) for file, paper in zip(files, papers, strict=True)]
    write_atomic(folder / GALLERY, render(TITLE, entries, papers, made_from=f"{len(papers)} paper.json"))
    console.print(f"Page of {len(papers)} papers: {folder / GALLERY}", highlight=False, soft_wrap=True)
    docs = docs or folder  # never the tracked docs unless asked: results/ belongs to this machine
    (docs / GALLERY_FIGURES).mkdir(parents=True, exist_ok=True)
    for file, paper in zip(files, papers, strict=True):
        for suffix in ("png", "json"):  # the picture, and the numbers that draw it again
            made = file.parent / figure.FOLDER / f"{figure.NAME}.{suffix}"
            if made.is_file():
                write_atomic(docs / GALLERY_FIGURES / f"{_name(paper)}.{suffix}", made.read_bytes())
    text, target = markdown(papers), docs / MARKDOWN
    if target.is_file():  # papers that this machine has not run keep what the documentation says of them
        text = merged(text, target.read_text(encoding="utf-8"))
    write_atomic(target, text)
    console.print(f"For a documentation: {docs / MARKDOWN}", highlight=False, soft_wrap=True)


def merged(new: str, old: str) -> str:
    """GALLERY.md with the papers of both texts, sorted by name. A paper of both is that of the new text."""
    tables, sections = dict[str, str](), dict[str, str]()
    for text in (old, new):
        head, *parts = re.split(r"^## ", text, flags=re.MULTILINE)
        sections.update({part.partition(":")[0]: part.strip() for part in parts})
        tables.update({line.split(" | ")[0].removeprefix("| "): line for line in _rows(head)})
    head = re.split(r"^## ", new, flags=re.MULTILINE)[0].replace("\n".join(_rows(new)), "{rows}")
    head = head.replace("{rows}", "\n".join(tables[name] for name in sorted(tables)))
    return head + "\n\n".join(f"## {sections[name]}" for name in sorted(sections)) + "\n"


def _rows(text: str) -> list[str]:
    """The rows of the overview, which is the first table of a GALLERY.md."""
    lines = text.partition("\n## ")[0].splitlines()
    return [line for line in lines if line.startswith("| ")][2:]  # below its heading and its rule


def markdown(papers: Sequence[Mapping[str, Any]]) -> str:
    """GALLERY.md."""
    lines = [
        f"# {TITLE}",
        "",
        ABOUT,
        "Made by `make gallery`; docs/metrics/suites.md defines the verdicts.",
        "",
        *overview(papers).markdown(_escape_pipes),
        "",
    ]
    for paper in papers:
        lines += [f"## {_name(paper)}: {paper['title']}", "", f"{paper['citation']}", ""]
        lines += [f"![{paper['title']}]({GALLERY_FIGURES}/{_name(paper)}.png)", ""]
        where = f", on {machine(paper)}" if paper["machine"] else ""
        lines += [f"`{command_of(paper)}`{where}: {counts(paper['claims'])}.", ""]
        lines += [*claims(paper["claims"]).markdown(_escape_pipes), ""]
    return "\n".join(lines[:-1]) + "\n"  # without the empty line after the last table


def _name(paper: Mapping[str, Any]) -> str:
    """The paper's id, with the preset if it is not the default."""
    return str(paper["id"]) if paper["preset"] == "auto" else f"{paper['id']}-{paper['preset']}"


def _escape_pipes(text: str) -> str:
    return text.replace("|", "\\|")  # it would end a cell of a Markdown table
