# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What the operating system shows: cores, their other users and their clock, memory, disk, timer, and accelerators.

Everything is read below `root`, so that a test can fabricate a machine. This file does not import jax, because an
incompatible jax fails on import. A child process imports it.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from packaging.requirements import Requirement
from packaging.version import Version

from jaxbench.command_form import with_extra
from jaxbench.digits import counted
from jaxbench.errors import UserError
from jaxbench.features.doctor.finding import DoctorFinding, Result, State, check, good_if, graded, number, read, worst
from jaxbench.machine import cores, cpu_quota, manifest

ROOT = Path("/")
WATCH_S = 1.0
# (good up to, bad above): the share of CPU time that other programs use, and the share that a hypervisor takes away.
OTHERS, STEAL = (0.05, 0.25), (0.01, 0.05)
THROTTLED_GOOD = 0.01  # good up to this share of the quota's periods in which the container was paused
SLOW = 0.7  # doubtful below this share of the highest clock that the system allows, while one core works
TURBO_ON = {"intel_pstate/no_turbo": 0, "cpufreq/boost": 1}  # by file: the value that means "on"
Times = dict[int, cores.CpuTime]  # by CPU

# (good from, bad below): below 1 GB even the smoke preset has no room for its worker processes.
MEMORY_BYTES, DISK_BYTES = (4e9, 1e9), (2e9, 100e6)
SWAPPED = 0.01  # share of memory that may be swapped out
_UNLIMITED = 2**60  # cgroup v1 writes a number near 2**63 for "no limit"
READINGS = 20_000
TIMER_S = (1e-6, 1e-4)  # (good up to, bad above): the shortest timed blocks last a few milliseconds
_HIDING = ("JAX_PLATFORMS", *(f"{maker}_VISIBLE_DEVICES" for maker in ("CUDA", "ROCR", "HIP", "TPU")))
# The oldest major version of NVIDIA's driver that each plug-in supports (JAX installation guide).
DRIVERS = {"cuda13": 580, "cuda12": 525}
# What to do where JAX sees too few NVIDIA GPUs.
_CUDA = {
    "no driver": "Install NVIDIA's driver, {oldest} or newer, then: {install}.",
    "old": "Update NVIDIA's driver ({driver}) to {oldest} or newer, then: {install}.",
    "plug-in": "Install the plug-in for driver {driver}: {install}.",
    "ask": "Run JAX_PLATFORMS=cuda python -c 'import jax; jax.devices()' in a shell: its error says why.",
}
_EXTRA = re.compile(r'(extra == "(tpu|cuda1\d|rocm\d+-local)")?')  # the markers of the jax requirements to check


def sleep() -> float:
    """Sleeps for WATCH_S. Returns the seconds that have passed."""
    start = time.perf_counter()
    time.sleep(WATCH_S)
    return time.perf_counter() - start


def cpus(root: Path = ROOT) -> Path:
    return root / "sys" / "devices" / "system" / "cpu"


def cpu_times(root: Path = ROOT) -> Times:
    return cores.cpu_times(root / "proc" / "stat")


def affinity() -> set[int] | None:
    """The logical CPUs this process may run on; None where the system does not report them (macOS)."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None


def other_load(
    root: Path = ROOT, allowed: set[int] | None = None, watch: Callable[[], float] = sleep
) -> list[DoctorFinding]:
    """Watches other load for a second. Call it first: later, this process's own work is in the counters."""
    before, wall_s, after = cpu_times(root), watch(), cpu_times(root)
    boot_s = float((read(root / "proc" / "uptime") or "nan").split()[0])  # NaN: the share since boot is unknown
    return [others(before, after, wall_s, allowed or affinity()), steal(before, after, wall_s, boot_s)]


