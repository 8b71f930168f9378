# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Whether jax, jaxlib and the plug-ins fit each other. None is imported: a jax that does not fit fails there.

What is legal is read from the installed jax itself (its package's requirements), and from what jaxlib checks when it
loads a plug-in: a CUDA plug-in must have jaxlib's own version, a ROCm one is tied by its minor version only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata

from jaxbench.doctor.finding import Finding

PLUGINS = ("jax-cuda", "jax-rocm", "libtpu")  # beginnings of names
# The oldest driver of NVIDIA, major version, that a plug-in can use (JAX installation guide).
DRIVERS = {"cuda13": 580, "cuda12": 525}


@dataclass(frozen=True)
class Wanted:
    """What an installed jax asks for: jaxlib from `least` to `most`, and libtpu of this beginning; "" if not said."""

    least: str = ""
    most: str = ""
    libtpu: str = ""


def installed() -> dict[str, str]:
    """Versions of jax, jaxlib and every plug-in, by the package's name with hyphens."""
    found: dict[str, str] = {}
    for distribution in metadata.distributions():
        name = re.sub("[-_.]+", "-", distribution.name or "").lower()
        if name in ("jax", "jaxlib") or name.startswith(PLUGINS):
            found.setdefault(name, distribution.version)
    return dict(sorted(found.items()))


def requirements() -> list[str]:
    try:
        return metadata.requires("jax") or []
    except metadata.PackageNotFoundError:
        return []


def wanted(lines: Iterable[str]) -> Wanted:
    """From lines such as ``jaxlib<=0.10.2,>=0.10.1`` and ``libtpu==0.0.42.*; extra == "tpu"``."""
    least = most = libtpu = ""
    for line in lines:
        if line.startswith("jaxlib") and "extra" not in line:
            least, most = (_after(sign, line) for sign in (">=", "<="))
        elif line.startswith("libtpu") and 'extra == "tpu"' in line:
            libtpu = _after("==", line)
    return Wanted(least, most, libtpu)


def _after(sign: str, line: str) -> str:
    found = re.search(re.escape(sign) + r"\s*([\d.]*\d)", line)
    return found.group(1) if found else ""


def numbers(version: str) -> tuple[int, ...]:
    """ "0.10.2.dev3" -> (0, 10, 2), as jaxlib reads it."""
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in found.group().split(".")) if found else ()


def examine(found: Mapping[str, str] | None = None, lines: Iterable[str] | None = None) -> list[Finding]:
    found = installed() if found is None else found
    wrong = mismatches(found, wanted(requirements() if lines is None else lines))
    if wrong:
        return wrong
    plugins = [f"{name} {version}" for name, version in found.items() if name not in ("jax", "jaxlib")]
    said = f"jax {found['jax']} and jaxlib {found['jaxlib']} fit each other"
    return [Finding("versions", "good", f"{said}, and {', '.join(plugins)}." if plugins else f"{said}; no plug-ins.")]


def mismatches(found: Mapping[str, str], asked: Wanted) -> list[Finding]:
    """One finding for each version that does not fit, with the legal one."""
    missing = [name for name in ("jax", "jaxlib") if name not in found]
    if missing:
        return [
            _wrong(f"{' and '.join(missing)} not installed.", "Install the project again: make list VENV=a-new-folder.")
        ]
    wrong = _jaxlib(found["jax"], found["jaxlib"], asked)
    for name, version in found.items():
        if name.startswith("jax-cuda"):
            wrong += _cuda(name, version, found)
        elif name.startswith("jax-rocm"):
            wrong += _rocm(name, version, found["jaxlib"])
        elif name == "libtpu" and asked.libtpu and not _begins(version, asked.libtpu):
            said = f"libtpu is {version}, and jax {found['jax']} was made for {asked.libtpu}.*."
            wrong.append(_wrong(said, f"Install libtpu=={asked.libtpu}.* (EXTRAS=tpu).", "doubtful"))
    if "jax-cuda12-plugin" in found and "jax-cuda13-plugin" in found:
        said = "The plug-ins of CUDA 12 and of CUDA 13 are both installed: which of them works is chance."
        wrong.append(_wrong(said, "Keep one: a fresh VENV with EXTRAS=cuda13, or cuda12.", "doubtful"))
    return wrong


def _jaxlib(jax: str, jaxlib: str, asked: Wanted) -> list[Finding]:
    least, most = asked.least, asked.most or jax
    legal = f"{least} to {most}" if least and least != most else most
    advice = f"Install jaxlib {legal}."
    if least and numbers(jaxlib) < numbers(least):
        return [_wrong(f"jaxlib {jaxlib} is too old for jax {jax}, which takes {legal}.", advice)]
    if numbers(jaxlib) > numbers(most):
        return [_wrong(f"jaxlib {jaxlib} is newer than jax {jax}, which takes {legal}.", advice)]
    return []


def _cuda(name: str, version: str, found: Mapping[str, str]) -> list[Finding]:
    """The plug-in has two packages, -plugin and -pjrt: both must be there and have jaxlib's version."""
    extra, jaxlib = name.split("-")[1], found["jaxlib"]
    wrong = []
    if numbers(version) != numbers(jaxlib):
        said = f"{name} is {version} and jaxlib {jaxlib}, which will not use it: they must be equal."
        wrong.append(_wrong(said, f"Install {name}=={jaxlib} (EXTRAS={extra})."))
    partner = f"jax-{extra}-pjrt"
    if name == f"jax-{extra}-plugin" and partner not in found:
        wrong.append(
            _wrong(f"{name} is installed without {partner}.", f"Install {partner}=={jaxlib} (EXTRAS={extra}).")
        )
    return wrong


def _rocm(name: str, version: str, jaxlib: str) -> list[Finding]:
    if numbers(version)[:2] == numbers(jaxlib)[:2]:
        return []
    minor = ".".join(str(part) for part in numbers(jaxlib)[:2])
    said = f"{name} is {version} and jaxlib {jaxlib}: their minor versions must be equal."
    return [_wrong(said, f"Install {name} {minor}.*.")]


def driver(version: str, found: Mapping[str, str]) -> Finding:
    """Whether NVIDIA's driver (its version, such as "580.65.06") is new enough for the plug-in that is installed."""
    for extra, least in DRIVERS.items():
        if f"jax-{extra}-plugin" in found and numbers(version) < (least,):
            said = f"NVIDIA's driver is {version}; the plug-in of {extra} needs {least} or newer."
            able = extra_for(version)
            advice = f"Update the driver, or install with EXTRAS={able}." if able else "Update the driver."
            return Finding("NVIDIA driver", "bad", said, advice)
    return Finding("NVIDIA driver", "good", f"NVIDIA's driver is {version}.")


def extra_for(version: str) -> str:
    """The newest extra that this driver can run; "" for one too old for any."""
    return next((extra for extra, least in DRIVERS.items() if numbers(version) >= (least,)), "")


def _begins(version: str, prefix: str) -> bool:
    return numbers(version)[: len(numbers(prefix))] == numbers(prefix)


def _wrong(said: str, advice: str, state: str = "bad") -> Finding:
    return Finding("versions", "doubtful" if state == "doubtful" else "bad", said, advice)
