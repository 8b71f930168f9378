# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Whether jax, jaxlib, the plug-ins and NVIDIA's driver fit each other. None is imported: a jax that does not fit fails
there. What is legal stands in the requirements of the installed jax, and in what jaxlib checks when it loads a plug-in:
a CUDA plug-in must have jaxlib's own version, a ROCm one its minor version.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib import metadata

from packaging.requirements import Requirement
from packaging.version import Version

from jaxbench.doctor.finding import Finding, State

PLUGINS = ("jax-cuda", "jax-rocm", "libtpu")  # beginnings of names
# The oldest driver of NVIDIA, major version, that a plug-in can use (JAX installation guide).
DRIVERS = {"cuda13": 580, "cuda12": 525}


def installed() -> dict[str, str]:
    """Versions of jax, jaxlib and every plug-in, by the package's name with hyphens."""
    every = [(re.sub("[-_.]+", "-", each.name or "").lower(), each.version) for each in metadata.distributions()]
    return {name: version for name, version in sorted(every) if name in ("jax", "jaxlib") or name.startswith(PLUGINS)}


def examine(found: Mapping[str, str] | None = None, lines: Iterable[str] | None = None) -> list[Finding]:
    """found: versions by name. lines: the requirements of jax; both of what is installed unless told."""
    found = installed() if found is None else found
    missing = [name for name in ("jax", "jaxlib") if name not in found]
    if missing:
        advice = "Install the project again: make list VENV=a-new-folder."
        return [Finding("versions", "bad", f"{' and '.join(missing)} not installed.", advice)]
    wrong = [*_required(found, (metadata.requires("jax") or []) if lines is None else lines), *_plugins(found)]
    plugins = "".join(f", {name} {version}" for name, version in found.items() if name.startswith(PLUGINS))
    said = f"jax {found['jax']}, jaxlib {found['jaxlib']}{plugins} fit each other."
    return [Finding("versions", *words) for words in wrong] or [Finding("versions", "good", said)]


def _required(found: Mapping[str, str], lines: Iterable[str]) -> Iterable[tuple[State, str, str]]:
    for asked in map(Requirement, lines):
        name, marker = asked.name, str(asked.marker or "")
        if name in found and (name, marker) in (("jaxlib", ""), ("libtpu", 'extra == "tpu"')):
            if not asked.specifier.contains(found[name], prereleases=True):
                said = f"{name} is {found[name]}, and jax {found['jax']} needs {name}{asked.specifier}."
                yield "bad" if name == "jaxlib" else "doubtful", said, f"Install '{name}{asked.specifier}'."


def _plugins(found: Mapping[str, str]) -> Iterable[tuple[State, str, str]]:
    jaxlib = Version(found["jaxlib"])
    for name, version in found.items():
        extra = name.split("-")[1] if name.startswith("jax-") else ""
        said, partner = f"{name} is {version} and jaxlib {jaxlib}", f"jax-{extra}-pjrt"
        if name.startswith("jax-cuda") and Version(version).release != jaxlib.release:
            yield (
                "bad",
                f"{said}, which will not use it: they must be equal.",
                f"Install {name}=={jaxlib} (EXTRAS={extra}).",
            )
        if name.startswith("jax-rocm") and Version(version).release[:2] != jaxlib.release[:2]:
            minor = f"{jaxlib.major}.{jaxlib.minor}.*"
            yield "bad", f"{said}: their minor versions must be equal.", f"Install {name} {minor}."
        if name == f"jax-{extra}-plugin" and name.startswith("jax-cuda") and partner not in found:
            yield "bad", f"{name} is installed without {partner}.", f"Install {partner}=={jaxlib} (EXTRAS={extra})."
    if {"jax-cuda12-plugin", "jax-cuda13-plugin"} <= found.keys():
        said = "The plug-ins of CUDA 12 and of CUDA 13 are both installed: which of them works is chance."
        yield "doubtful", said, "Keep one: a fresh VENV with EXTRAS=cuda13, or cuda12."


def driver(version: str, found: Mapping[str, str]) -> Finding:
    """Whether NVIDIA's driver (its version, such as "580.65.06") is new enough for the plug-in that is installed."""
    needed = [(extra, least) for extra, least in DRIVERS.items() if f"jax-{extra}-plugin" in found]
    able, said = extra_for(version), f"NVIDIA's driver is {version}"
    for extra, least in needed:
        if Version(version).major < least:
            said += f"; the plug-in of {extra} needs {least} or newer"
            advice = f"Update the driver, or install with EXTRAS={able}." if able else "Update the driver."
            return Finding("NVIDIA driver", "bad", f"{said}.", advice)
    return Finding("NVIDIA driver", "good", f"{said}.")


def extra_for(version: str) -> str:
    """The newest extra that this driver can run; "" for one too old for any."""
    return next((extra for extra, least in DRIVERS.items() if Version(version).major >= least), "")
