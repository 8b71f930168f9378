# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Checks that jax, jaxlib, the plug-ins and NVIDIA's driver fit each other, without importing them: a jax that does not
fit fails on import. The rules are the requirements of the installed jax, and the check of jaxlib when it loads a
plug-in: a CUDA plug-in must have exactly jaxlib's version, a ROCm plug-in the same minor version.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib import metadata

from packaging.requirements import Requirement
from packaging.version import Version

from jaxbench.doctor.finding import Finding, State

PLUGINS = ("jax-cuda", "jax-rocm", "libtpu")  # prefixes of names
# The oldest NVIDIA driver, major version, that a plug-in can use (JAX installation guide).
DRIVERS = {"cuda13": 580, "cuda12": 525}


def installed() -> dict[str, str]:
    """Versions of jax, jaxlib and every plug-in, by the package's name with hyphens."""
    packages = [(re.sub("[-_.]+", "-", each.name or "").lower(), each.version) for each in metadata.distributions()]
    return {name: text for name, text in sorted(packages) if name in ("jax", "jaxlib") or name.startswith(PLUGINS)}


def examine(packages: Mapping[str, str] | None = None, lines: Iterable[str] | None = None) -> list[Finding]:
    """packages: versions by name. lines: the requirements of jax. By default both are those of the installation."""
    packages = installed() if packages is None else packages
    missing = [name for name in ("jax", "jaxlib") if name not in packages]
    if missing:
        advice = "Install the project again: make list VENV=a-new-folder."
        return [Finding("versions", "bad", f"{' and '.join(missing)} not installed.", advice)]
    requirements = (metadata.requires("jax") or []) if lines is None else lines
    wrong = [*_required(packages, requirements), *_plugins(packages)]
    plugins = "".join(f", {name} {version}" for name, version in packages.items() if name.startswith(PLUGINS))
    message = f"jax {packages['jax']}, jaxlib {packages['jaxlib']}{plugins} fit each other."
    return [Finding("versions", *words) for words in wrong] or [Finding("versions", "good", message)]


def _required(packages: Mapping[str, str], lines: Iterable[str]) -> Iterable[tuple[State, str, str]]:
    for requirement in map(Requirement, lines):
        name, marker, legal = requirement.name, str(requirement.marker or ""), requirement.specifier
        if name in packages and (name, marker) in (("jaxlib", ""), ("libtpu", 'extra == "tpu"')):
            if not legal.contains(packages[name], prereleases=True):
                message = f"{name} is {packages[name]}, and jax {packages['jax']} needs {name}{legal}."
                yield "bad" if name == "jaxlib" else "doubtful", message, f"Install '{name}{legal}'."


def _plugins(packages: Mapping[str, str]) -> Iterable[tuple[State, str, str]]:
    jaxlib = Version(packages["jaxlib"])
    for name, version in packages.items():
        extra = name.split("-")[1] if name.startswith("jax-") else ""
        both, partner = f"{name} is {version} and jaxlib {jaxlib}", f"jax-{extra}-pjrt"
        if name.startswith("jax-cuda") and Version(version).release != jaxlib.release:
            yield "bad", f"{both}: they must be equal.", f"Install {name}=={jaxlib} (EXTRAS={extra})."
        if name.startswith("jax-rocm") and Version(version).release[:2] != jaxlib.release[:2]:
            minor = f"{jaxlib.major}.{jaxlib.minor}.*"
            yield "bad", f"{both}: their minor versions must be equal.", f"Install {name} {minor}."
        if name == f"jax-{extra}-plugin" and name.startswith("jax-cuda") and partner not in packages:
            yield "bad", f"{name} is installed without {partner}.", f"Install {partner}=={jaxlib} (EXTRAS={extra})."
    if {"jax-cuda12-plugin", "jax-cuda13-plugin"} <= packages.keys():
        message = "The plug-ins of CUDA 12 and CUDA 13 are both installed, and which one JAX uses is undefined."
        yield "doubtful", message, "Keep one: a fresh VENV with EXTRAS=cuda13, or cuda12."


def driver(version: str, packages: Mapping[str, str]) -> Finding:
    """Whether NVIDIA's driver (its version, such as "580.65.06") is new enough for the installed plug-in."""
    usable, message = extra_for(version), f"NVIDIA's driver is {version}"
    for extra, oldest in DRIVERS.items():
        if f"jax-{extra}-plugin" in packages and Version(version).major < oldest:
            advice = f"Update the driver, or install with EXTRAS={usable}." if usable else "Update the driver."
            return Finding("NVIDIA driver", "bad", f"{message}; the plug-in {extra} needs {oldest} or newer.", advice)
    return Finding("NVIDIA driver", "good", f"{message}.")


def extra_for(version: str) -> str:
    """The newest extra that this driver supports; "" if it is too old for all."""
    return next((extra for extra, oldest in DRIVERS.items() if Version(version).major >= oldest), "")
