# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The environment of a result: machine, versions, flags, devices, cores and source.

It runs as a child process, because a backend in the parent would take the memory of an accelerator from the workers.
Its "identity" distinguishes machines with the same name: every processor of a cloud may be called "AMD EPYC".
`records/identity.py` compares them. No jax, except in the child.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import platform as os_platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path

from jaxbench.errors import UserError
from jaxbench.machine import cores, cpu_quota, source
from jaxbench.records.documents import JsonObject
from jaxbench.records.manifest import Git, Machine

PACKAGES = ("jaxbench", "jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "ml-collections", "numpy", "absl-py")
PLUGINS = ("jax-cuda", "jax-rocm", "libtpu", "nvidia-nccl", "nvidia-cudnn", "nvidia-cublas")  # prefixes of names
FLAGS = ("NVIDIA_TF32_OVERRIDE", "NPROC", "LD_PRELOAD", "GLIBC_TUNABLES", "TF_ENABLE_ONEDNN_OPTS", "TF_XLA_FLAGS")
FLAG_GROUPS = (
    "XLA_",
    "JAX_",
    "NCCL_",
    "CUDA_",
    "TPU_",
    "LIBTPU_",
    "OMP_",
    "OPENBLAS_",
    "MKL_",
    "KMP_",
    "GOMP_",
    "MALLOC_",
    "MIMALLOC_",
    "TCMALLOC_",
)
KEEPING = ("JAX_COMPILATION_CACHE_", "JAX_PERSISTENT_CACHE_", "JAX_ENABLE_COMPILATION_CACHE")
OF_A_HOOK = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")  # git sets these for hooks, and obeys them in every folder
PROBE_LIMIT_S = 120.0  # JAX starts within seconds, unless it waits for hosts that never come


PROC, CPUS = Path("/proc"), cores.CPUS
# Each library that may multiply reads its number of threads from one of these. Set them before NumPy is imported.
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "BLIS_NUM_THREADS"), "1")
SIDE = 384  # square float32 matrices: about 1 ms, and all three fit in a cache of 2 MiB
BUDGET_S = 0.2
BUSY = 0.1  # share of the core that other processes may use during the measurement
_FIELDS = {  # names in /proc/cpuinfo: x86, else ARM
    "vendor": ("vendor_id", "CPU implementer"),
    "family": ("cpu family", "CPU architecture"),
    "model": ("model", "CPU part"),
    "stepping": ("stepping", "CPU revision"),
}
# The other flags of an x86 processor depend on the kernel and the hypervisor.
_INSTRUCTIONS = re.compile(
    r"(mmx|sse|ssse|3dnow|avx|amx|fma|f16c|bmi|abm|adx|aes|vaes|sha|pclmul|vpclmul|gfni|popcnt|movbe|cx16|erms|fsrm)"
)


