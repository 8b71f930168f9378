# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What is committed works on anyone's machine: it names no one's folders and no package registry."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

from house.tree import ROOT, files, findings, parsed, python_files

# Put together from parts, so that this file does not find itself.
MACHINE = re.compile(
    r"(?<![\w.}$])/(?:" + "|".join(["root", r"home/\w+", r"Users/\w+", "work/(?:main|shared)"]) + r")\b"
)
REGISTRY = re.compile("|".join([r"py" + r"pi\.org", r"python" + r"hosted\.org", r"anaconda" + r"\.org"]))


def personal(path: str, text: str) -> list[str]:
    matches = [match for pattern in (MACHINE, REGISTRY) for match in pattern.finditer(text)]
    return [f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {match.group()}" for match in matches]


def is_text(path: Path) -> bool:
    data = (ROOT / path).read_bytes()
    if b"\0" in data:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def test_no_machine_paths_and_no_registry() -> None:
    assert not findings(personal, [p for p in files() if is_text(p)])


def test_planted_violations_are_found() -> None:
    folders = ["/ro" + "ot/x", "see /ho" + "me/ada/run", '"/Us' + 'ers/ada"', "/wo" + "rk/main"]
    for planted in [*folders, "https://py" + "pi.org/simple"]:
        (found,) = personal("README.md", f"first line\n{planted}")
        assert found == f"README.md:2: {personal('', planted)[0].split(': ')[1]}"
    assert not personal("README.md", "experiments/root/x, example.com/home/page, results/, a/home/b")


# Docs, docstrings, comments and messages use the field's words. Names of JSON keys and columns, in backticks, stay.


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
    tree, spans = parsed(source), []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            spans.append((node.lineno, node.value))
    if _WORDS.search(source):  # tokenizing is slow
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                spans.append((token.start[0], token.string))
    return spans


def test_the_words_to_avoid_are_in_no_document_docstring_comment_or_message() -> None:
    documents = [path for path in files() if path.suffix == ".md" and path.parts[:2] != ("docs", "figures")]
    assert not findings(avoided, [*documents, *python_files()])


def test_planted_violations_are_found_words() -> None:
    for word in AVOID:
        assert avoided("a.md", f"A sentence with {word} in it.") == [f"a.md:1: '{word}': write {AVOID[word]}"]
        assert avoided("a.py", f'x = 1\ny = 2  # {word}, said a comment\n"""And {word} here."""\n') != []
    assert not avoided("a.md", "The field `" + "pass" + "port` of a record, and a " + "be" + "sides.")
    assert not avoided("a.py", f"{'pass' + 'port'} = read('{'pass' + 'port'}')\n")
