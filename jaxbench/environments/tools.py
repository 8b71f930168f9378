# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""uv and pip. Both read their own configuration, so an index is configured where the person configures it."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from jaxbench.environments import needs, release
from jaxbench.environments.release import NIGHTLY, NIGHTLY_PACKAGES, Pin, Release
from jaxbench.errors import UserError
from jaxbench.records import reading

AGAIN = "start the command again."
FAMILY = ("jax", "libtpu")  # how the names of packages begin that are released together
QUIET = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "PIP_NO_COLOR": "1", "NO_COLOR": "1"}
# pip lists the versions, for uv too, so it is told where uv looks.
AS_PIP = {
    "UV_FIND_LINKS": "PIP_FIND_LINKS",
    "UV_NO_INDEX": "PIP_NO_INDEX",
    "UV_DEFAULT_INDEX": "PIP_INDEX_URL",
    "UV_INDEX": "PIP_EXTRA_INDEX_URL",
}


class CannotResolve(Exception):
    """No versions satisfy all requirements. The message is the reason of the tool, as a clause."""


@dataclass(frozen=True)
class Package:
    """One package of an environment. line: the requirement that installs it. content: identifies its files."""

    name: str
    version: str
    line: str
    content: str = ""


class Tool(ABC):
    """A program that resolves requirements and installs packages."""

    @abstractmethod
    def resolve(self, wanted: Sequence[str], pinned: Sequence[str], lock: str) -> list[Package]:
        """All packages that satisfy `wanted`, with the versions of `lock` where that is possible.

        pinned: the names of those that the lock does not decide. Raises CannotResolve.
        """

    @abstractmethod
    def install(self, lines: Sequence[str], python: Path) -> None:
        """Installs these packages and no others into an empty environment. Raises UserError."""


class Uv(Tool):
    """uv takes the versions of an existing output file where they fit."""

    def resolve(self, wanted: Sequence[str], pinned: Sequence[str], lock: str) -> list[Package]:
        with tempfile.TemporaryDirectory() as folder:
            asked, found = Path(folder, "wanted.in"), Path(folder, "found.txt")
            asked.write_text("".join(f"{line}\n" for line in wanted))
            found.write_text(lock)
            words = ["--python", sys.executable, "--no-header", "--no-annotate", "--generate-hashes"]
            done = _run(["uv", "pip", "compile", "--quiet", *words, "--output-file", str(found), str(asked)])
            if done.returncode:
                raise CannotResolve(_reason_of_uv(done.stderr))
            return _packages(found.read_text())

    def install(self, lines: Sequence[str], python: Path) -> None:
        _install(["uv", "pip", "install", "--quiet", "--compile-bytecode", "--python", str(python)], lines)


class Pip(Tool):
    """pip takes a version of the lock or refuses, so the lock is given up in steps."""

    def resolve(self, wanted: Sequence[str], pinned: Sequence[str], lock: str) -> list[Package]:
        free = {*pinned}
        if any(name.startswith(FAMILY) for name in pinned):
            free |= {name for name in needs.pinned_by(lock) if name.startswith(FAMILY)}
        first: CannotResolve | None = None
        for constraints in (_without(lock, free), _without(lock, free | needs.dependents(free)), ""):
            try:
                return self._resolve(wanted, constraints)
            except CannotResolve as error:
                first = first or error
                if error.args[0].startswith("no matching distribution"):  # whatever the lock says
                    raise
        raise first or CannotResolve("no reason")

    def _resolve(self, wanted: Sequence[str], constraints: str) -> list[Package]:
        """The packages that pip would install within `constraints`."""
        with tempfile.TemporaryDirectory() as folder:
            limits, report = Path(folder, "constraints.txt"), Path(folder, "report.json")
            limits.write_text(constraints)
            words = ["--dry-run", "--ignore-installed", "--report", str(report), "--constraint", str(limits)]
            done = _run([sys.executable, "-m", "pip", "install", "--quiet", *words, *_file(folder, wanted)])
            if done.returncode:
                raise CannotResolve(_reason_of_pip(done.stderr))
            return [_of_report(each, wanted) for each in reading.read_json(report, dict, AGAIN)["install"]]

    def install(self, lines: Sequence[str], python: Path) -> None:
        words = ["--python", str(python), "install", "--quiet", "--no-deps"]
        _install([sys.executable, "-m", "pip", *words], lines)


def tool() -> Tool:
    """uv, if it is there, else pip: as the Makefile chooses. Raises UserError without either."""
    if shutil.which("uv"):
        return Uv()
    if importlib.util.find_spec("pip") is None:
        raise UserError("neither uv nor pip is there to install a release: install uv, or pip into this environment.")
    return Pip()


@functools.cache
def offered(package: str, *, early: bool = False) -> tuple[str, ...]:
    """The versions of a package that an index offers for this Python, oldest first. early: pre-releases, too.

    () if no index has the package. Raises UserError if no index answers.
    """
    pip = [sys.executable, "-m", "pip"]
    if importlib.util.find_spec("pip") is None:
        pip = ["uv", "tool", "run", "--quiet", "--python", sys.executable, "pip"]
    done = _run([*pip, "index", "versions", package, *(["--pre"] if early else [])], as_pip=True)
    listed = re.search(r"^Available versions: (.*)$", done.stdout, re.MULTILINE)
    if listed:
        return tuple(release.in_order(listed[1].split(", ")))
    if "No matching distribution" in done.stderr:
        return ()
    raise UserError(f"the versions of '{package}' cannot be listed ({_reason_of_pip(done.stderr)}): try again.")


