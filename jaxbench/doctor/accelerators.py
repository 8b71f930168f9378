# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Compares the machine's accelerators with the devices that JAX sees, and checks the driver and package versions.

This file does not import jax, because an incompatible jax fails on import. A child process imports it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.version import Version

from jaxbench.command_form import with_extra
from jaxbench.doctor.finding import Finding, Result, check, read
from jaxbench.errors import UserError
from jaxbench.machine import manifest

_HIDING = ("JAX_PLATFORMS", *(f"{maker}_VISIBLE_DEVICES" for maker in ("CUDA", "ROCR", "HIP", "TPU")))
# The oldest major version of NVIDIA's driver that each plug-in supports (JAX installation guide).
DRIVERS = {"cuda13": 580, "cuda12": 525}
_EXTRA = re.compile(r'(extra == "(tpu|cuda1\d|rocm\d+-local)")?')  # the markers of the jax requirements to check


@dataclass(frozen=True)
class Host:
    """The accelerators that the operating system shows.

    Attributes:
      nvidia_driver: the version of NVIDIA's driver; "": not loaded.
      nvidia: the number of NVIDIA GPUs, as device files or PCI cards.
      amd: whether AMD's compute driver is loaded.
      tpu: the number of Google's TPU chips.
    """

    nvidia_driver: str = ""
    nvidia: int = 0
    amd: bool = False
    tpu: int = 0


def read_host(root: Path = Path("/")) -> Host:
    """Reads system files below `root`. It starts no process."""
    text = read(root / "proc" / "driver" / "nvidia" / "version")
    driver = re.search(r"Kernel Module\s+(?:for \S+\s+)?(\d[\d.]*)", text)
    cards = [
        device for device in (root / "sys" / "bus" / "pci" / "devices").glob("*")
        if read(device / "vendor") == "0x10de" and read(device / "class").startswith("0x03")  # NVIDIA's, display or 3D
    ]  # fmt: skip
    return Host(
        nvidia_driver=driver.group(1) if driver else "",
        nvidia=max(len(cards), len(list((root / "dev").glob("nvidia[0-9]*")))),
        amd=(root / "dev" / "kfd").exists(),
        tpu=len(list((root / "dev").glob("accel[0-9]*"))),
    )


def probe() -> tuple[dict[str, Any] | None, Finding]:
    """(the manifest of this machine as a run would record it, or None; the finding whether JAX starts)."""
    try:
        facts = manifest.probe("auto")
    except UserError as error:
        advice = "Try it by hand: python -c 'import jax; print(jax.devices())'."
        return None, Finding("JAX", "bad", str(error), advice)
    message = f"JAX sees {facts['platform']}: {facts['devices']} x {facts['device_kind']}."
    return facts, Finding("JAX", "good", message, "", {"devices": facts["devices"]})


def examine(facts: Mapping[str, Any] | None, packages: Mapping[str, str], host: Host | None = None) -> list[Finding]:
    """The findings on versions, driver and accelerators.

    facts: from `probe`. packages: versions by name, from `manifest.versions`. host: this machine by default.
    """
    host = read_host() if host is None else host
    findings = [versions(packages), *([driver(host, packages)] if host.nvidia or host.nvidia_driver else [])]
    return [*findings, *([accelerators(host, facts["platform"], facts["devices"], packages)] if facts else [])]


@check("versions", "the requirements of jax")
def versions(packages: Mapping[str, str], lines: Iterable[str] | None = None) -> Result | None:
    """Compares the installed packages with the requirements of jax. lines: those requirements; by default those of the
    installed jax. An incompatible jaxlib fails on import, and jax skips an incompatible plug-in with a warning."""
    missing = [name for name in ("jax", "jaxlib") if packages.get(name, "not installed") == "not installed"]
    if missing:
        return (
            "bad",
            f"{' and '.join(missing)} not installed.",
            "Install the project again, in a new environment (make list VENV=a-new-folder, in a clone).",
            {},
        )
    requirements = [Requirement(line) for line in (metadata.requires("jax") or [] if lines is None else lines)]
    wrong = {
        f"{each.name} is {packages[each.name]}": f"'{each.name}{each.specifier}'" for each in requirements
        if each.name in packages and _EXTRA.fullmatch(str(each.marker or ""))
        and not each.specifier.contains(packages[each.name], prereleases=True)
    }  # fmt: skip
    if not requirements or wrong:
        advice = f"Install {' '.join(wrong.values())}."
        return ("bad", f"jax {packages['jax']} is incompatible: {', '.join(wrong)}.", advice, {}) if wrong else None
    return "good", f"jax {packages['jax']} and jaxlib {packages['jaxlib']} are compatible.", "", {}