@check(
    "other load",
    "other load",
    says="Other programs keep {busy_cpus:.2f} of {cpus} CPUs busy, {here:.2f} of our {ours}.",
    advice="Stop other programs (see top), which cause scatter and drift.",
)
def others(before: Times, after: Times, wall_s: float, allowed: set[int] | None, own_s: float = 0.0) -> Result | None:
    """The CPU time used between two readings, minus `own_s`: the seconds that doctor's own processes used.

    Other load on our CPUs is lost time. On other CPUs it costs memory bandwidth, cache and clock, so it is at most
    doubtful.
    """
    busy_s = {cpu: after[cpu].busy_s - before[cpu].busy_s for cpu in after if cpu in before}
    ours = [seconds for cpu, seconds in busy_s.items() if allowed is None or cpu in allowed]
    if not ours:
        return None
    total, here = (max(0.0, sum(seconds) - own_s) / wall_s for seconds in (busy_s.values(), ours))
    numbers = {"busy_cpus": total, "busy_share": total / len(busy_s), "our_busy_share": here / len(ours)}
    state = worst([graded(here / len(ours), *OTHERS), good_if(total / len(busy_s) <= OTHERS[0])])
    return Result(state, numbers, {"cpus": len(busy_s), "here": here, "ours": len(ours)})


@check(
    "steal",
    "what a hypervisor takes",
    says="The hypervisor takes {now:.1f} % of CPU time now, {ever:.2f} % since boot.",
    advice="Neighbours on the host compete: use a dedicated host.",
)
def steal(before: Times, after: Times, wall_s: float, boot_s: float) -> Result | None:
    """The stolen share now and since boot, because a neighbour on the host may pause during the watched second."""
    if not any(time.steal_s for time in after.values()):  # a hypervisor that reports steal has taken some since boot
        return None
    taken, since_boot = ([times[cpu].steal_s for cpu in after if cpu in times] for times in (before, after))
    now, ever = (sum(since_boot) - sum(taken)) / wall_s / len(after), sum(since_boot) / boot_s / len(after)
    numbers = {"steal_share": now, "steal_share_since_boot": ever}
    return Result(
        worst(graded(share, *STEAL) for share in (now, ever)), numbers, {"now": 100 * now, "ever": 100 * ever}
    )


def processor(root: Path = ROOT, allowed: set[int] | None = None) -> list[DoctorFinding]:
    """The findings on cores, quota and clock. Call it right after all cores worked: an idle core's clock is low."""
    allowed = affinity() if allowed is None else allowed
    return [visible(root, allowed), quota(root, allowed), clock(root, allowed)]


@check(
    "cores",
    "which CPUs this process may use, so it cannot be pinned: expect more noise",
    says="This process may use {physical_cores} physical core{several} ({allowed_cpus} of {cpus} logical CPUs by its "
    "affinity mask){shared}.",
    advice="Grant more, and whole cores (docker --cpuset-cpus, taskset, srun -c): one core shows no scaling.",
)
def visible(root: Path, allowed: set[int] | None) -> Result | None:
    """How many physical cores this process may use, and whether CPUs outside its affinity mask share them."""
    if allowed is None:
        return None
    # By "topology", which CPUs that are offline do not have.
    total = len(list(cpus(root).glob("cpu[0-9]*/topology"))) or os.cpu_count() or 1
    siblings = {cores.siblings(cpu, cpus(root)) for cpu in allowed}
    physical, outside = len(siblings), len(frozenset().union(*siblings) - allowed)
    numbers = {"cpus": total, "allowed_cpus": len(allowed), "physical_cores": physical, "outside_cpus": outside}
    shared = f", and {outside} others share a core with ours" if outside else ""
    return Result(good_if(physical > 1 and not outside), numbers, {"several": "s" * (physical > 1), "shared": shared})


@check(
    "quota",
    "a CPU quota: it has no control groups",
    says="The container may use the CPU time of {cores}{paused}.",
    advice="A quota pauses all cores together: grant whole cores (docker --cpuset-cpus) instead of --cpus.",
    cases={"none": ("No CPU quota is visible from here.", "")},
)
def quota(root: Path, allowed: set[int] | None) -> Result | None:
    """The container's CPU quota. Once it is used up, every process pauses for the rest of the period (100 ms)."""
    cgroup = root / "sys" / "fs" / "cgroup"
    found = cpu_quota.read(cgroup, root / "proc" / "self" / "cgroup")
    if found is None:
        return Result("good", {}, case="none") if cgroup.is_dir() else None
    limit, share = found.cores, found.throttled_share
    paused = "" if share is None else f", and was paused in {100 * share:.1f} % of its periods"
    state = good_if(share is not None and share <= THROTTLED_GOOD and limit >= len(allowed or ()))
    numbers = {"quota_cores": limit, **({} if share is None else {"throttled_share": share})}
    return Result(state, numbers, {"paused": paused, "cores": counted(limit, "core")})


