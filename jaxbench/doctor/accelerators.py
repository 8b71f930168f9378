# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Accelerators that the machine has, against those that JAX sees. JAX is asked in a child, which may crash or hang."""

from __future__ import annotations

import collections
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxbench.doctor import versions
from jaxbench.doctor.child import Answer, ask, module
from jaxbench.doctor.finding import Finding

LIMIT_S = 120.0  # a TPU that another process holds, or a broken driver, makes JAX wait forever
# No memory is taken from a GPU that others may be using.
_QUIET = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TF_CPP_MIN_LOG_LEVEL": "2"}
_HIDING = ("JAX_PLATFORMS", *(f"{maker}_VISIBLE_DEVICES" for maker in ("CUDA", "ROCR", "HIP", "TPU")))
_NVIDIA_VENDOR = "0x10de"


@dataclass(frozen=True)
class Host:
    """What the operating system shows.

    Attributes:
      nvidia_driver: its version; "" when none is loaded.
      nvidia: GPUs with a device file. nvidia_cards: those on the PCI bus, with a driver or without.
      amd: AMD's compute driver is loaded. tpu: Google's TPU chips.
    """

    nvidia_driver: str = ""
    nvidia: int = 0
    nvidia_cards: int = 0
    amd: bool = False
    tpu: int = 0


def look(root: Path = Path("/"), smi: str | None = None) -> Host:
    """`smi`: the command nvidia-smi, asked only where the driver left no file; "" to do without."""
    driver, count = _driver_file(root), len(list((root / "dev").glob("nvidia[0-9]*")))
    if not driver:
        driver, listed = _ask_smi(shutil.which("nvidia-smi") or "" if smi is None else smi)
        count = max(count, listed)
    return Host(
        nvidia_driver=driver,
        nvidia=count,
        nvidia_cards=_cards(root),
        amd=(root / "dev" / "kfd").exists(),
        tpu=len(list((root / "dev").glob("accel[0-9]*"))),
    )


def _driver_file(root: Path) -> str:
    try:
        text = (root / "proc" / "driver" / "nvidia" / "version").read_text()
    except OSError:
        return ""
    found = re.search(r"Kernel Module\s+(?:for \S+\s+)?(\d[\d.]*)", text)
    return found.group(1) if found else ""


def _ask_smi(command: str) -> tuple[str, int]:
    """(driver version, GPUs); ("", 0) where there is no nvidia-smi or it finds no driver."""
    if not command:
        return "", 0
    words = [command, "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return "", 0
    lines = [line.strip() for line in done.stdout.splitlines() if re.match(r"\d+\.\d", line.strip())]
    return (lines[0], len(lines)) if done.returncode == 0 and lines else ("", 0)


def _cards(root: Path) -> int:
    """Display and 3D controllers of NVIDIA on the PCI bus."""
    count = 0
    for device in (root / "sys" / "bus" / "pci" / "devices").glob("*"):
        try:
            ours = (device / "vendor").read_text().strip() == _NVIDIA_VENDOR
            count += ours and (device / "class").read_text().startswith("0x03")
        except OSError:
            continue
    return count


def seen(limit_s: float = LIMIT_S, command: Sequence[str] | None = None) -> Answer:
    """Asks a child for {platform, kinds}: the platform JAX takes by itself, and its devices' kinds."""
    return ask(command or module("jaxbench.doctor.accelerators"), limit_s=limit_s, environment=_QUIET)


def examine(
    host: Host, answer: Answer, found: Mapping[str, str], environment: Mapping[str, str] = os.environ
) -> list[Finding]:
    """`found`: installed versions, as `versions.installed` says."""
    if answer.value is None:
        advice = "Try it by hand: python -c 'import jax; print(jax.devices())'."
        jax = Finding("JAX", "bad", f"JAX does not start in a child process: {answer.reason}.", advice)
        return [jax, *_driver(host, found)]
    platform, kinds = str(answer.value["platform"]), [str(kind) for kind in answer.value["kinds"]]
    counts = collections.Counter(kinds)
    listed = ", ".join(f"{count} x {kind}" for kind, count in counts.items())
    jax = Finding("JAX", "good", f"JAX sees {platform}: {listed}.", "", {"devices": len(kinds)})
    return [jax, *_driver(host, found), accelerators(host, platform, len(kinds), found, environment)]


def _driver(host: Host, found: Mapping[str, str]) -> list[Finding]:
    if host.nvidia_driver:
        return [versions.driver(host.nvidia_driver, found)]
    if host.nvidia_cards or host.nvidia:
        said = "An NVIDIA GPU is in this machine, but no driver of it is loaded."
        return [Finding("NVIDIA driver", "doubtful", said, f"Install driver {versions.DRIVERS['cuda13']} or newer.")]
    return []


def accelerators(
    host: Host, platform: str, devices: int, found: Mapping[str, str], environment: Mapping[str, str]
) -> Finding:
    """Each accelerator that the machine shows should be one that JAX sees."""
    name, gpus = "accelerators", max(host.nvidia, host.nvidia_cards)
    missed = []
    if gpus and (platform != "gpu" or devices < gpus):
        missed.append((f"{gpus} NVIDIA GPU{'s' if gpus > 1 else ''}", _cuda_advice(host, found)))
    elif host.amd and platform != "gpu":
        wanted = f"Install AMD's plug-in (jax-rocm7-plugin) of jaxlib {found.get('jaxlib', '')}."
        missed.append(("an AMD GPU", wanted if not _has(found, "jax-rocm") else "Check ROCm (rocminfo)."))
    if host.tpu and platform != "tpu":
        wanted = "Install with EXTRAS=tpu." if "libtpu" not in found else "Look for a process that holds the TPU."
        missed.append((f"{host.tpu} TPU chips", wanted))
    if not missed:
        if platform != "cpu":
            return Finding(name, "good", "JAX sees every accelerator that the machine shows.")
        return Finding(name, "good", "The machine shows no accelerator; JAX measures on the processor.")
    there = " and ".join(what for what, _ in missed)
    said = f"The machine shows {there}, and JAX sees {devices if platform != 'cpu' else 'none'}."
    hidden = [f"{key}={environment[key]!r}" for key in _HIDING if key in environment]
    advice = f"{' and '.join(hidden)} may hide it: unset." if hidden else missed[0][1]
    return Finding(name, "doubtful", said, advice, {"shown": gpus + host.amd + host.tpu})


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


def report() -> None:
    """The child."""
    import jax

    devices = jax.devices()
    answer = {"platform": devices[0].platform, "kinds": [device.device_kind for device in devices]}
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    report()
