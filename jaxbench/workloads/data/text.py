# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Texts: with labels, or in rows of bytes for a model that predicts the next one.

On every machine, without a network, there are the sources of Python's standard library.
"""

from __future__ import annotations

import ast
import platform
import re
import sysconfig
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench.core.workload import Dataset
from jaxbench.errors import UserError, did_you_mean
from jaxbench.records.reading import csv_table
from jaxbench.workloads.data.input import permutation

MAX_BYTES = 2**28  # limit for the user's own text, which is held in memory as int32
# Tests are most of the library, and distributions such as Debian leave some of the others out: the text should be the
# same wherever this Python is installed.
NOT_OURS = {"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__", "lib2to3", "ensurepip"}
# The version is part of the name, because each has other sources.
NAME = f"Python {platform.python_version()}'s standard library"
TEST_EVERY = 10  # every tenth file is in the test split
KINDS = ("code", "comment", "definition", "docstring", "import")
LABELLED_BYTES = 3 * 2**20  # from the standard library
TEST_FRACTION = 0.2
BYTES = 256  # a vocabulary that no text leaves
SUFFIXES = (".txt", ".py", ".md")
LANGUAGE_BYTES = 2**20  # from the standard library
PADS = ("padded", "packed")
DRAWN_ROWS = 2**12  # rows for drawing synthetic batches
BLANK_LINE = re.compile(rb"\n[ \t]*\n")


def python_sources(max_bytes: int) -> list[bytes]:
    """Whole files in a fixed order that mixes subjects, without tests, until they hold `max_bytes`."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    paths = (path.relative_to(folder) for path in folder.rglob("*.py"))
    names = (path.as_posix() for path in paths if NOT_OURS.isdisjoint(path.parts))
    # By a checksum of the path inside the library, so the order is the same for any installation.
    ordered = sorted(names, key=lambda name: (zlib.crc32(name.encode()), name))
    found, size = [], 0
    for name in ordered:
        if size >= max_bytes:
            break
        found.append((folder / name).read_bytes())
        size += len(found[-1])
    return found


def by_file(files: Sequence[bytes]) -> tuple[list[bytes], list[bytes]]:
    """(train, test), split by file, so that no test text is seen in training."""
    return [file for i, file in enumerate(files) if i % TEST_EVERY], list(files[::TEST_EVERY])


def read_files(paths: Sequence[Path], where: Path | str) -> list[bytes]:
    """The user's own files. Raises UserError for more than MAX_BYTES, and for a file that cannot be read."""
    try:
        size = sum(path.stat().st_size for path in paths)  # before any is read
        if size > MAX_BYTES:
            raise UserError(f"'{where}' holds {size} bytes of text: at most {MAX_BYTES} are legal.")
        return [path.read_bytes() for path in paths]
    except OSError as error:
        raise UserError(f"{error.filename} cannot be read ({error.strerror}).") from error


Labelled = list[tuple[bytes, int]]


def load_labelled(path: str, *, seed: int, length: int, classes: int) -> Dataset:
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
        name, found = f"kinds of lines in {NAME}", len(KINDS)
    else:
        source = Path(path).expanduser()
        if source.is_dir():
            paths = sorted(source.glob("*/*.txt"))  # the folder of a text is its class
            pairs = [(text, at.parent.name) for text, at in zip(read_files(paths, source), paths, strict=True)]
        elif source.is_file() and source.suffix == ".csv":
            pairs = _csv(source)
        else:
            what = "is a file of another kind" if source.exists() else "does not exist"
            raise UserError(
                f"config.data.path '{path}' {what}: give a folder with one folder of .txt files a class, a .csv file "
                "with the columns text and label, or '' for lines of Python's sources."
            )
        labels = sorted({label for _, label in pairs})
        if len(labels) < 2:
            raise UserError(f"'{path}' has texts of {len(labels)} classes: there must be at least 2.")
        train, test = _split([(text, labels.index(label)) for text, label in pairs], seed, path)
        name, found = source.resolve().name, len(labels)  # resolved: that of "." is empty
    if found > classes:  # fewer are fine: an output that no label has learns to be unlikely
        raise UserError(
            f"'{name}' has {found} classes and the model has {classes}: set --config.model.classes={found}."
        )
    return Dataset(_bundle(train, length), _bundle(test, length), name)


