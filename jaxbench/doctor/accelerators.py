# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Compares the accelerators of the machine with those that JAX sees. JAX runs in a child, which may crash or hang."""

from __future__ import annotations

import collections
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxbench.doctor import versions
from jaxbench.doctor.child import Answer, ask, python
from jaxbench.doctor.finding import Finding, read

LIMIT_S = 120.0  # a broken driver, or a TPU that another process holds, makes JAX wait forever
_HIDING = ("JAX_PLATFORMS", *(f"{maker}_VISIBLE_DEVICES" for maker in ("CUDA", "ROCR", "HIP", "TPU")))
DEVICES = """
import jax, json
devices = jax.devices()
print(json.dumps({"platform": devices[0].platform, "kinds": [device.device_kind for device in devices]}))
"""


@dataclass(frozen=True)
class Host:
    """What the operating system shows: the version of NVIDIA's driver ("": not loaded), the number of NVIDIA GPUs
    (device files or PCI cards), whether AMD's compute driver is loaded, and the number of Google's TPU chips."""

    nvidia_driver: str = ""
    nvidia: int = 0
    amd: bool = False
    tpu: int = 0


def look(root: Path = Path("/")) -> Host:
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


def seen(limit_s: float = LIMIT_S, command: Sequence[str] | None = None) -> Answer:
    """Asks a child for {platform, kinds}: JAX's default platform and the kinds of its devices."""
    # Without preallocation, as others may be using the GPU's memory.
    quiet = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TF_CPP_MIN_LOG_LEVEL": "2"}
    return ask(command or python("-c", DEVICES), limit_s=limit_s, **quiet)


def examine(
    host: Host, answer: Answer, packages: Mapping[str, str], environment: Mapping[str, str] = os.environ
) -> list[Finding]:
    """packages: of `versions.installed`."""
    drivers = [versions.driver(host.nvidia_driver, packages)] if host.nvidia_driver else []
    if host.nvidia and not host.nvidia_driver:
        advice = f"Install driver {versions.DRIVERS['cuda13']} or newer."
        drivers = [Finding("NVIDIA driver", "doubtful", "This machine has an NVIDIA GPU but no loaded driver.", advice)]
    if answer.value is None:
        advice = "Try it by hand: python -c 'import jax; print(jax.devices())'."
        return [Finding("JAX", "bad", f"JAX does not start in a child process: {answer.reason}.", advice), *drivers]
    platform, kinds = str(answer.value["platform"]), [str(kind) for kind in answer.value["kinds"]]
    counts = ", ".join(f"{count} x {kind}" for kind, count in collections.Counter(kinds).items())
    jax = Finding("JAX", "good", f"JAX sees {platform}: {counts}.", "", {"devices": len(kinds)})
    return [jax, *drivers, accelerators(host, platform, len(kinds), packages, environment)]


def accelerators(
    host: Host, platform: str, devices: int, packages: Mapping[str, str], environment: Mapping[str, str]
) -> Finding:
    """JAX should see each accelerator of the machine."""
    missing = []  # (accelerators, advice)
    if host.nvidia and (platform != "gpu" or devices < host.nvidia):
        missing.append((f"{host.nvidia} NVIDIA GPU{'s' * (host.nvidia > 1)}", _cuda_advice(host, packages)))
    elif host.amd and platform != "gpu":
        plugin = f"Install AMD's plug-in (jax-rocm7-plugin) of jaxlib {packages.get('jaxlib', '')}."
        missing.append(("an AMD GPU", "Check ROCm (rocminfo)." if _has(packages, "jax-rocm") else plugin))
    if host.tpu and platform != "tpu":
        advice = "Look for a process that holds the TPU." if "libtpu" in packages else "Install with EXTRAS=tpu."
        missing.append((f"{host.tpu} TPU chips", advice))
    if not missing:
        return Finding("accelerators", "good", "JAX sees every accelerator of this machine.")
    hidden = [f"{key}={environment[key]!r}" for key in _HIDING if key in environment]
    advice = f"{' and '.join(hidden)} may hide it: unset." if hidden else missing[0][1]
    names = " and ".join(name for name, _ in missing)
    message = f"This machine has {names}, but JAX sees {devices if platform != 'cpu' else 'none'}."
    return Finding("accelerators", "doubtful", message, advice, {"shown": host.nvidia + host.amd + host.tpu})


def _cuda_advice(host: Host, packages: Mapping[str, str]) -> str:
    if not host.nvidia_driver:
        return f"Install NVIDIA's driver, {versions.DRIVERS['cuda13']} or newer, then EXTRAS=cuda13."
    extra, oldest = versions.extra_for(host.nvidia_driver), min(versions.DRIVERS.values())
    if not extra:
        return f"Update NVIDIA's driver ({host.nvidia_driver}) to {oldest} or newer, then install with EXTRAS=cuda12."
    if not _has(packages, "jax-cuda"):
        return f"Install with EXTRAS={extra}, which works with driver {host.nvidia_driver}."
    return "Run JAX_PLATFORMS=cuda python -c 'import jax; jax.devices()' in a shell: its error says why."


def _has(packages: Mapping[str, str], prefix: str) -> bool:
    return any(name.startswith(prefix) for name in packages)
