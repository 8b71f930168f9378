# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The sources of Python's standard library: megabytes of text on every machine, without a network."""

from __future__ import annotations

import platform
import sysconfig
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from jaxbench.errors import UserError

MAX_BYTES = 2**28  # limit for the user's own text, which is held in memory as int32
NOT_OURS = {"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__", "lib2to3", "ensurepip"}
NAME = f"Python {platform.python_version()}'s standard library"
TEST_EVERY = 10  # every tenth file is in the test split


def python_sources(max_bytes: int) -> list[bytes]:
    """Whole files in a fixed order that mixes subjects, without tests, until they hold `max_bytes`.

    The order is by a checksum of the path inside the library, so it is the same for any installation.

    Raises:
      UserError: this Python comes without sources.
    """
    folder = Path(sysconfig.get_paths()["stdlib"])
    names = sorted(_names(folder), key=lambda name: (zlib.crc32(name.encode()), name))
    found, size = [], 0
    for name in names:
        if size >= max_bytes:
            break
        found.append((folder / name).read_bytes())
        size += len(found[-1])
    if len(found) < 2 * TEST_EVERY:
        raise UserError("this Python comes without the sources of its library: give --config.data.path.")
    return found


def _names(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*.py"):
        inside = path.relative_to(folder)
        if NOT_OURS.isdisjoint(inside.parts):
            yield inside.as_posix()


def by_file(files: Sequence[bytes]) -> tuple[list[bytes], list[bytes]]:
    """(train, test), split by file, so that no test text is seen in training."""
    train = [file for i, file in enumerate(files) if i % TEST_EVERY]
    return train, list(files[::TEST_EVERY])


def read_files(paths: Sequence[Path], where: Path | str) -> list[bytes]:
    """The user's own files. Raises UserError for more than MAX_BYTES, and for a file that cannot be read."""
    check_size(where, sum(path.stat().st_size for path in paths))
    try:
        return [path.read_bytes() for path in paths]
    except OSError as error:
        raise UserError(f"{error.filename} cannot be read ({error.strerror}).") from error


def check_size(where: Path | str, size: int) -> None:
    """Raises UserError for more than MAX_BYTES."""
    if size > MAX_BYTES:
        raise UserError(f"'{where}' holds {size} bytes of text: at most {MAX_BYTES} are legal.")
