# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Docs, docstrings, comments and messages use the field's words. Names of JSON keys and columns, in backticks, stay."""

from __future__ import annotations

import ast
import io
import re
import tokenize

from house.tree import files as all_files
from house.tree import findings, python_files

# The word to avoid, and what to write. Put together from parts, so that this file does not find itself.
AVOID = {
    "who" + "se": "two sentences",
    "be" + "side": "next to, compared with, during",
    "so " + "many": "a number",
    "of " + "which": "two sentences",
    "for " + "want of": "without",
    "but " + "for": "except",
    "pass" + "port": "compile report",
    "cen" + "sus": "collective counts",
    "ora" + "cle": "reference",
    "closed " + "form": "expected communication",
}
_WORDS = re.compile(r"\b(" + "|".join(word.replace(" ", r"\s+") for word in AVOID) + r")\b", re.IGNORECASE)
_QUOTED = re.compile(r"`[^`]*`|\"[\w.]+\"")  # names, such as JSON keys, keep their words


def avoided(path: str, text: str) -> list[str]:
    spans = [(1, text)] if path.endswith(".md") else _prose(text)
    found = []
    for line, span in spans:
        shown = _QUOTED.sub("", re.sub(r"```.*?```", "", span, flags=re.DOTALL))
        for match in _WORDS.finditer(shown):
            word = " ".join(match[1].lower().split())
            found.append(f"{path}:{line}: '{word}': write {AVOID[word]}")
    return found


def _prose(source: str) -> list[tuple[int, str]]:
    """(line, text) of each comment, and of each string that is more than one word: docstrings and messages."""
    tree, spans = ast.parse(source), []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            spans.append((node.lineno, node.value))
    if _WORDS.search(source):  # tokenizing is slow
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                spans.append((token.start[0], token.string))
    return spans


def test_the_words_to_avoid_are_in_no_document_docstring_comment_or_message() -> None:
    documents = [path for path in all_files() if path.suffix == ".md" and path.parts[:2] != ("docs", "figures")]
    assert not findings(avoided, [*documents, *python_files()])


def test_planted_violations_are_found() -> None:
    for word in AVOID:
        assert avoided("a.md", f"A sentence with {word} in it.") == [f"a.md:1: '{word}': write {AVOID[word]}"]
        assert avoided("a.py", f'x = 1\ny = 2  # {word}, said a comment\n"""And {word} here."""\n') != []
    assert not avoided("a.md", "The field `" + "pass" + "port` of a record, and a " + "be" + "sides.")
    assert not avoided("a.py", f"{'pass' + 'port'} = read('{'pass' + 'port'}')\n")
