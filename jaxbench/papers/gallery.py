# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench gallery`: every paper that was run, as one page and as GALLERY.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from jaxbench.errors import UserError
from jaxbench.papers import document as documents
from jaxbench.papers import figure, page
from jaxbench.records.store import write_atomic

PAGE, MARKDOWN, FIGURES = "gallery.html", "GALLERY.md", "figures/papers"
TITLE = "Papers as claims"


def gallery(folder: Path, console: Console, docs: Path | None = None) -> None:
    """Writes gallery.html into `folder`, and GALLERY.md with its figures into `docs`, else into `folder` too.

    Raises:
      UserError: the folder has no paper, or one that cannot be read; there is no folder `docs`.
    """
    if docs is not None and not docs.is_dir():
        raise UserError(f"--docs={docs} is not a folder: give one that exists, such as docs.")
    files = sorted(folder.glob(f"*/{documents.NAME}"))
    if not files:
        raise UserError(f"'{folder}' has no paper yet: run one first, such as jaxbench paper rajbhandari2020.")
    papers = [documents.read(file) for file in files]
    entries = [page.entry(file.parent, paper) for file, paper in zip(files, papers, strict=True)]
    write_atomic(folder / PAGE, page.render(TITLE, entries, papers, made_from=f"{len(papers)} paper.json"))
    console.print(f"Page of {len(papers)} papers: {folder / PAGE}", highlight=False, soft_wrap=True)
    docs = docs or folder
    (docs / FIGURES).mkdir(parents=True, exist_ok=True)
    for file, paper in zip(files, papers, strict=True):
        drawn = file.parent / figure.FOLDER / f"{figure.NAME}.png"
        if drawn.is_file():
            write_atomic(docs / FIGURES / f"{_name(paper)}.png", drawn.read_bytes())
    write_atomic(docs / MARKDOWN, "\n".join(markdown(papers)) + "\n")
    console.print(f"For a documentation: {docs / MARKDOWN}", highlight=False, soft_wrap=True)


def markdown(papers: Sequence[Mapping[str, Any]]) -> list[str]:
    """The lines of GALLERY.md."""
    lines = [
        f"# {TITLE}",
        "",
        page.ABOUT,
        "Made by `make gallery`; docs/metrics/suites.md defines the verdicts.",
        "",
        *page.overview(papers).markdown(_escaped),
        "",
    ]
    for paper in papers:
        lines += [f"## {_name(paper)}: {paper['title']}", "", f"{paper['citation']}", ""]
        lines += [f"![{paper['title']}]({FIGURES}/{_name(paper)}.png)", ""]
        where = f", on {page.machine(paper)}" if paper["machine"] else ""
        lines += [f"`{documents.command(paper)}`{where}: {page.counts(paper['claims'])}.", ""]
        lines += [*page.claims(paper["claims"]).markdown(_escaped), ""]
    return lines[:-1]


def _name(paper: Mapping[str, Any]) -> str:
    return str(paper["id"]) if paper["preset"] == "auto" else f"{paper['id']}-{paper['preset']}"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