def _bundle(pairs: Labelled, length: int) -> dict[str, np.ndarray]:
    """Texts as padded rows of bytes, with their labels."""
    tokens = np.zeros((len(pairs), length), np.int32)
    for row, (text, _) in zip(tokens, pairs, strict=True):
        row[: len(text)] = np.frombuffer(text[:length], np.uint8)  # a longer text is cut, by both slices
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
        cut = max(1, round(TEST_FRACTION * len(members)))  # a class without test texts would have no accuracy
        test += members[:cut]
        train += members[cut:]
    return _shuffled(train, seed), _shuffled(test, seed)


def _csv(source: Path) -> list[tuple[bytes, str]]:
    """(text, label) of each row of a CSV file. Raises UserError."""
    (content,) = read_files([source], source)
    found = []
    for line, row in csv_table(source, content, ("label", "text"), "its first line must name text and label."):
        if not row["text"] or not row["label"]:
            raise UserError(f"{source}, line {line}: a text or a label is empty: every row must have both.")
        found.append((row["text"].encode(), row["label"]))
    return found


def _python_lines() -> tuple[Labelled, Labelled]:
    """(train, test), with every distinct line once."""
    seen: set[bytes] = set()  # of the training lines, so that no test line can be memorized
    parts = []
    for files in by_file(python_sources(LABELLED_BYTES)):
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
    # Plain code has by far the most lines. A model that always answered "code" would look good.
    limit = 2 * sorted(map(len, by_label))[-3]
    return [pair for members in by_label for pair in members[:limit]]


def kinds(source: bytes) -> Iterator[tuple[bytes, int]]:
    """Each line of a Python file, without its indentation, with the number of its kind in `KINDS`.

    A line belongs to its innermost statement: a definition includes all lines of its head, an import all of its lines.
    Blank lines, the first lines of decorators, the inside of multi-line strings other than docstrings, and files that
    this Python cannot parse are skipped.
    """
    try:
        with warnings.catch_warnings(action="ignore"):  # such as of invalid escapes in old sources
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
        head = range(node.lineno, max(node.lineno + 1, node.body[0].lineno))  # `def f(): return 1` is one line
        kind.update(dict.fromkeys(head, "definition"))
    if isinstance(node, ast.Constant | ast.JoinedStr) and node.end_lineno != node.lineno:
        for line in _span(node):
            kind.setdefault(line, None)  # not over the first line of a statement that begins before the string
    if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        if ast.get_docstring(node, clean=False) is not None:
            kind.update(dict.fromkeys(_span(node.body[0]), "docstring"))


def _span(node: ast.AST) -> range:
    """The lines of a syntax node."""
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)  # type: ignore[attr-defined]


def load_language(path: str, *, context: int, vocab: int, pad: str = "") -> Dataset:
    """Loads the text that `path` names, split by file.

    Each split has "tokens", int32 (N, context + 1) in [0, 256). With `pad` it also has "real", int32 (N, context): 1
    where tokens[i + 1] continues the document of tokens[i], 0 where it begins another or is padding.

    Args:
      path: "" for a megabyte of the standard library's sources, or a folder of .txt, .py or .md files. Every tenth of
        these, sorted by path, is in the test split.
      context: positions of the model.
      vocab: size of the model's vocabulary.
      pad: "": all files concatenated. "padded": one document per row. "packed": as many whole documents as fit a row; a
        model may attend to the previous document, as in GPT-3 (Brown et al., arXiv:2005.14165, section 2.2). A
        text or document longer than a row continues in the next row, which repeats the last byte.

    Raises:
      UserError: `vocab` is below 256, `path` does not exist or has no text, the text is too short or too long, or `pad`
        is unknown.
    """
    weights(pad)  # refuses an unknown `pad`
    if vocab < BYTES:
        raise UserError(f"--config.model.vocab={vocab} cannot hold bytes: it must be at least {BYTES}.")
    if not path:
        files, name = python_sources(LANGUAGE_BYTES), f"a megabyte of {NAME}"
    else:
        folder = Path(path).expanduser()
        files, name = _folder(folder, path), folder.resolve().name
    train, test = by_file(files)
    cut: Callable[..., dict[str, np.ndarray]] = partial(_rows, pad=pad) if pad else _cut
    parts = cut(train, context, "train", name), cut(test, context, "test", name)
    return Dataset(*parts, f"{name}, {pad} documents" if pad else name)


