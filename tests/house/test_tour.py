# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""docs/TOUR.md names every file of the core and what is in it."""

from __future__ import annotations

import re

from house.tree import ROOT, python_files

TOUR = (ROOT / "docs" / "TOUR.md").read_text()
CORE = [path for path in python_files("jaxbench") if "core" in path.parts]


def stops() -> list[tuple[list[str], str]]:
    """(the files, the words in backticks that follow) of each row."""
    rows = re.findall(r"^\| \d+ \| (.*?) \| (.*) \|$", TOUR, re.MULTILINE)
    return [(re.findall(r"`([\w/]+\.py)`", files), text) for files, text in rows]


def test_every_file_of_the_core_is_a_stop() -> None:
    named = {file for files, _ in stops() for file in files}
    assert {path.relative_to("jaxbench").as_posix() for path in CORE} - named == {"core/__init__.py"}


def test_the_names_in_a_row_are_in_its_files() -> None:
    for files, text in stops():
        sources = "".join(next(p for p in (ROOT / "jaxbench" / f, ROOT / f) if p.is_file()).read_text() for f in files)
        for name in re.findall(r"`(\w+)`", text):
            assert re.search(rf"\b{name}\b", sources), f"{files} have no {name}"