@check("NVIDIA driver")
def driver(host: Host, packages: Mapping[str, str]) -> Result:
    """Whether NVIDIA's driver is loaded, and new enough for the installed plug-in."""
    if not host.nvidia_driver:
        message, advice = (
            "This machine has an NVIDIA GPU but no loaded driver.",
            f"Install {DRIVERS['cuda13']} or newer.",
        )
        return "doubtful", message, advice, {}
    usable, message = extra_for(host.nvidia_driver), f"NVIDIA's driver is {host.nvidia_driver}"
    for extra, oldest in DRIVERS.items():
        if f"jax-{extra}-plugin" in packages and Version(host.nvidia_driver).major < oldest:
            advice = f"Update the driver, or install for it: {with_extra(usable)}." if usable else "Update the driver."
            return "bad", f"{message}; the plug-in {extra} needs {oldest} or newer.", advice, {}
    return "good", f"{message}.", "", {}


def extra_for(version: str) -> str:
    """The newest extra that a driver supports; "" if it is too old for all. version: such as "580.65.06"."""
    return next((extra for extra, oldest in DRIVERS.items() if Version(version).major >= oldest), "")


@check("accelerators")
def accelerators(
    host: Host, platform: str, devices: int, packages: Mapping[str, str], environment: Mapping[str, str] = os.environ
) -> Result:
    """Whether JAX sees every accelerator of the machine. platform, devices: what JAX sees."""
    missing = []  # (accelerators, advice)
    if host.nvidia and (platform != "gpu" or devices < host.nvidia):
        missing.append((f"{host.nvidia} NVIDIA GPU{'s' * (host.nvidia > 1)}", _cuda_advice(host, packages)))
    elif host.amd and platform != "gpu":
        plugin = f"Install AMD's plug-in (jax-rocm7-plugin) of jaxlib {packages.get('jaxlib', '')}, or check rocminfo."
        missing.append(("an AMD GPU", plugin))
    if host.tpu and platform != "tpu":
        held = "Look for a process that holds the TPU."
        advice = held if "libtpu" in packages else f"Install libtpu: {with_extra('tpu')}."
        missing.append((f"{host.tpu} TPU chips", advice))
    if not missing:
        return "good", "JAX sees every accelerator of this machine.", "", {}
    hidden = [f"{key}={environment[key]!r}" for key in _HIDING if key in environment]
    advice = f"{' and '.join(hidden)} may hide it: unset." if hidden else missing[0][1]
    names = " and ".join(name for name, _ in missing)
    message = f"This machine has {names}, but JAX sees {devices if platform != 'cpu' else 'none'}."
    return "doubtful", message, advice, {"shown": host.nvidia + host.amd + host.tpu}


def _cuda_advice(host: Host, packages: Mapping[str, str]) -> str:
    if not host.nvidia_driver:
        return f"Install NVIDIA's driver, {DRIVERS['cuda13']} or newer, then: {with_extra('cuda13')}."
    extra, oldest = extra_for(host.nvidia_driver), min(DRIVERS.values())
    if not extra:
        return f"Update NVIDIA's driver ({host.nvidia_driver}) to {oldest} or newer, then: {with_extra('cuda12')}."
    if not any(name.startswith("jax-cuda") for name in packages):
        return f"Install the plug-in for driver {host.nvidia_driver}: {with_extra(extra)}."
    return "Run JAX_PLATFORMS=cuda python -c 'import jax; jax.devices()' in a shell: its error says why."
