# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The definitions of a page's numbers: sections of docs/metrics/, copied into the page, which is a single file."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

_PREFIX = "def-"  # starts the ids of definitions on a page, because figures have ids, too


@dataclass(frozen=True, kw_only=True)
class Definition:
    """A section of docs/metrics/. file: the file's name. text: its Markdown, without the heading."""

    file: str
    anchor: str
    heading: str
    text: str


def sections() -> dict[str, Definition]:
    """Every section of docs/metrics/ by its anchor, in the order of the files. Anchors are unique across files."""
    definitions = {}
    for file in sorted(_folder().glob("*.md")):
        parts = re.split(r"^##+ (.*)$", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for heading, text in zip(parts[1::2], parts[2::2], strict=True):
            anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
            plain = heading.replace("`", "")
            definitions[anchor] = Definition(file=file.name, anchor=anchor, heading=plain, text=text.strip())
    return definitions


@functools.cache
def used(anchors: frozenset[str]) -> tuple[tuple[str, str, str], ...]:
    """(id, heading, HTML) of the sections with these anchors, in the order of the files.

    A link to another section or to another file becomes plain text.
    """
    chosen = [definition for anchor, definition in sections().items() if anchor in anchors]
    return tuple((_PREFIX + each.anchor, each.heading, _html(each.text, anchors)) for each in chosen)


def _html(text: str, anchors: Iterable[str]) -> str:
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


def _folder() -> Path:
    # A wheel has the folder inside the package; in a checkout it is next to the package.
    package = Path(__file__).resolve().parents[1]
    bundled = package / "_bundled" / "docs" / "metrics"
    return bundled if bundled.is_dir() else package.parent / "docs" / "metrics"
