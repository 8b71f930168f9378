# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The page of a paper, and the same page of several papers: figure, claims and verdicts, command, machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxbench import __version__
from jaxbench.errors import UserError
from jaxbench.papers import document as documents
from jaxbench.papers import figure
from jaxbench.records.store import write_atomic
from jaxbench.report import card_table, first_run_tables, page
from jaxbench.report.page import Picture
from jaxbench.report.table import FOLD, TEXT, Cell, Table, plain
from jaxbench.verdicts.judge import (
    CANNOT_TELL,
    CLAIM_VERDICTS,
    DIVERGED,
    FAILS,
    HOLDS,
    NOT_MEASURED,
    NOT_TESTABLE,
)

PAGE = "paper.html"
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


def write(folder: Path, document: Mapping[str, Any]) -> None:
    """Writes `paper.html` into the folder of a paper. Raises UserError if it cannot be written."""
    made = render(str(document["title"]), [entry(folder, document)], [document], made_from=documents.NAME)
    try:
        write_atomic(folder / PAGE, made)
    except OSError as error:
        raise UserError(f"cannot write the page into '{folder}' ({error.strerror}).") from error


def render(heading: str, entries: Sequence[PaperEntry], papers: Sequence[Mapping[str, Any]], *, made_from: str) -> str:
    """The page as HTML. Everything that comes from a run is escaped; the figures are this package's own."""
    made: dict[str, Any] = dict(name=heading, heading=heading, about=ABOUT, papers=entries, made_from=made_from)
    made["overview"] = overview(papers) if len(papers) > 1 else None
    sources = [(f"The machine of {paper['id']}", page.pretty(paper["machine"])) for paper in papers if paper["machine"]]
    return page.template("papers.html").render(page=made, sources=sources, version=__version__)


def entry(folder: Path, document: Mapping[str, Any]) -> PaperEntry:
    """What the page says of one paper. folder: which holds its figure."""
    svg = folder / figure.FOLDER / f"{figure.NAME}.svg"
    pictures = [Picture(name=f"paper-{document['id']}", svg=svg.read_bytes())] if svg.is_file() else []
    return PaperEntry(
        id=document["id"],
        heading=document["title"],
        citation=document["citation"],
        command=documents.command(document),
        machine=machine(document),
        counts=counts(document["claims"]),
        pictures=pictures,
        claims=claims(document["claims"]),
        runs=first_run_tables.parts(document["runs"]),
    )


def machine(document: Mapping[str, Any]) -> str:
    """The name of the machine; "" before anything was measured."""
    return card_table.machine_name(document["machine"]) if document["machine"] else ""


def counts(found: Sequence[Mapping[str, Any]]) -> str:
    """ "2 hold here, 1 is not testable here": how many claims have each verdict."""
    words = [claim["verdict"] for claim in found]
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


def claims(found: Sequence[Mapping[str, Any]]) -> Table:
    """Every claim with its verdict, its number, its limit, and what two cores can show of it."""
    rows: list[tuple[str | Cell, ...]] = []
    for claim in found:
        number = documents.number(claim)
        read = f"{claim['quantity']}: {number} ({claim['detail']})" if number else claim["quantity"]
        verdict = Cell(claim["verdict"], _KINDS.get(claim["verdict"], "missing"))
        paper = f"{claim['sentence']} ({claim['source']})"
        rows.append((paper, verdict, read, claim["limit"], claim["why"], claim["here"]))
    headings = ("claim", "verdict", "quantity", "claimed", "why", "what two cores can show")
    kinds = dict.fromkeys(headings, FOLD) | {"verdict": TEXT, "claimed": TEXT}
    return plain(kinds, rows)
