# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Text as byte numbers in rows of equal length, for a model that predicts the next byte.

The text is cut at the end of each row, or into documents: the paragraphs of its files, separated by blank lines.
Documents have unequal lengths, so the field "real" marks the targets that count.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench.errors import UserError, did_you_mean
from jaxbench.workloads.base import Splits
from jaxbench.workloads.data import sources

BYTES = 256
SUFFIXES = (".txt", ".py", ".md")
DEFAULT_BYTES = 2**20  # from the standard library
PADS = ("padded", "packed")
DRAWN_ROWS = 2**12  # rows for drawing synthetic batches
BLANK_LINE = re.compile(rb"\n[ \t]*\n")


def load(path: str, *, context: int, vocab: int, pad: str = "") -> Splits:
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
    weights(pad)
    if vocab < BYTES:
        raise UserError(f"--config.model.vocab={vocab} cannot hold bytes: it must be at least {BYTES}.")
    if not path:
        files, name = sources.python_sources(DEFAULT_BYTES), f"a megabyte of {sources.NAME}"
    else:
        files, name = _folder(Path(path).expanduser(), path), Path(path).name
    train, test = sources.by_file(files)
    if pad:
        rows = _rows(train, context, pad, "train", name), _rows(test, context, pad, "test", name)
        return Splits(*rows, f"{name}, {pad} documents")
    return Splits(_cut(train, context, "train", name), _cut(test, context, "test", name), name)


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
    table = ordered[np.linspace(0, len(ordered) - 1, min(len(ordered), DRAWN_ROWS)).astype(int)].astype(np.uint8)
    position_key, shuffle_key = jax.random.split(key)
    parts = (jnp.arange(batch) + jax.random.uniform(position_key, (batch,))) / batch
    rows = jnp.minimum((parts * len(table)).astype(jnp.int32), len(table) - 1)
    return jnp.asarray(table)[jax.random.permutation(shuffle_key, rows)].astype(jnp.int32)


def _folder(folder: Path, path: str) -> list[bytes]:
    if not folder.is_dir():
        problem = "is not a folder" if folder.exists() else "does not exist"
        raise UserError(
            f"config.data.path '{path}' {problem}: give a folder of text files, or '' for Python's sources."
        )
    paths = sorted(file for file in folder.rglob("*") if file.suffix in SUFFIXES and file.is_file())
    if len(paths) < 2:
        raise UserError(f"'{path}' holds {len(paths)} files that end in {', '.join(SUFFIXES)}: at least 2 are needed.")
    return sources.read_files(paths, path)


def _cut(files: Sequence[bytes], context: int, part: str, name: str) -> dict[str, np.ndarray]:
    """All files concatenated and cut into rows that overlap by one byte, without the remainder."""
    text = np.frombuffer(b"".join(files), np.uint8)
    count = (len(text) - 1) // context
    if count < 1:
        raise UserError(f"the {part} files of '{name}' hold {len(text)} bytes: at least {context + 1} are needed.")
    starts = np.arange(count)[:, None] * context
    return {"tokens": text[starts + np.arange(context + 1)].astype(np.int32)}


def documents(file: bytes) -> list[bytes]:
    """The paragraphs of a file, except those of a single byte, which have nothing to predict."""
    return [document for document in BLANK_LINE.split(file) if len(document) > 1]


def _rows(files: Sequence[bytes], context: int, pad: str, part: str, name: str) -> dict[str, np.ndarray]:
    """All documents in rows of context + 1 bytes."""
    rows: list[list[bytes]] = []
    free = 0
    for document in (document for file in files for document in documents(file)):
        for start in range(0, len(document) - 1, context):
            piece = document[start : start + context + 1]
            if pad == "padded" or len(piece) > free:
                rows.append([])
                free = context + 1
            rows[-1].append(piece)
            free -= len(piece)
    if not rows:
        raise UserError(f"the {part} files of '{name}' hold no paragraph of 2 bytes: give a longer text.")
    tokens, real = np.zeros((len(rows), context + 1), np.int32), np.zeros((len(rows), context), np.int32)
    for i, pieces in enumerate(rows):
        text = b"".join(pieces)
        tokens[i, : len(text)] = np.frombuffer(text, np.uint8)
        ends = np.cumsum([len(piece) for piece in pieces])
        real[i, : len(text) - 1] = 1
        real[i, ends[:-1] - 1] = 0  # the first byte of the next document is not predicted
    return {"tokens": tokens, "real": real}
