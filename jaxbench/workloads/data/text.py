# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Texts with labels: a folder, a CSV file, or lines of the standard library labelled by kind of line."""

from __future__ import annotations

import ast
import csv
import io
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from jaxbench.errors import UserError
from jaxbench.workloads.base import Splits
from jaxbench.workloads.data import sources
from jaxbench.workloads.data.order import permutation

KINDS = ("code", "comment", "definition", "docstring", "import")
DEFAULT_BYTES = 3 * 2**20  # from the standard library
TEST_FRACTION = 0.2

Labelled = list[tuple[bytes, int]]


def load(path: str, *, seed: int, length: int, classes: int) -> Splits:
    """Loads the texts that `path` names.

    Each split has "tokens", int32 (N, length), the first bytes of each text padded with 0, and "label", int32 (N,).

    Args:
      path: "" for lines of the standard library's sources, labelled by `KINDS` and split by file; a folder with one
        folder of .txt files for each class; or a .csv file with the columns text and label. The last two are split
        80/20 with equal shares of each class.
      seed: of the split and of the order.
      length: bytes of each text that the model reads.
      classes: number of classes of the model.

    Raises:
      UserError: `path` does not exist, is of no known kind, or has more classes than the model. There is no fallback to
        other data.
    """
    if not path:
        train, test = (_shuffled(part, seed) for part in _python_lines())
        name, found = f"kinds of lines in {sources.NAME}", len(KINDS)
    else:
        source = Path(path).expanduser()
        if source.is_dir():
            pairs = _folder(source)
        elif source.is_file() and source.suffix == ".csv":
            pairs = _csv(source)
        else:
            what = "is a file of another kind" if source.exists() else "does not exist"
            raise UserError(
                f"config.data.path '{path}' {what}: give a folder with one folder of .txt files a class, a .csv file "
                "with the columns text and label, or '' for lines of Python's sources."
            )
        labels = sorted({label for _, label in pairs})
        train, test = _split([(text, labels.index(label)) for text, label in pairs], seed, path)
        name, found = source.name, len(labels)
    if found > classes:
        raise UserError(
            f"'{name}' has {found} classes and the model has {classes}: set --config.model.classes={found}."
        )
    return Splits(_bundle(train, length), _bundle(test, length), name)


def _bundle(pairs: Labelled, length: int) -> dict[str, np.ndarray]:
    tokens = np.zeros((len(pairs), length), np.int32)
    for row, (text, _) in zip(tokens, pairs, strict=True):
        row[: len(text)] = np.frombuffer(text[:length], np.uint8)
    return {"tokens": tokens, "label": np.array([label for _, label in pairs], np.int32)}


def _shuffled(pairs: Labelled, seed: int) -> Labelled:
    return [pairs[i] for i in permutation(len(pairs), seed)]


def _split(pairs: Labelled, seed: int, path: str) -> tuple[Labelled, Labelled]:
    """(train, test), each shuffled, with `TEST_FRACTION` of every class in test."""
    train, test = [], []
    drawn = _shuffled(pairs, seed)
    for label in sorted({label for _, label in pairs}):
        members = [pair for pair in drawn if pair[1] == label]
        if len(members) < 2:
            raise UserError(f"'{path}' has one text of some class: at least 2 are needed, to train and to test on.")
        cut = max(1, round(TEST_FRACTION * len(members)))
        test += members[:cut]
        train += members[cut:]
    return _shuffled(train, seed), _shuffled(test, seed)


def _folder(source: Path) -> list[tuple[bytes, str]]:
    paths = sorted(source.glob("*/*.txt"))
    classes = {path.parent.name for path in paths}
    if len(classes) < 2:
        raise UserError(f"'{source}' has {len(classes)} folders with .txt files: there must be one for each class.")
    texts = sources.read_files(paths, source)
    return [(text, path.parent.name) for text, path in zip(texts, paths, strict=True)]


def _csv(source: Path) -> list[tuple[bytes, str]]:
    sources.check_size(source, source.stat().st_size)
    try:
        rows = csv.DictReader(io.StringIO(source.read_text(encoding="utf-8-sig"), newline=""), strict=True)
        missing = {"text", "label"} - set(rows.fieldnames or ())
        if missing:
            raise UserError(f"{source} has no column '{min(missing)}': its first line must name text and label.")
        found = []
        for row in rows:
            if not row["text"] or not row["label"]:
                raise UserError(
                    f"{source}, line {rows.line_num}: a text or a label is empty: every row must have both."
                )
            found.append((row["text"].encode(), row["label"]))
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{source} is not a CSV file in UTF-8 ({error}).") from error
    except OSError as error:
        raise UserError(f"{source} cannot be read ({error.strerror}).") from error
    if len({label for _, label in found}) < 2:
        raise UserError(f"{source} has fewer than 2 different labels: there must be texts of at least 2 classes.")
    return found


def _python_lines() -> tuple[Labelled, Labelled]:
    """(train, test), with every distinct line once, so that no test line can be memorized."""
    seen: set[bytes] = set()
    parts = []
    for files in sources.by_file(sources.python_sources(DEFAULT_BYTES)):
        new: dict[bytes, int] = {}
        for file in files:
            for text, label in kinds(file):
                if text not in seen:
                    new.setdefault(text, label)
        seen |= new.keys()
        parts.append(_balanced(new.items()))
    return parts[0], parts[1]


def _balanced(pairs: Iterable[tuple[bytes, int]]) -> Labelled:
    """The first lines of each class, at most twice the number of lines of the third most frequent class."""
    by_label: list[Labelled] = [[] for _ in KINDS]
    for pair in pairs:
        by_label[pair[1]].append(pair)
    limit = 2 * sorted(map(len, by_label))[-3]
    return [pair for members in by_label for pair in members[:limit]]


def kinds(source: bytes) -> Iterator[tuple[bytes, int]]:
    """Each line of a Python file, without its indentation, with the number of its kind in `KINDS`.

    A line belongs to its innermost statement: a definition includes all lines of its head, an import all of its lines.
    Blank lines, the first lines of decorators, the inside of multi-line strings other than docstrings, and files that
    this Python cannot parse are skipped.
    """
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    lines = source.splitlines()
    kind: dict[int, str | None] = {}
    for node in ast.walk(tree):  # outer nodes come first, so that inner ones overwrite them
        _mark(node, kind)
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        found = kind.get(number, "comment" if text.startswith(b"#") else "code")
        if text and found:
            yield text, KINDS.index("comment" if text.startswith(b"#") and found != "docstring" else found)


def _mark(node: ast.AST, kind: dict[int, str | None]) -> None:
    """Writes the kinds of the lines of `node` into `kind`, by line number."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        kind.update(dict.fromkeys(_span(node), "import"))
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        head = range(node.lineno, max(node.lineno + 1, node.body[0].lineno))
        kind.update(dict.fromkeys(head, "definition"))
    if isinstance(node, ast.Constant | ast.JoinedStr) and node.end_lineno != node.lineno:
        for line in _span(node):
            kind.setdefault(line, None)
    if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        if ast.get_docstring(node, clean=False) is not None:
            kind.update(dict.fromkeys(_span(node.body[0]), "docstring"))


def _span(node: ast.AST) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)  # type: ignore[attr-defined]