@check(
    "clock",
    "the clock of its cores (usual in virtual machines)",
    says="Clock: {parts}.",
    advice=f"Fix the clock: cpupower frequency-set -g performance, no turbo ({', '.join(TURBO_ON)}), cooling.",
)
def clock(root: Path, allowed: set[int] | None) -> Result | None:
    """The governor, turbo, and the clock of the fastest core right after work. With turbo, one busy core has a higher
    clock than many busy cores, so the base of a scaling curve is too fast."""
    folders = [cpus(root) / f"cpu{cpu}" / "cpufreq" for cpu in sorted(allowed or {0})]
    files = ("scaling_cur_freq", "cpuinfo_max_freq", "scaling_max_freq")  # kHz
    now, top, cap = (max(number(folder / name) or 0 for folder in folders) for name in files)
    governors = sorted({text for folder in folders if (text := read(folder / "scaling_governor"))})
    switches = {on == number(cpus(root) / name) for name, on in TURBO_ON.items() if read(cpus(root) / name)}
    parts = [(governors == ["performance"], f"the governor is {', '.join(governors)}")] if governors else []
    parts += [(not any(switches), f"turbo is {'on' if any(switches) else 'off'}")] if switches else []
    if now and top:
        speed = f"a working core runs at {now / 1e6:.2f} of at most {top / 1e6:.2f} GHz"
        parts.append((now >= SLOW * min(top, cap or top), speed))
    numbers = {"clock_hz": 1e3 * now, "max_clock_hz": 1e3 * top, "cap_hz": 1e3 * cap} if now and top else {}
    facts = {"parts": ", ".join(text for _, text in parts)}
    return Result(good_if(all(good for good, _ in parts)), numbers, facts) if parts else None


def throttles(root: Path = ROOT) -> int | None:
    """How often heat has slowed the cores since boot, summed over all counters; None without counters."""
    counts = [number(path) for path in cpus(root).glob("cpu[0-9]*/thermal_throttle/*_throttle_count")]
    return sum(count or 0 for count in counts) if counts else None


@check(
    "heat",
    "how often heat slows it",
    says="Heat slowed the cores {throttles} times during this examination, {throttles_since_boot} times since boot.",
    advice="Improve the cooling, or lower the clock until this stops.",
)
def heat(before: int | None, after: int | None) -> Result | None:
    """Whether heat slowed the machine during the examination."""
    if before is None or after is None:
        return None
    state: State = "bad" if after > before else good_if(not after)
    return Result(state, {"throttles": after - before, "throttles_since_boot": after})


def resources(folder: Path, root: Path = ROOT) -> list[DoctorFinding]:
    """The findings on memory, disk and timer. folder: where results would be written; it need not exist."""
    existing = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.is_dir())
    readings = np.array([time.perf_counter() for _ in range(READINGS)])
    return [memory(root), room(shutil.disk_usage(existing).free), timer(readings, root)]


def container(root: Path) -> tuple[int, int] | None:
    """(limit, in use) of the container's memory in bytes, from cgroup v2, else v1; None if there is no limit."""
    cgroup = root / "sys" / "fs" / "cgroup"
    for folder, limit, usage in ((cgroup, "max", "current"), (cgroup / "memory", "limit_in_bytes", "usage_in_bytes")):
        limit_bytes = number(folder / f"memory.{limit}")
        if limit_bytes is not None and limit_bytes < _UNLIMITED:
            return limit_bytes, number(folder / f"memory.{usage}") or 0
    return None