def capture(platform: str) -> Machine:
    """Starts the backend of this process and describes it. platform: auto, cpu, gpu or tpu."""
    import jax

    from jaxbench.machine import start

    found = identity()  # before a backend has threads
    if platform != "auto":
        start.require(platform)
    devices = jax.local_devices()
    if devices[0].platform == "gpu" and (ids := _gpu_ids()):
        found["gpus"] = ids
    return {
        "platform": devices[0].platform,
        "device_kind": devices[0].device_kind,
        "devices": len(devices),
        "processes": jax.process_count(),
        "device_kinds": sorted({device.device_kind for device in devices}),
        "platform_version": " ".join(devices[0].client.platform_version.split()),
        "cores": cores.available_cores(),
        "cpu_quota": cpu_quota.limit(),
        "allowed_cpus": len(cores.affinity()),
        "cpus": os.cpu_count() or 1,
        "affinity": hasattr(os, "sched_setaffinity"),
        "cpu_model": _cpu_model(),
        "identity": found,
        "memory_bytes": _memory_bytes(),
        "device_memory_bytes": (devices[0].memory_stats() or {}).get("bytes_limit"),  # None: a CPU reports nothing
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
    chosen -= {name for name in chosen if name.startswith(KEEPING)}  # a program is the same, compiled or loaded
    return {name: os.environ[name] for name in sorted(chosen)}


@functools.cache
def versions() -> dict[str, str]:
    installed = {each.name.lower(): each.version for each in metadata.distributions() if each.name}
    plugins = {name: version for name, version in installed.items() if name.startswith(PLUGINS)}
    return dict(sorted({**{name: _installed_version(name) for name in PACKAGES}, **plugins}.items()))


def _installed_version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def git_state(folder: Path) -> Git:
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


def _gpu_ids() -> list[str]:
    """The ids that NVIDIA's driver gives to the GPUs of this process; [] without its tool. They name the board."""
    command = ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"]
    try:
        answer = subprocess.run(command, check=True, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return []
    return sorted(answer.stdout.split())


def _cpu_model() -> str:
    facts = _cpuinfo(PROC / "cpuinfo", 0)
    return facts.get("model name", "") if facts else os_platform.processor()


def _memory_bytes(cgroup: Path = Path("/sys/fs/cgroup")) -> int | None:
    """The memory of the machine, or the limit of the container."""
    sizes = []
    for limit in (cgroup / "memory.max", cgroup / "memory" / "memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):  # no such file, or "max"
            sizes.append(int(limit.read_text()))
    with contextlib.suppress(ValueError, OSError, AttributeError):
        sizes.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min(sizes, default=None)


def begin_probe(platform: str) -> None:
    """Starts the child process of a later `probe(platform)`, unless it would share its core with this process."""
    if cores.available_cores() > 1 and not _begun and not probe.cache_info().currsize:
        _begun[platform] = _probing(platform)


_begun: dict[str, subprocess.Popen[str]] = {}  # by platform


def _probing(
    platform: str, python: str = sys.executable, copy: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """Starts a child that describes the machine, because probing starts accelerators."""
    command = [python, "-P", "-m", __name__, platform]
    # One thread, because the child times a product on one core.
    child = {**os.environ, **ONE_THREAD, **(copy or {}), "TF_CPP_MIN_LOG_LEVEL": "2"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=child)


@functools.cache
def probe(platform: str) -> Machine:
    """Asks a child process for `capture(platform)`, and adds the `environment` of this process.

    Raises:
      UserError: the platform is absent, or JAX does not start within PROBE_LIMIT_S.
    """
    child = _begun.pop(platform, None) or _probing(platform)
    return _answer_of(child, source.HERE)


def probe_with(platform: str, python: Path, copy: dict[str, str]) -> Machine:
    """As `probe`, with the packages of another Python. copy: of this package, as in `source.of`."""
    return _answer_of(_probing(platform, str(python), source.environment(copy)), copy)


def _answer_of(child: subprocess.Popen[str], copy: dict[str, str]) -> Machine:
    try:
        output, errors = child.communicate(timeout=PROBE_LIMIT_S)
    except subprocess.TimeoutExpired as error:
        child.kill()
        child.communicate()
        raise UserError(
            f"JAX did not report its devices within {PROBE_LIMIT_S:.0f} s. On one host of a TPU slice it waits for the "
            "other hosts: start this on all hosts together with a launcher, or limit it to this host's chips "
            "(TPU_PROCESS_BOUNDS=1,1,1 with TPU_CHIPS_PER_PROCESS_BOUNDS)."
        ) from error
    # Plug-ins may print to stdout, so only the last line counts.
    lines = output.splitlines()
    answer = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}
    if "source" in answer:
        source.require_same(answer.pop("source"), copy)
    if "error" in answer:
        raise UserError(answer["error"])
    if child.returncode or not answer:
        for name in ("JAX_PLATFORMS", "JAX_PLATFORM_NAME"):
            if asked := os.environ.get(name):
                raise UserError(f"{name}={asked} is set, and JAX cannot start it here: unset it, or install a driver.")
        last = (errors.strip().splitlines() or ["no output"])[-1]
        raise UserError(f"JAX does not start on this machine ({last}).")
    return {**answer, "environment": environment()}


def identity() -> JsonObject:
    """The facts of this machine, the kernel, and the speed at which one core multiplies. None: unknown."""
    return {**processor(), "kernel": os_platform.release() or None, **reference_product()}


def processor(proc: Path = PROC, cpus: Path = CPUS) -> JsonObject:
    """Vendor, family, model, stepping, instruction sets, caches and nominal frequency of the first usable core."""
    core = next(iter(cores.physical_cores(topology=cpus)), 0)
    facts = _cpuinfo(proc / "cpuinfo", core)
    known = {name: next((facts[field] for field in fields if field in facts), None) for name, fields in _FIELDS.items()}
    flags = facts.get("flags", "").split()
    found = sorted(flag for flag in flags if _INSTRUCTIONS.match(flag)) or sorted(facts.get("Features", "").split())
    return {
        **known,
        "instruction_sets": found or None,
        "caches": _caches(cpus / f"cpu{core}" / "cache"),
        "nominal_hz": _nominal_hz(cpus / f"cpu{core}" / "cpufreq", facts),
    }


def _cpuinfo(path: Path, core: int) -> dict[str, str]:
    """The fields of one core; {} without such a file. Fields before the first core count for all."""
    facts: dict[str, str] = {}
    with contextlib.suppress(OSError):
        for line in path.read_text().splitlines():
            name, _, value = (part.strip() for part in line.partition(":"))
            if name == "processor" and value.isdigit() and int(value) > core:
                break
            facts[name] = value
    return facts


def _caches(folder: Path) -> str | None:
    """The caches of one core, "L1 Data 32K, L1 Instruction 32K, L2 Unified 1024K"; None if not reported."""
    found = []
    with contextlib.suppress(OSError):
        for index in sorted(folder.glob("index*")):
            level, sort, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
            found.append(f"L{level} {sort} {size}")
    return ", ".join(found) or None


def _nominal_hz(folder: Path, facts: dict[str, str]) -> float | None:
    """The nominal frequency of the processor, not the current one.

    A virtual machine has no cpufreq. There the BogoMIPS of an x86 processor are twice the rate of its time stamp
    counter.
    """
    for name in ("base_frequency", "cpuinfo_max_freq"):  # in kHz; only Intel's driver has the first
        with contextlib.suppress(OSError, ValueError):
            return 1e3 * int((folder / name).read_text())
    with contextlib.suppress(ValueError):
        return 1e6 * float(facts.get("bogomips", "")) / 2
    return None


def _multiplication() -> tuple[Callable[[], object], str]:
    """(a function without arguments that computes one reference product, the library that computes it)."""
    import numpy as np

    a, b = np.random.default_rng(0).random((2, SIDE, SIDE), np.float32)
    out = np.empty_like(a)  # reused: a new result for each product would time the allocator, too
    return lambda: np.matmul(a, b, out=out), f"numpy {np.__version__}"


def reference_product(
    multiply: Callable[[], object] | None = None,
    *,
    processor_s: Callable[[], float] = time.process_time,
    wall_s: Callable[[], float] = time.perf_counter,
    taken: Callable[[int], float] | None = None,
) -> JsonObject:
    """`product_s`: the minimum processor time of one float32 product on one core, over as many as fit BUDGET_S.

    None, because the time would be meaningless, if this process cannot be pinned, or if other processes used more than
    BUSY of the core during the measurement. `product_by`: the library that multiplies. Call this in a process with
    ONE_THREAD set for the library.

    taken: core -> the seconds so far that were stolen from it or spent on its other hardware threads, which this
      process's own clocks do not show.
    """
    by = ""
    if multiply is None:
        multiply, by = _multiplication()
    if not hasattr(os, "sched_setaffinity"):
        return {"product_s": None, "product_by": by}
    taken = _taken if taken is None else taken
    allowed, core = os.sched_getaffinity(0), cores.physical_cores()[0]
    os.sched_setaffinity(0, {core})
    try:
        multiply()  # the first one starts the library and fills the caches
        best, begun, own, others = float("inf"), wall_s(), processor_s(), taken(core)
        while wall_s() - begun < BUDGET_S:
            before = processor_s()
            multiply()
            best = min(best, processor_s() - before)
        wall, used, lost = wall_s() - begun, processor_s() - own, taken(core) - others
    finally:
        os.sched_setaffinity(0, allowed)
    # Wall time without processor time of this process went to others on the core; `lost` went to the hypervisor or to
    # other hardware threads.
    quiet = wall - used <= BUSY * wall and lost <= BUSY * wall
    return {"product_s": best if quiet else None, "product_by": by}


def _taken(core: int, stat: Path = cores.STAT, cpus: Path = CPUS) -> float:
    """Seconds, since the start of the system, that were stolen from a core or spent on its other hardware threads."""
    times = cores.cpu_times(stat)
    shared = [times[cpu] for cpu in cores.siblings(core, cpus) - {core} if cpu in times]
    stolen_s = times[core].steal_s if core in times else 0.0
    return stolen_s + sum(each.busy_s + each.steal_s for each in shared)


if __name__ == "__main__":
    try:
        result: JsonObject = {**capture(sys.argv[1])}
    except UserError as error:
        result = {"error": str(error)}
    sys.stdout.write(json.dumps({**result, "source": source.HERE}) + "\n")
    sys.exit("error" in result)
