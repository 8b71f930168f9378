# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Accelerators that the machine has, against those that JAX sees. JAX is asked in a child, which may crash or hang."""

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

LIMIT_S = 120.0  # a TPU that another process holds, or a broken driver, makes JAX wait forever
_HIDING = ("JAX_PLATFORMS", *(f"{maker}_VISIBLE_DEVICES" for maker in ("CUDA", "ROCR", "HIP", "TPU")))
DEVICES = """
import jax, json
devices = jax.devices()
print(json.dumps({"platform": devices[0].platform, "kinds": [device.device_kind for device in devices]}))
"""


@dataclass(frozen=True)
class Host:
    """What the operating system shows: NVIDIA's driver ("": none is loaded) and its GPUs, with a device file or on the
    PCI bus, whether AMD's compute driver is loaded, and Google's TPU chips."""

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
    """Asks a child for {platform, kinds}: the platform JAX takes by itself, and its devices' kinds."""
    # No memory is taken from a GPU that others may be using.
    quiet = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TF_CPP_MIN_LOG_LEVEL": "2"}
    return ask(command or python("-c", DEVICES), limit_s=limit_s, **quiet)


def examine(
    host: Host, answer: Answer, found: Mapping[str, str], environment: Mapping[str, str] = os.environ
) -> list[Finding]:
    """`found`: installed versions, as `versions.installed` says."""
    drivers = [versions.driver(host.nvidia_driver, found)] if host.nvidia_driver else []
    if host.nvidia and not host.nvidia_driver:
        said = "An NVIDIA GPU is in this machine, but no driver of it is loaded."
        advice = f"Install driver {versions.DRIVERS['cuda13']} or newer."
        drivers = [Finding("NVIDIA driver", "doubtful", said, advice)]
    if answer.value is None:
        advice = "Try it by hand: python -c 'import jax; print(jax.devices())'."
        return [Finding("JAX", "bad", f"JAX does not start in a child process: {answer.reason}.", advice), *drivers]
    platform, kinds = str(answer.value["platform"]), [str(kind) for kind in answer.value["kinds"]]
    listed = ", ".join(f"{count} x {kind}" for kind, count in collections.Counter(kinds).items())
    jax = Finding("JAX", "good", f"JAX sees {platform}: {listed}.", "", {"devices": len(kinds)})
    return [jax, *drivers, accelerators(host, platform, len(kinds), found, environment)]


def accelerators(
    host: Host, platform: str, devices: int, found: Mapping[str, str], environment: Mapping[str, str]
) -> Finding:
    """Each accelerator that the machine shows should be one that JAX sees."""
    missed = []
    if host.nvidia and (platform != "gpu" or devices < host.nvidia):
        missed.append((f"{host.nvidia} NVIDIA GPU{'s' * (host.nvidia > 1)}", _cuda_advice(host, found)))
    elif host.amd and platform != "gpu":
        plugin = f"Install AMD's plug-in (jax-rocm7-plugin) of jaxlib {found.get('jaxlib', '')}."
        missed.append(("an AMD GPU", "Check ROCm (rocminfo)." if _has(found, "jax-rocm") else plugin))
    if host.tpu and platform != "tpu":
        library = "Look for a process that holds the TPU." if "libtpu" in found else "Install with EXTRAS=tpu."
        missed.append((f"{host.tpu} TPU chips", library))
    if not missed:
        return Finding("accelerators", "good", "JAX sees every accelerator that the machine shows.")
    hidden = [f"{key}={environment[key]!r}" for key in _HIDING if key in environment]
    advice = f"{' and '.join(hidden)} may hide it: unset." if hidden else missed[0][1]
    there = " and ".join(what for what, _ in missed)
    said = f"The machine shows {there}, and JAX sees {devices if platform != 'cpu' else 'none'}."
    return Finding("accelerators", "doubtful", said, advice, {"shown": host.nvidia + host.amd + host.tpu})


def _cuda_advice(host: Host, found: Mapping[str, str]) -> str:
    if not host.nvidia_driver:
        return f"Install NVIDIA's driver, {versions.DRIVERS['cuda13']} or newer, then EXTRAS=cuda13."
    extra = versions.extra_for(host.nvidia_driver)
    if not extra:
        least = min(versions.DRIVERS.values())
        return f"Update NVIDIA's driver ({host.nvidia_driver}) to {least} or newer, then install with EXTRAS=cuda12."
    if not _has(found, "jax-cuda"):
        return f"Install with EXTRAS={extra}, which driver {host.nvidia_driver} can run."
    return "Try in a shell: JAX_PLATFORMS=cuda python -c 'import jax; jax.devices()' says why."


def _has(found: Mapping[str, str], beginning: str) -> bool:
    return any(name.startswith(beginning) for name in found)