@check(
    "memory",
    "how much memory is free",
    says="{free:.1f} of {total:.1f} GB of {owner} are available, {swapped:.1f} are swapped out.",
    advice="Free memory, or use small models and batches (--preset=smoke): each worker process needs half a GB.",
)
def memory(root: Path) -> Result | None:
    """The available memory (the kernel's estimate, or less in a container), and how much is swapped out."""
    lines = (line.split() for line in read(root / "proc" / "meminfo").splitlines())
    info = {words[0].rstrip(":"): 1024 * int(words[1]) for words in lines if words[2:] == ["kB"]}
    if not {"MemTotal", "MemAvailable"} <= info.keys():
        return None
    total, free, limit, owner = info["MemTotal"], info["MemAvailable"], container(root), "memory"
    swapped = info.get("SwapTotal", 0) - info.get("SwapFree", 0)
    state = good_if(swapped <= SWAPPED * total)
    if limit is not None and limit[0] < total:
        # A full container kills a process although the machine has memory.
        total, free, owner = limit[0], min(free, max(0, limit[0] - limit[1])), "the container's memory"
    numbers = {"memory_bytes": total, "available_memory_bytes": free, "swap_used_bytes": swapped}
    facts = {"free": free / 1e9, "total": total / 1e9, "owner": owner, "swapped": swapped / 1e9}
    return Result(worst([state, graded(free, *MEMORY_BYTES)]), numbers, facts)


@check(
    "disk",
    says="{free:.1f} GB are free where results are written.",
    advice="Free disk space: a run writes up to 100 MB, and a training its checkpoints.",
)
def room(free: int) -> Result:
    return Result(graded(free, *DISK_BYTES), {"free_bytes": float(free)}, {"free": free / 1e9})


@check(
    "timer",
    says="The clock{source} moves in steps of {step:.0f} ns, and a reading costs {cost:.0f} ns.",
    advice="Choose another clock source (clocksource=tsc if the processor has a stable one), or longer blocks.",
)
def timer(readings: np.ndarray, root: Path = ROOT) -> Result:
    """The clock's smallest nonzero step, and the cost of a reading: the median difference of consecutive readings.

    readings: (n,) seconds, taken as fast as possible. root: the name of the clock source is read below it.
    """
    steps = np.diff(readings)
    step, cost = float(steps[steps > 0].min()), float(np.median(steps))
    source = read(root / "sys" / "devices" / "system" / "clocksource" / "clocksource0" / "current_clocksource")
    facts = {"source": f" ({source})" if source else "", "step": 1e9 * step, "cost": 1e9 * cost}
    return Result(graded(max(step, cost), *TIMER_S), {"timer_step_s": step, "timer_reading_s": cost}, facts)


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


def read_host(root: Path = ROOT) -> Host:
    """Reads system files below `root`. It starts no process."""
    text = read(root / "proc" / "driver" / "nvidia" / "version")
    driver = re.search(r"Kernel Module\s+(?:for \S+\s+)?(\d[\d.]*)", text)
    cards = [
        device
        for device in (root / "sys" / "bus" / "pci" / "devices").glob("*")
        if read(device / "vendor") == "0x10de" and read(device / "class").startswith("0x03")  # NVIDIA's, display or 3D
    ]
    return Host(
        nvidia_driver=driver.group(1) if driver else "",
        # Without a driver there are no device files, and a container may not show the bus.
        nvidia=max(len(cards), len(list((root / "dev").glob("nvidia[0-9]*")))),
        amd=(root / "dev" / "kfd").exists(),
        tpu=len(list((root / "dev").glob("accel[0-9]*"))),
    )


def probe_jax() -> tuple[Mapping[str, Any] | None, DoctorFinding]:
    """(the manifest of this machine as a run would record it, or None; the finding whether JAX starts)."""
    try:
        facts = manifest.probe("auto")
    except UserError as error:
        advice = "Try it by hand: python -c 'import jax; print(jax.devices())'."
        return None, DoctorFinding("JAX", "bad", str(error), advice)
    message = f"JAX sees {facts['platform']}: {facts['devices']} x {facts['device_kind']}."
    return facts, DoctorFinding("JAX", "good", message, "", {"devices": facts["devices"]})


def software(
    facts: Mapping[str, Any] | None, packages: Mapping[str, str], host: Host | None = None
) -> list[DoctorFinding]:
    """The findings on versions, driver and accelerators.

    facts: from `probe_jax`. packages: versions by name, from `manifest.versions`. host: this machine by default.
    """
    host = read_host() if host is None else host
    findings = [versions(packages), *([driver(host, packages)] if host.nvidia or host.nvidia_driver else [])]
    return [*findings, *([accelerators(host, facts["platform"], facts["devices"], packages)] if facts else [])]


