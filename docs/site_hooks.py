# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Hooks of mkdocs: README.md is the first page of the site, and links out of docs/ become the names of the files."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")
_LEFT_OUT = (".jsonl", "report.html")


def on_files(files: Files, config: Any) -> Files:
    """Adds README.md as the first page. Its links begin at the root of the repository, those of a page in docs/."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8").replace("](docs/", "](")
    readme = re.sub(r"\]\((?!https?:)(\w+\.md)\)", lambda found: f"]({_place(found[1])})", readme)
    files.append(File.generated(config, "index.md", content=readme))
    return files


def _place(name: str) -> str:
    return name if (ROOT / "docs" / name).exists() else f"../{name}"


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """A link to a file that is not in the site becomes its name."""
    folder = posixpath.dirname(page.file.src_uri)

    def plain(found: re.Match[str]) -> str:
        text, target, anchor = found[1], found[2], found[3] or ""
        if re.match(r"\w+:", target):
            return found[0]
        path = posixpath.normpath(posixpath.join(folder, target))
        if path.startswith("../"):
            return text
        if (ROOT / "docs" / path).is_dir() or path.endswith(_LEFT_OUT):
            return text
        return f"[{text}]({target}{anchor})"

    return _LINK.sub(plain, markdown)
