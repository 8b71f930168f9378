# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""requirements.lock pins everything pyproject.toml asks for, on Python 3.11 and on 3.12 and later."""

from __future__ import annotations

import importlib.metadata
import sys
import tomllib
from collections.abc import Iterator

import pytest
from house.tree import ROOT
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCK = (ROOT / "requirements.lock").read_text()
PYTHONS = ("3.11.9", "3.12.4", "3.14.0")


def environment(python: str) -> dict[str, str]:
    linux = {"sys_platform": "linux", "os_name": "posix", "platform_system": "Linux"}
    version = {"python_full_version": python, "python_version": ".".join(python.split(".")[:2])}
    return {**{k: str(v) for k, v in default_environment().items()}, **linux, **version}


def asked() -> list[Requirement]:
    """What pyproject.toml names, without the extras that nothing is built on."""
    unlocked = {"peers", "wandb", "mlflow", "trackio", "trackers"}
    extras = [needs for name, needs in PROJECT["optional-dependencies"].items() if name not in unlocked]
    return [Requirement(r) for r in [*PROJECT["dependencies"], *(r for extra in extras for r in extra)]]


def pins(lock: str, python: str) -> dict[str, list[str]]:
    """Name -> the versions that hold for this Python."""
    found: dict[str, list[str]] = {}
    for line in lock.splitlines():
        pin = Requirement(line)
        (specifier,) = pin.specifier
        assert specifier.operator == "==", line
        if pin.marker is None or pin.marker.evaluate(environment(python)):
            found.setdefault(canonicalize_name(pin.name), []).append(specifier.version)
    return found


def not_pinned(requirements: list[Requirement], lock: str, python: str) -> list[str]:
    """The requirements that have no pin, several, or one that they do not allow."""
    pinned, wrong = pins(lock, python), []
    for requirement in requirements:
        versions = pinned.get(canonicalize_name(requirement.name), [])
        if len(versions) != 1 or not requirement.specifier.contains(versions[0], prereleases=True):
            wrong.append(f"{requirement} on Python {python}: pinned to {versions or 'nothing'}")
    return wrong


def closure(python: str) -> Iterator[Requirement]:
    """What the named packages need in turn, as far as they are installed here and say so."""
    queue, seen = asked(), set()
    while queue:
        requirement = queue.pop()
        key = (requirement.name, frozenset(requirement.extras))
        if key in seen:
            continue
        seen.add(key)
        yield requirement
        try:
            needs = importlib.metadata.requires(requirement.name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        for need in map(Requirement, needs):
            extras = requirement.extras or {""}
            if need.marker is None or any(need.marker.evaluate({**environment(python), "extra": e}) for e in extras):
                queue.append(need)


@pytest.mark.parametrize("python", PYTHONS)
def test_every_dependency_and_extra_is_pinned(python: str) -> None:
    assert not not_pinned(asked(), LOCK, python)


def test_what_they_need_in_turn_is_pinned_for_this_python() -> None:
    python = ".".join(map(str, sys.version_info[:3]))
    assert not not_pinned(list(closure(python)), LOCK, python)


def test_one_lock_gives_each_python_its_jax_and_names_no_place() -> None:
    assert pins(LOCK, "3.11.9")["jax"] == ["0.10.2"]
    assert Version(pins(LOCK, "3.12.4")["jax"][0]) >= Version("0.12")
    assert not [line for line in LOCK.splitlines() if "://" in line or line.startswith("-") or " @ " in line]


def test_planted_violations_are_found() -> None:
    need = [Requirement("numpy>=2.0")]
    assert not_pinned(need, "scipy==1.0", "3.11.9")
    assert not_pinned(need, "numpy==1.26.4", "3.11.9")
    assert not_pinned(need, "numpy==2.1 ; python_full_version >= '3.12'", "3.11.9")
    assert not_pinned(need, "numpy==2.1\nnumpy==2.2", "3.11.9")
    assert not not_pinned(need, "numpy==2.1 ; python_full_version < '3.12'", "3.11.9")
