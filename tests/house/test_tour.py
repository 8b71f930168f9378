# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""docs/TOUR.md names every file of the core and what is in it, and says how long they take to read."""

from __future__ import annotations

import ast
import io
import re
import tokenize

from house.tree import ROOT, parsed, python_files

WORDS, LINES = 230, 30  # read in a minute: of prose (Brysbaert 2019: 238), and of code (an assumption)
PROSE_MINUTES, CODE_MINUTES = 42, 64  # what the tour calls 40 minutes, and an hour more
TOUR = (ROOT / "docs" / "TOUR.md").read_text()
CORE = [path for path in python_files("jaxbench") if "core" in path.parts]


def measured(source: str) -> tuple[int, int]:
    """(words of docstrings and comments, lines of code without imports and blank lines)."""
    prose, skipped = [], set[int]()
    for node in ast.walk(parsed(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and (text := ast.get_docstring(node)):
            prose.append(text)
            skipped.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            skipped.update(range(node.lineno, (node.end_lineno or 0) + 1))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and token.start[0] > 1:  # line 1 is the licence
            prose.append(token.string.lstrip("# "))
    code = [line for number, line in enumerate(source.splitlines(), 1) if number not in skipped]
    return len(" ".join(prose).split()), sum(bool(line.strip()) and not line.strip().startswith("#") for line in code)


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


def test_the_core_takes_as_long_to_read_as_the_tour_says() -> None:
    words, lines = map(sum, zip(*(measured((ROOT / path).read_text()) for path in CORE), strict=True))
    assert "take 40 minutes, and every line of code an hour more" in " ".join(TOUR.split())
    assert words / WORDS <= PROSE_MINUTES, f"{words} words"
    assert lines / LINES <= CODE_MINUTES, f"{lines} lines of code"


def test_words_and_lines_are_counted() -> None:
    assert measured('# licence\n"""Two words."""\nimport a\n\nx = 1  # three more words\n# and one\n') == (7, 1)
