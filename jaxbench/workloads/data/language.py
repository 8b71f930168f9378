# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Text as byte numbers in pieces of equal length, for a model that predicts the next byte."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jaxbench.errors import UserError
from jaxbench.workloads.data import sources

BYTES = 256
SUFFIXES = (".txt", ".py", ".md")
DEFAULT_BYTES = 2**20  # of the standard library
MAX_BYTES = 2**28  # of a person's own text: it is held in memory as int32


@dataclass(frozen=True)
class Pieces:
    """Pieces of text in host memory.

    Attributes:
      train, test: "tokens" int32 (N, context + 1) in [0, 256); the last of a piece is the first of the next.
      name: what a report calls the data.
    """

    train: dict[str, np.ndarray]
    test: dict[str, np.ndarray]
    name: str


def load(path: str, *, context: int, vocab: int) -> Pieces:
    """Loads the text that `path` names, split by file.

    Args:
      path: "" for a megabyte of the standard library's sources, or a folder, of which every tenth .txt, .py or .md file
        (in the order of their paths) is tested on.
      context: positions that the model sees.
      vocab: numbers that the model tells apart.

    Raises:
      UserError: `vocab` is below 256, nothing is there, it is of another kind, or it is too short or too long.
    """
    if vocab < BYTES:
        raise UserError(f"--config.model.vocab={vocab} cannot hold bytes: it must be at least {BYTES}.")
    if not path:
        files, name = sources.python_sources(DEFAULT_BYTES), f"a megabyte of {sources.NAME}"
    else:
        files, name = _folder(Path(path).expanduser(), path), Path(path).name
    train, test = sources.by_file(files)
    return Pieces(_cut(train, context, "train", name), _cut(test, context, "test", name), name)


def _folder(where: Path, path: str) -> list[bytes]:
    if not where.is_dir():
        found = "is not a folder" if where.exists() else "does not exist"
        raise UserError(f"config.data.path '{path}' {found}: give a folder of text files, or '' for Python's sources.")
    paths = sorted(file for file in where.rglob("*") if file.suffix in SUFFIXES and file.is_file())
    if len(paths) < 2:
        raise UserError(f"'{path}' holds {len(paths)} files that end in {', '.join(SUFFIXES)}: at least 2 are needed.")
    size = sum(file.stat().st_size for file in paths)
    if size > MAX_BYTES:
        raise UserError(f"'{path}' holds {size} bytes of text: at most {MAX_BYTES} are legal.")
    try:
        return [file.read_bytes() for file in paths]
    except OSError as error:
        raise UserError(f"{error.filename} cannot be read ({error.strerror}).") from error


def _cut(files: Sequence[bytes], context: int, part: str, name: str) -> dict[str, np.ndarray]:
    """All files one after the other, cut into pieces that overlap by one byte; what is left over is dropped."""
    text = np.frombuffer(b"".join(files), np.uint8)
    count = (len(text) - 1) // context
    if count < 1:
        raise UserError(f"the {part} files of '{name}' hold {len(text)} bytes: at least {context + 1} are needed.")
    starts = np.arange(count)[:, None] * context
    return {"tokens": text[starts + np.arange(context + 1)].astype(np.int32)}
