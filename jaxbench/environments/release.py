# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Releases as they are typed: `jax==0.10.0`, several at once, and `nightly`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from jaxbench.errors import UserError

NIGHTLY = "nightly"
NIGHTLY_PACKAGES = ("jax", "jaxlib")
NEAREST = 2  # versions on each side that a sentence names
_COMPARES = re.compile(r"[A-Za-z0-9][\w.-]*(\[[\w,. -]*\])?\s*(===|==|~=|!=|<=|>=|<|>)")


@dataclass(frozen=True, order=True)
class Pin:
    """One package at one version. extras: those of the package, "cuda13"."""

    package: str
    version: str
    extras: tuple[str, ...] = ()

    def __str__(self) -> str:
        extras = f"[{','.join(self.extras)}]" if self.extras else ""
        return f"{self.package}{extras}=={self.version}"


@dataclass(frozen=True)
class Release:
    """Packages at given versions. nightly: JAX's newest nightly build, too, before its version is known."""

    pins: tuple[Pin, ...] = ()
    nightly: bool = False

    def __str__(self) -> str:
        return " ".join([*map(str, self.pins), *([NIGHTLY] if self.nightly else [])])

    def __bool__(self) -> bool:
        return bool(self.pins) or self.nightly

    def version_of(self, package: str) -> str:
        """ "" for a package that is not pinned."""
        return next((pin.version for pin in self.pins if pin.package == package), "")


def is_release(word: str) -> bool:
    """Whether a word of an arm is about a release, legal or not."""
    return word == NIGHTLY or _COMPARES.match(word) is not None


def parse(words: Iterable[str]) -> Release:
    """The release that words such as "jax==0.10.0" name. Raises UserError."""
    pins: dict[str, Pin] = {}
    nightly = False
    for word in words:
        if word == NIGHTLY:
            nightly = True
            continue
        pin = _pin(word)
        if pin.package in pins:
            raise UserError(f"'{word}' and '{pins[pin.package]}' name the same package: keep one of them.")
        pins[pin.package] = pin
    for package in NIGHTLY_PACKAGES:
        if nightly and package in pins:
            raise UserError(f"'{NIGHTLY}' is a version of {package}, too: keep it or {pins[package]}.")
    return Release(tuple(sorted(pins.values())), nightly)


def _pin(word: str) -> Pin:
    """The pin that a word such as "jax==0.10.0" means. Raises UserError."""
    example = "write a package and one version, such as jax==0.10.0"
    try:
        read = Requirement(word)
    except InvalidRequirement as error:
        raise UserError(f"'{word}' is no release: {example}.") from error
    specifiers = list(read.specifier)
    if len(specifiers) != 1 or specifiers[0].operator != "==" or read.marker or read.url:
        raise UserError(f"'{word}' is no release: {example}.")
    try:
        version = str(Version(specifiers[0].version))
    except InvalidVersion as error:  # such as "0.10.*"
        raise UserError(f"'{word}' names no single version: {example}.") from error
    return Pin(canonicalize_name(read.name), version, tuple(sorted(read.extras)))


def nearest(version: str, offered: Sequence[str]) -> list[str]:
    """The offered versions next to `version`, in their order. offered: oldest first."""
    wanted = Version(version)
    below = [each for each in offered if Version(each) < wanted]
    above = [each for each in offered if Version(each) > wanted]
    return [*below[-NEAREST:], *above[:NEAREST]]


def in_order(versions: Iterable[str]) -> list[str]:
    """Versions, oldest first. A text that is no version is left out."""
    known: dict[Version, str] = {}
    for text in versions:
        try:
            known[Version(text)] = text
        except InvalidVersion:
            continue
    return [known[version] for version in sorted(known)]


def between(first: str, last: str, offered: Sequence[str]) -> list[str]:
    """The versions from `first` to `last`, both included, oldest first.

    Pre-releases are left out unless one of the two is one. offered: all versions, oldest first.
    """
    low, high = Version(first), Version(last)
    every = low.is_prerelease or high.is_prerelease
    inner = [v for v in offered if low < Version(v) < high and (every or not Version(v).is_prerelease)]
    return [first, *inner, *([last] if high != low else [])]