def weights(pad: str) -> str | None:
    """The field with the weights of the targets, or None. Raises UserError for an unknown `pad`."""
    if pad and pad not in PADS:
        raise UserError(f"--config.data.pad={pad} is unknown: {did_you_mean(pad, PADS)}")
    return "real" if pad else None


def draw_weights(real_NT: np.ndarray, key: jax.Array, batch: int) -> jax.Array:
    """Draws `batch` rows of "real" for synthetic tokens, int32 (batch, T), with the share of real tokens of all N rows.

    The draw is stratified: one row from each of `batch` equal parts of the rows sorted by share, so a small batch has
    nearly the share of all rows. The rows are then shuffled.
    """
    ordered = real_NT[np.argsort(real_NT.sum(axis=1), kind="stable")]
    # Compiled into the program as a constant, hence few rows of one byte each.
    table = ordered[np.linspace(0, len(ordered) - 1, min(len(ordered), DRAWN_ROWS)).astype(int)].astype(np.uint8)
    position_key, shuffle_key = jax.random.split(key)
    parts = (jnp.arange(batch) + jax.random.uniform(position_key, (batch,))) / batch
    rows = jnp.minimum((parts * len(table)).astype(jnp.int32), len(table) - 1)
    return jnp.asarray(table)[jax.random.permutation(shuffle_key, rows)].astype(jnp.int32)


def _folder(folder: Path, path: str) -> list[bytes]:
    """The texts of all files in a person's folder. Raises UserError."""
    if not folder.is_dir():
        problem = "is not a folder" if folder.exists() else "does not exist"
        raise UserError(
            f"config.data.path '{path}' {problem}: give a folder of text files, or '' for Python's sources."
        )
    paths = sorted(file for file in folder.rglob("*") if file.suffix in SUFFIXES and file.is_file())
    if len(paths) < 2:
        raise UserError(f"'{path}' holds {len(paths)} files that end in {', '.join(SUFFIXES)}: at least 2 are needed.")
    return read_files(paths, path)


def _cut(files: Sequence[bytes], context: int, split: str, name: str) -> dict[str, np.ndarray]:
    """All files concatenated and cut into rows that overlap by one byte, without the remainder."""
    text = np.frombuffer(b"".join(files), np.uint8)
    count = (len(text) - 1) // context
    if count < 1:
        raise UserError(f"the {split} files of '{name}' hold {len(text)} bytes: at least {context + 1} are needed.")
    starts = np.arange(count)[:, None] * context  # the last byte of a row is the first input of the next
    return {"tokens": text[starts + np.arange(context + 1)].astype(np.int32)}


def documents(file: bytes) -> list[bytes]:
    """The paragraphs of a file, except those of a single byte, which have nothing to predict."""
    return [document for document in BLANK_LINE.split(file) if len(document) > 1]


def _rows(files: Sequence[bytes], context: int, split: str, name: str, *, pad: str) -> dict[str, np.ndarray]:
    """All documents in rows of context + 1 bytes."""
    rows: list[list[bytes]] = []  # the pieces of documents in each row
    free = 0  # bytes left in the last row
    for document in (document for file in files for document in documents(file)):
        for start in range(0, len(document) - 1, context):
            piece = document[start : start + context + 1]
            if pad == "padded" or len(piece) > free:
                rows.append([])
                free = context + 1
            rows[-1].append(piece)
            free -= len(piece)
    if not rows:
        raise UserError(f"the {split} files of '{name}' hold no document of two bytes or more.")
    tokens, real = np.zeros((len(rows), context + 1), np.int32), np.zeros((len(rows), context), np.int32)
    for i, pieces in enumerate(rows):
        text = b"".join(pieces)
        tokens[i, : len(text)] = np.frombuffer(text, np.uint8)
        ends = np.cumsum([len(piece) for piece in pieces])
        real[i, : len(text) - 1] = 1
        real[i, ends[:-1] - 1] = 0  # the first byte of the next document is not predicted
    return {"tokens": tokens, "real": real}
