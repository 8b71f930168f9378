# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The environment of a result: machine, versions, flags, devices, cores and source.

It runs as a child process, because a backend in the parent would take the memory of an accelerator from the workers."""

from __future__ import annotations

import contextlib
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
from jaxbench.machine.identity import ONE_THREAD

PACKAGES = ("jaxbench", "jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "ml-collections", "numpy", "absl-py")
PLUGINS = ("jax-cuda", "jax-rocm", "libtpu", "nvidia-nccl", "nvidia-cudnn", "nvidia-cublas")  # prefixes of names
FLAGS = ("NVIDIA_TF32_OVERRIDE", "NPROC", "LD_PRELOAD", "GLIBC_TUNABLES", "TF_ENABLE_ONEDNN_OPTS", "TF_XLA_FLAGS")
FLAG_GROUPS = (
    "XLA_", "JAX_", "NCCL_", "CUDA_", "TPU_", "LIBTPU_", "MALLOC_", "OMP_", "OPENBLAS_", "MKL_", "KMP_", "GOMP_",
)  # fmt: skip
OF_A_HOOK = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")  # git sets these for hooks, and obeys them in every folder
PROBE_LIMIT_S = 120.0  # JAX starts within seconds, unless it waits for hosts that never come


def capture(platform: str) -> dict[str, Any]:
    """Starts the backend of this process and describes it. platform: auto, cpu, gpu or tpu."""
    import jax

    from jaxbench.machine import cores, identity, start

    found = identity.identity()  # before a backend has threads
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
        "identity": found,
        "memory_bytes": _memory_bytes(),
        "device_memory_bytes": _device_memory_bytes(devices[0]),
        "cache_bytes": cores.last_level_cache_bytes(),
        "os": os_platform.platform(),
        "python": os_platform.python_version(),
        "versions": versions(),
        "source_sha256": source.HERE["sha256"],
        "git": git_state(Path(__file__).resolve().parents[2]),
    }


def environment() -> dict[str, str]:
    """The variables of this process that change what JAX, its compilers and its libraries do."""
    chosen = {name for name in os.environ if name in FLAGS or name.startswith(FLAG_GROUPS)}
    return {name: os.environ[name] for name in sorted(chosen)}


def versions() -> dict[str, str]:
    installed = {each.name.lower(): each.version for each in metadata.distributions() if each.name}
    plugins = {name: version for name, version in installed.items() if name.startswith(PLUGINS)}
    return dict(sorted({**{name: _version(name) for name in PACKAGES}, **plugins}.items()))


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def git_state(folder: Path) -> dict[str, Any]:
    """The commit of the checkout this package runs from; empty for an installed wheel."""
    if not (folder / ".git").exists():
        return {}
    try:
        commit = git(folder, "rev-parse", "HEAD")
        return {"commit": commit, "dirty": bool(git(folder, "status", "--porcelain"))}
    except (OSError, subprocess.CalledProcessError):
        return {}


def git(folder: Path, *words: str) -> str:
    """The output of git for the repository of `folder`, even under a git hook. Raises CalledProcessError."""
    child = {name: value for name, value in os.environ.items() if name not in OF_A_HOOK}
    command = ["git", "-C", str(folder), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=30, env=child).stdout.strip()


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return os_platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")


def _device_memory_bytes(device: Any) -> int | None:
    """The memory of one accelerator that JAX may use; None if it is not reported, as for a CPU."""
    return (device.memory_stats() or {}).get("bytes_limit")


def _memory_bytes(cgroup: Path = Path("/sys/fs/cgroup")) -> int | None:
    """The memory of the machine, or the limit of the container."""
    sizes = []
    for limit in (cgroup / "memory.max", cgroup / "memory" / "memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):  # no such file, or "max"
            sizes.append(int(limit.read_text()))
    with contextlib.suppress(ValueError, OSError, AttributeError):
        sizes.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min(sizes, default=None)


@functools.cache
def probe(platform: str) -> dict[str, Any]:
    """Asks a child process for `capture(platform)`, and adds the `environment` of this process.

    Raises:
      UserError: the platform is absent, or JAX does not start within PROBE_LIMIT_S.
    """
    command = [sys.executable, "-P", "-m", __name__, platform]
    child = {**os.environ, **ONE_THREAD, "TF_CPP_MIN_LOG_LEVEL": "2"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=child, timeout=PROBE_LIMIT_S)
    except subprocess.TimeoutExpired as error:
        raise UserError(
            f"JAX did not report its devices within {PROBE_LIMIT_S:.0f} s. On one host of a TPU slice it waits for the "
            "other hosts: start this on all hosts together with a launcher, or limit it to this host's chips "
            "(TPU_PROCESS_BOUNDS=1,1,1 with TPU_CHIPS_PER_PROCESS_BOUNDS)."
        ) from error
    # Plug-ins may print to stdout, so only the last line counts.
    lines = done.stdout.splitlines()
    answer = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}
    if "source" in answer:
        source.require_same(answer.pop("source"))
    if "error" in answer:
        raise UserError(answer["error"])
    if done.returncode or not answer:
        for name in ("JAX_PLATFORMS", "JAX_PLATFORM_NAME"):
            if asked := os.environ.get(name):
                raise UserError(f"{name}={asked} is set, and JAX cannot start it here: unset it, or install a driver.")
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise UserError(f"JAX does not start on this machine ({last}).")
    return {**answer, "environment": environment()}


if __name__ == "__main__":
    try:
        result = capture(sys.argv[1])
    except UserError as error:
        result = {"error": str(error)}
    sys.stdout.write(json.dumps({**result, "source": source.HERE}) + "\n")
    sys.exit("error" in result)
