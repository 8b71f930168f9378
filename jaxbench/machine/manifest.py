# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What a result was obtained with: versions, flags, devices, cores and source. Run as a child, so that the asking
process never starts a backend (which would take an accelerator's memory from the workers)."""

from __future__ import annotations

import functools
import json
import os
import platform as os_platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from jaxbench.errors import UserError
from jaxbench.machine import source

PACKAGES = ("jaxbench", "jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "ml-collections", "numpy", "absl-py")
PLUGINS = ("jax-cuda", "jax-rocm", "libtpu", "nvidia-nccl", "nvidia-cudnn", "nvidia-cublas")  # beginnings of names
FLAGS = ("LIBTPU_INIT_ARGS", "CUDA_VISIBLE_DEVICES", "NVIDIA_TF32_OVERRIDE", "OMP_NUM_THREADS")
FLAG_GROUPS = ("XLA_", "JAX_", "NCCL_", "TPU_")
PROBE_LIMIT_S = 120.0  # starting JAX takes seconds; what takes longer waits for something that does not come


def capture(platform: str) -> dict[str, Any]:
    """Starts the backend of this process and describes it. `platform`: auto, cpu, gpu or tpu."""
    import jax

    from jaxbench.machine import cores, start

    if platform != "auto":
        start.require(platform)
    devices = jax.local_devices()
    return {
        "platform": devices[0].platform,
        "device_kind": devices[0].device_kind,
        "devices": len(devices),
        "processes": jax.process_count(),
        "device_kinds": sorted({device.device_kind for device in devices}),
        "platform_version": " ".join(devices[0].client.platform_version.split()),
        "cores": cores.available_cores(),
        "cpu_quota": cores.quota(),
        "affinity": hasattr(os, "sched_setaffinity"),
        "cpu_model": _cpu_model(),
        "memory_bytes": _memory_bytes(),
        "device_memory_bytes": _device_memory_bytes(devices[0]),
        "cache_bytes": cores.last_level_cache_bytes(),
        "os": os_platform.platform(),
        "python": os_platform.python_version(),
        "versions": versions(),
        "environment": {k: v for k, v in os.environ.items() if k in FLAGS or k.startswith(FLAG_GROUPS)},
        "source_sha256": source.HERE["sha256"],
        "git": git_state(Path(__file__).resolve().parents[2]),
    }


def versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    for distribution in metadata.distributions():
        if distribution.name.lower().startswith(PLUGINS):
            found[distribution.name.lower()] = distribution.version
    return dict(sorted(found.items()))


def git_state(folder: Path) -> dict[str, Any]:
    """The commit of the checkout this package runs from; empty for an installed wheel."""
    if not (folder / ".git").exists():
        return {}
    try:
        commit = _git(folder, "rev-parse", "HEAD")
        return {"commit": commit, "dirty": bool(_git(folder, "status", "--porcelain"))}
    except (OSError, subprocess.CalledProcessError):
        return {}


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, text=True, timeout=30)
    return done.stdout.strip()


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return os_platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")


def _device_memory_bytes(device: Any) -> int | None:
    """What one accelerator lets JAX use; None where it does not say (a CPU)."""
    stats = device.memory_stats() or {}
    return stats.get("bytes_limit")


def _memory_bytes(cgroup: Path = Path("/sys/fs/cgroup")) -> int | None:
    """What the machine has, or what a container may use of it."""
    found = []
    for limit in (cgroup / "memory.max", cgroup / "memory" / "memory.limit_in_bytes"):
        try:
            found.append(int(limit.read_text()))
        except (OSError, ValueError):  # no such file, or "max"
            pass
    try:
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (ValueError, OSError, AttributeError):
        pass
    return min(found, default=None)


@functools.cache
def probe(platform: str) -> dict[str, Any]:
    """Asks a child process for `capture(platform)`.

    Raises:
      UserError: the platform is absent, or JAX cannot start here, or does not in PROBE_LIMIT_S; the message says which.
    """
    command, quiet = [sys.executable, "-P", "-m", __name__, platform], {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=quiet, timeout=PROBE_LIMIT_S)
    except subprocess.TimeoutExpired as error:
        raise UserError(
            f"JAX did not say within {PROBE_LIMIT_S:.0f} s which devices are here: on one host of a TPU slice it waits "
            "for the others, so start this on every host at once by a launcher, or give this host's chips to it alone "
            "(TPU_PROCESS_BOUNDS=1,1,1 with TPU_CHIPS_PER_PROCESS_BOUNDS)."
        ) from error
    lines = done.stdout.splitlines()
    answer = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}
    if "source" in answer:
        source.require_same(answer.pop("source"))
    if "error" in answer:
        raise UserError(answer["error"])
    if done.returncode or not answer:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise UserError(f"JAX does not start on this machine ({last}).")
    return answer


if __name__ == "__main__":
    try:
        found = capture(sys.argv[1])
    except UserError as error:
        found = {"error": str(error)}
    sys.stdout.write(json.dumps({**found, "source": source.HERE}) + "\n")
    sys.exit("error" in found)
