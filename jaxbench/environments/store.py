# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Environments in the user's cache. Each is named by its contents, so two requests with the same result share one.

XDG_CACHE_HOME/jaxbench/environments/
    jax-0.10.0-py3.11.7-1f2e3d4c5b6a/   an environment; it counts from the moment when .packages.json is in it
    resolved/                           which packages a request led to, so that a second one needs no index
"""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import json
import os
import re
import shutil
import sys
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from jaxbench.environments import needs, tools
from jaxbench.environments.release import Release
from jaxbench.environments.tools import Package
from jaxbench.errors import UserError
from jaxbench.records import reading
from jaxbench.records.documents import decode

DONE = ".packages.json"  # written last: without it an environment is half made
VARIABLES = ("PIP_", "UV_")  # the beginnings of variables that choose an index
FOLDERS = ("PIP_FIND_LINKS", "UV_FIND_LINKS")


@dataclass(frozen=True)
class Environment:
    """An environment with a release.

    Attributes:
      release: what it was asked to have, with versions.
      folder: of the environment.
      packages: the version of each package by canonical name.
      other: clauses about packages that have another version than in the lock, apart from the pinned ones.
    """

    release: Release
    folder: Path
    packages: dict[str, str]
    other: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def variables(self) -> dict[str, str]:
        """The variables under which a command finds the programs of this environment first."""
        path = os.pathsep.join([str(self.folder / "bin"), os.environ.get("PATH", os.defpath)])
        return {"VIRTUAL_ENV": str(self.folder), "PATH": path}


def cache() -> Path:
    """The folder of all environments."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home, "jaxbench", "environments")


def environment(asked: Release, wanted: Sequence[str]) -> Environment:
    """The environment of a release, which is made unless the cache has it.

    wanted: the requirements of what runs in it. Raises UserError, with the nearest versions for a pin without one.
    """
    asked = tools.settled(asked)
    lock = needs.lock()
    packages = _resolved(asked, _requirements(asked, wanted), lock)
    folder = cache() / _name(packages)
    with _alone(folder):
        if not (folder / DONE).is_file():
            _make(folder, packages)
    locked = needs.pinned_by(lock)
    pinned = {pin.package for pin in asked.pins}
    other = tuple(
        f"{each.name} {each.version} (lock: {locked[each.name]})"
        for each in packages
        if each.name in locked and each.name not in pinned and locked[each.name] != each.version
    )
    return Environment(asked, folder, {each.name: each.version for each in packages}, other)


def _requirements(asked: Release, wanted: Sequence[str]) -> list[str]:
    """`wanted` with the pins. A pinned package keeps the extras that it is wanted with."""
    pins = {pin.package: pin for pin in asked.pins}
    lines = []
    for line in wanted:
        read = None if line.startswith("--") else Requirement(line)  # "--editable PATH"
        pin = pins.pop(canonicalize_name(read.name), None) if read else None
        if read and pin:
            line = str(dataclasses.replace(pin, extras=tuple(sorted({*pin.extras, *read.extras}))))
        lines.append(line)
    return [*lines, *map(str, pins.values())]


def _resolved(asked: Release, requirements: Sequence[str], lock: str) -> list[Package]:
    """The packages of a release: those kept from an earlier question, or the installer's answer."""
    tool = tools.tool()
    facts = [*requirements, lock, sys.version, sys.base_prefix, type(tool).__name__, *_indexes()]
    kept = cache() / "resolved" / f"{_short_digest(facts)}.json"
    if kept.is_file():
        return reading.read_json(kept, partial(decode, list[Package]), f"delete '{kept}'.")
    try:
        packages = sorted(
            tool.resolve(requirements, [pin.package for pin in asked.pins], lock), key=lambda each: each.name
        )
    except tools.CannotResolve as error:
        raise tools.refused(asked, error) from error
    _write(kept, [vars(each) for each in packages])
    return packages


def _indexes() -> list[str]:
    """What decides where packages come from, as far as variables do, and the files of a local folder."""
    found = [f"{name}={os.environ[name]}" for name in sorted(os.environ) if name.startswith(VARIABLES)]
    for folder in re.split(r"[\s,]+", " ".join(os.environ.get(name, "") for name in FOLDERS)):
        files = sorted(Path(folder).iterdir()) if folder and Path(folder).is_dir() else []
        found += [f"{file.name} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in files]
    return found


def _name(packages: Sequence[Package]) -> str:
    """The name of an environment, which follows from Python and the exact packages."""
    jax = next((f"jax-{each.version}-" for each in packages if each.name == "jax"), "")
    contents = [f"{each.line} {each.content}" for each in packages]
    python = ".".join(map(str, sys.version_info[:3]))
    return f"{jax}py{python}-{_short_digest([sys.base_prefix, sys.version, *contents])}"


def _short_digest(parts: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Only one process makes an environment; the others wait for it. Raises UserError without a cache folder."""
    lock = folder.with_name(f".{folder.name}.lock")
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise UserError(
            f"cannot write '{lock.parent}' ({error.strerror}): set XDG_CACHE_HOME to a folder that can be written."
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _make(folder: Path, packages: Sequence[Package]) -> None:
    """Makes an environment. DONE comes last: a folder without it is made again."""
    shutil.rmtree(folder, ignore_errors=True)  # what an interrupted start has left
    venv.EnvBuilder(with_pip=False, symlinks=True).create(folder)
    tools.tool().install([each.line for each in packages], folder / "bin" / "python")
    _write(folder / DONE, [vars(each) for each in packages])


def _write(file: Path, document: list[dict[str, str]]) -> None:
    """Writes a JSON file as a whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f"{file.name}.{os.getpid()}.part")
    part.write_text(json.dumps(document, indent=1))
    part.replace(file)