@check(
    "versions",
    "the requirements of jax",
    says="jax {jax} is incompatible: {wrong}.",
    good="jax {jax} and jaxlib {jaxlib} are compatible.",
    advice="Install {right}.",
    cases={
        "missing": (
            "{missing} not installed.",
            "Install the project again, in a new environment (make list VENV=a-new-folder, in a clone).",
        )
    },
)
def versions(packages: Mapping[str, str], lines: Iterable[str] | None = None) -> Result | None:
    """Compares the installed packages with the requirements of jax. lines: those requirements; by default those of the
    installed jax. An incompatible jaxlib fails on import, and jax skips an incompatible plug-in with a warning."""
    missing = [name for name in ("jax", "jaxlib") if packages.get(name, "not installed") == "not installed"]
    if missing:
        return Result("bad", {}, {"missing": " and ".join(missing)}, case="missing")
    requirements = [Requirement(line) for line in (metadata.requires("jax") or [] if lines is None else lines)]
    wrong = {
        f"{each.name} is {packages[each.name]}": f"'{each.name}{each.specifier}'"
        for each in requirements
        if each.name in packages
        and _EXTRA.fullmatch(str(each.marker or ""))
        and not each.specifier.contains(packages[each.name], prereleases=True)
    }
    if not requirements:  # nothing was compared
        return None
    facts = {"jax": packages["jax"], "jaxlib": packages["jaxlib"], "wrong": ", ".join(wrong)}
    return Result("bad" if wrong else "good", {}, {**facts, "right": " ".join(wrong.values())})


@check(
    "NVIDIA driver",
    says="NVIDIA's driver is {version}; the plug-in {extra} needs {oldest} or newer.",
    good="NVIDIA's driver is {version}.",
    advice="{update}",
    cases={
        "none": (
            "This machine has an NVIDIA GPU but no loaded driver.",
            f"Install {DRIVERS['cuda13']} or newer.",
        )
    },
)
def driver(host: Host, packages: Mapping[str, str]) -> Result:
    """Whether NVIDIA's driver is loaded, and new enough for the installed plug-in."""
    if not host.nvidia_driver:
        return Result("doubtful", {}, case="none")
    usable, facts = extra_for(host.nvidia_driver), {"version": host.nvidia_driver}
    for extra, oldest in DRIVERS.items():
        if f"jax-{extra}-plugin" in packages and Version(host.nvidia_driver).major < oldest:
            update = f"Update the driver, or install for it: {with_extra(usable)}." if usable else "Update the driver."
            return Result("bad", {}, {**facts, "extra": extra, "oldest": oldest, "update": update})
    return Result("good", {}, facts)


def extra_for(version: str) -> str:
    """The newest extra that a driver supports; "" if it is too old for all. version: such as "580.65.06"."""
    return next((extra for extra, oldest in DRIVERS.items() if Version(version).major >= oldest), "")


@check(
    "accelerators",
    says="This machine has {names}, but JAX sees {seen}.",
    good="JAX sees every accelerator of this machine.",
    advice="{advice}",
)
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
        return Result("good", {})
    hidden = [f"{key}={environment[key]!r}" for key in _HIDING if key in environment]
    advice = f"{' and '.join(hidden)} may hide it: unset." if hidden else missing[0][1]
    names = " and ".join(name for name, _ in missing)
    facts = {"names": names, "seen": devices if platform != "cpu" else "none", "advice": advice}
    return Result("doubtful", {"shown": host.nvidia + host.amd + host.tpu}, facts)


def _cuda_advice(host: Host, packages: Mapping[str, str]) -> str:
    extra, case = extra_for(host.nvidia_driver) if host.nvidia_driver else "cuda13", "plug-in"
    if not host.nvidia_driver:
        case = "no driver"
    elif not extra:
        extra, case = "cuda12", "old"
    elif any(name.startswith("jax-cuda") for name in packages):
        case = "ask"
    facts = {"driver": host.nvidia_driver, "oldest": DRIVERS[extra], "install": with_extra(extra)}
    return _CUDA[case].format(**facts)
