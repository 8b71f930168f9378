# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The versions between two arms: releases of one package, or commits. All else of the arms must be equal."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version as Number

from jaxbench.environments import release, tools
from jaxbench.environments.release import Pin, Release
from jaxbench.errors import UserError
from jaxbench.features.comparison.other_commit import PREFIX, repository_of, resolved
from jaxbench.machine.manifest import git

SHORT = 12  # digits of a commit's hash


@dataclass(frozen=True)
class Version:
    """One version.

    Attributes:
      name: as it is shown: "jax==0.9.2", or "ref:" and the beginning of a hash.
      ref: "ref:HASH" of a commit; "" for the working tree.
      release: the packages that it runs with; empty: those of this environment.
      about: the subject of a commit; "" for a release.
    """

    name: str
    ref: str = ""
    release: Release = Release()
    about: str = ""

    @property
    def words(self) -> str:
        """The version as an arm of `ab`."""
        return " ".join(filter(None, (self.ref, str(self.release))))


@dataclass(frozen=True)
class End:
    """One end of the range, as it was typed: "ref:v1 jax==0.10.0"."""

    text: str
    ref: str = ""
    release: Release = Release()

    @classmethod
    def of(cls, flag: str, words: Sequence[str]) -> End:
        """words: of the value of `flag`. Raises UserError."""
        refs = [word for word in words if word.startswith(PREFIX)]
        pins = [word for word in words if release.is_release(word)]
        if other := [word for word in words if word not in (*refs, *pins)]:
            raise UserError(
                f"{flag}: '{other[0]}' is neither a release nor a commit: write jax==0.10.0 or ref:main, for example."
            )
        if len(refs) > 1 or not words:
            raise UserError(f"{flag}='{' '.join(words)}' must name one version, such as jax==0.10.0 or ref:main.")
        return cls(" ".join(words), refs[0] if refs else "", release.parse(pins))


def between(first: End, last: End, repository: Path | None = None) -> list[Version]:
    """The versions from `first` to `last`, both included, oldest first. Raises UserError.

    repository: of commits; None: as `other_commit.repository_of`.
    """
    if bool(first.ref) != bool(last.ref):
        raise UserError(f"from '{first.text}' to '{last.text}': both ends must name a commit, or neither.")
    releases = [tools.settled(end.release) for end in (first, last)]
    moved = _moved(*releases)
    if first.ref:
        if moved:
            raise UserError(
                f"from '{first.text}' to '{last.text}', the commit and {', '.join(moved)} change: keep one of them."
            )
        return _commits(first, last, releases[0], repository or repository_of())
    # A nightly build moves two packages that belong together.
    package = "jax" if last.release.nightly and {*moved} <= {"jax", "jaxlib"} else moved[0] if len(moved) == 1 else ""
    if not package:
        changed = f"{', '.join(moved)} change" if moved else "nothing changes"
        raise UserError(f"from '{first.text}' to '{last.text}', {changed}: let one package change, such as jax.")
    return _releases(package, *releases)


def _moved(first: Release, last: Release) -> list[str]:
    """The packages with another version. Raises UserError for a package that only one end names."""
    named = [{pin.package for pin in each.pins} for each in (first, last)]
    names = sorted(named[0] | named[1])
    together = {"jaxlib"} if "jax" in named[0] & named[1] else set()  # of a nightly build
    if lacking := (named[0] ^ named[1]) - together:
        package = min(lacking)
        known = first.version_of(package) or last.version_of(package)
        raise UserError(f"{package} is named at one end only: add {package}=={known} or another version to the other.")
    return [name for name in names if first.version_of(name) != last.version_of(name)]


def _releases(package: str, first: Release, last: Release) -> list[Version]:
    """All releases from the first to the last, oldest first. Raises UserError."""
    low, high = first.version_of(package), last.version_of(package)
    if Number(low) > Number(high):
        raise UserError(f"{package}=={low} is newer than {package}=={high}: exchange --from and --to.")
    # An end that no index has is refused when its environment is made, with the nearest versions.
    offered = [*tools.offered(package), *tools.offered(package, early=True)]
    found = []
    for number in release.between(low, high, release.in_order(offered)):
        pins = last.pins if number == high else tuple(_with_number(pin, package, number) for pin in first.pins)
        found.append(Version(f"{package}=={number}", release=Release(pins)))
    return found


def _with_number(pin: Pin, package: str, number: str) -> Pin:
    return Pin(pin.package, number, pin.extras) if pin.package == package else pin


def _commits(first: End, last: End, pins: Release, repository: Path) -> list[Version]:
    """The commits of the first-parent line: a merge counts as one change."""
    ends = [resolved(repository, end.ref.removeprefix(PREFIX)) for end in (first, last)]
    if ends[0] == ends[1]:
        raise UserError(f"{first.text} and {last.text} are the same commit: name two.")
    if not _descends(repository, *ends):
        raise UserError(f"{last.text} does not descend from {first.text}: let --from be the older of two commits.")
    shown = git(repository, "log", "--first-parent", "--reverse", "--format=%H %s", f"{ends[0]}..{ends[1]}")
    lines = [git(repository, "log", "-1", "--format=%H %s", ends[0]), *shown.splitlines()]
    return [
        Version(f"{PREFIX}{commit[:SHORT]}", f"{PREFIX}{commit}", pins, subject)
        for commit, _, subject in (line.partition(" ") for line in lines)
    ]


def _descends(repository: Path, first: str, last: str) -> bool:
    """Whether `first` is an ancestor of `last`."""
    try:
        git(repository, "merge-base", "--is-ancestor", first, last)
    except subprocess.CalledProcessError:
        return False
    return True