def settled(asked: Release) -> Release:
    """The release with the versions of today's nightly build. Raises UserError where no index offers one."""
    if not asked.nightly:
        return asked
    pins = []
    for package in NIGHTLY_PACKAGES:
        newest = (offered(package, early=True) or ("",))[-1]
        stable = (offered(package) or ("0",))[-1]
        if not newest or newest == stable:
            raise UserError(
                f"'{NIGHTLY}': no index here offers a build of {package} that is newer than {stable}: add an index of "
                f"nightly builds to the configuration of pip or uv, or name a release such as {package}=={stable}."
            )
        pins.append(Pin(package, newest))
    return Release(tuple(sorted((*asked.pins, *pins))))


def refused(asked: Release, reason: CannotResolve) -> UserError:
    """Why a release cannot be installed, with the nearest versions."""
    for pin in asked.pins:
        known = offered(pin.package) or offered(pin.package, early=True)
        if not known:
            return UserError(
                f"{pin} cannot be resolved: no index here has a package '{pin.package}' for this Python. Correct the "
                "name, or add an index to the configuration of pip or uv."
            )
        if pin.version not in known and pin.version not in offered(pin.package, early=True):
            near = ", ".join(release.nearest(pin.version, known))
            return UserError(f"{pin} cannot be resolved: the nearest versions for this Python are {near}.")
    near = "; ".join(
        f"{pin.package} {', '.join(release.nearest(pin.version, offered(pin.package)))}" for pin in asked.pins
    )
    return UserError(f"{asked} cannot be resolved ({reason}): the nearest versions are {near}.")


def _run(command: Sequence[str], *, as_pip: bool = False) -> subprocess.CompletedProcess[str]:
    """Runs an installer, with pip's settings under the names that uv reads if `as_pip`."""
    told = {AS_PIP[name]: value for name, value in os.environ.items() if as_pip and name in AS_PIP}
    # Installing depends on the person's configuration, not on this process's path.
    child = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONSAFEPATH")}
    return subprocess.run(command, capture_output=True, text=True, env={**told, **child, **QUIET})


def _install(command: Sequence[str], lines: Sequence[str]) -> None:
    """Installs the lines of a lock. Raises UserError with the installer's reason."""
    if not lines:
        return
    with tempfile.TemporaryDirectory() as folder:
        more = ["--no-deps"] if command[0] == "uv" else []
        done = _run([*command, *more, *_file(folder, lines)])
    if done.returncode:
        reason = _reason_of_uv(done.stderr) if command[0] == "uv" else _reason_of_pip(done.stderr)
        raise UserError(f"packages of a release cannot be installed ({reason}): try again.")


def _file(folder: str, lines: Iterable[str]) -> list[str]:
    """The words that hand over requirements in a file: a command line may be too long."""
    file = Path(folder, "requirements.txt")
    file.write_text("".join(f"{line}\n" for line in lines))
    return ["--requirement", str(file)]


def _without(lock: str, free: Iterable[str]) -> str:
    """The lock without the lines of these packages."""
    names = {*free}
    kept = [
        line
        for line in lock.splitlines()
        if line.strip() and not line.startswith("#") and canonicalize_name(Requirement(line).name) not in names
    ]
    return "".join(f"{line}\n" for line in kept)


def _packages(text: str) -> list[Package]:
    """The packages of a file of uv: each is a line, and its hashes are indented lines below it."""
    found: list[Package] = []
    for block in re.split(r"\n(?=\S)", text.strip()):
        line, *hashes = (each.strip().removesuffix("\\").strip() for each in block.splitlines())
        if line.startswith(("-e ", "--editable ")):
            found.append(Package(name=line, version="", line=line))
        elif line:
            read = Requirement(line)
            version = next((each.version for each in read.specifier), "")
            found.append(Package(canonicalize_name(read.name), version, line, "".join(sorted(hashes))))
    return found


def _of_report(entry: dict[str, dict[str, object]], wanted: Sequence[str]) -> Package:
    """A package of the report of pip."""
    about, origin = entry["metadata"], entry["download_info"]
    name, version = str(about["name"]), str(about["version"])
    direct = bool(entry.get("is_direct"))
    line = f"{name}=={version}"
    if direct:
        folder = str(origin["url"]).removeprefix("file://")
        line = next((each for each in wanted if folder in each or each.startswith(f"{name} @")), f"{name} @ {folder}")
    return Package(canonicalize_name(name), version, line, json.dumps(origin.get("archive_info"), sort_keys=True))


def _reason_of_pip(text: str) -> str:
    """The reason of a failure, as a clause."""
    errors = [line.removeprefix("ERROR:").strip() for line in text.splitlines() if line.startswith("ERROR:")]
    chosen = next((line for line in errors if "conflict" in line or "No matching" in line), (errors or [""])[-1])
    chosen = chosen.rstrip(".") or _last(text)
    return chosen[:1].lower() + chosen[1:]


def _reason_of_uv(text: str) -> str:
    joined = " ".join(text.split())
    _, found, cause = joined.partition("Because ")
    return f"because {cause}".rstrip(".") if found else _last(text)


def _last(text: str) -> str:
    """The last line of an installer's output, which has its reason."""
    return (text.strip().splitlines() or ["no output"])[-1].strip().rstrip(".")
