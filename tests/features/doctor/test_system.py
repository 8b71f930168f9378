# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Cores, load, clock, memory, disk, timer, accelerators and versions of fabricated machines."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from features.doctor.fabricated import by_name, machine

from jaxbench.command_form import with_extra
from jaxbench.features.doctor import system
from jaxbench.features.doctor.finding import DoctorFinding
from jaxbench.features.doctor.system import Host
from jaxbench.machine import manifest
from jaxbench.machine.cores import CpuTime

CPU = "sys/devices/system/cpu"
PAIRS = {f"{CPU}/cpu{cpu}/topology/thread_siblings_list": f"{cpu % 2},{cpu % 2 + 2}" for cpu in range(4)}


def test_two_threads_a_core_count_once(tmp_path: Path) -> None:
    root = machine(tmp_path, PAIRS)
    found = by_name(system.processor(root, {0, 1, 2, 3}))
    assert found["cores"].numbers == {"cpus": 4, "allowed_cpus": 4, "physical_cores": 2, "outside_cpus": 0}
    assert found["cores"].state == "good"
    assert "2 physical cores" in found["cores"].message
    found = by_name(system.processor(root, {0, 1}))["cores"]
    assert found.state == "doubtful" and found.numbers["outside_cpus"] == 2 and "2 others share" in found.message
    one = by_name(system.processor(root, {0}))["cores"]
    assert one.state == "doubtful" and "1 physical core " in one.message and one.advice


def test_an_empty_machine_is_unknown_and_nothing_fails(tmp_path: Path) -> None:
    found = by_name(system.processor(tmp_path, {0, 1}))
    assert found["quota"].state == found["clock"].state == "unknown"
    assert system.throttles(tmp_path) is None and system.heat(None, None).state == "unknown"
    assert [f.state for f in system.other_load(tmp_path, watch=lambda: 1.0)] == ["unknown", "unknown"]


VERSION_1 = {"cpu/cpu.cfs_quota_us": 50000, "cpu/cpu.cfs_period_us": 100000, "cpu/cpu.stat": "nr_periods 0"}


def throttled(of_1000: int) -> dict[str, object]:
    return {"cpu.max": "200000 100000", "cpu.stat": f"nr_periods 1000\nnr_throttled {of_1000}"}


@pytest.mark.parametrize(
    ("files", "state", "numbers"),
    [
        ({"cpu.max": "max 100000"}, "good", {}),
        ({"cpu.max": "150000 100000"}, "doubtful", {"quota_cores": 1.5}),
        (throttled(300), "doubtful", {"quota_cores": 2.0, "throttled_share": 0.3}),
        (throttled(1), "good", {"quota_cores": 2.0, "throttled_share": 0.001}),
        (VERSION_1, "doubtful", {"quota_cores": 0.5}),
    ],
)
def test_quota(files: dict[str, object], state: str, numbers: dict[str, float], tmp_path: Path) -> None:
    root = machine(tmp_path, {f"sys/fs/cgroup/{name}": content for name, content in files.items()})
    found = system.quota(root, {0, 1})
    assert found.state == state and found.numbers == numbers and bool(found.advice) == (state != "good")


def stat(**ticks: tuple[int, int, int]) -> str:
    """/proc/stat with (busy, idle, steal) of each CPU."""
    lines = [f"{cpu} {busy} 0 0 {idle} 0 0 0 {steal} 0 0" for cpu, (busy, idle, steal) in ticks.items()]
    return "\n".join(["cpu  1 2 3 4 5 6 7 8 9 10", *lines, "intr 5"])


def watch(root: Path, allowed: set[int], **ticks: tuple[int, int, int]) -> dict[str, DoctorFinding]:
    """The findings for a machine with these CPU ticks, of 10 ms, in one observed second."""
    machine(root, {"proc/stat": stat(**dict.fromkeys(ticks, (5_000, 45_000, 0))), "proc/uptime": "500.0 900.0"})
    after = {cpu: (5_000 + busy, 45_000 + idle, steal) for cpu, (busy, idle, steal) in ticks.items()}
    assert os.sysconf("SC_CLK_TCK") == 100

    def second() -> float:
        machine(root, {"proc/stat": stat(**after)})
        return 1.0

    return by_name(system.other_load(root, allowed, second))


@pytest.mark.parametrize(
    ("busy", "steal", "states"),
    [
        (1, 0, ["good", "unknown"]),
        (20, 0, ["doubtful", "unknown"]),
        (90, 0, ["bad", "unknown"]),
        (0, 20, ["good", "bad"]),
    ],
)
def test_other_load(busy: int, steal: int, states: list[str], tmp_path: Path) -> None:
    each = (busy, 100 - busy - steal, steal)
    found = watch(tmp_path, {0, 1}, cpu0=each, cpu1=each)
    assert [finding.state for finding in found.values()] == states
    shares = {"busy_share": busy / 100, "our_busy_share": busy / 100}
    assert found["other load"].numbers == pytest.approx({"busy_cpus": 2 * busy / 100, **shares})
    if steal:
        assert found["steal"].numbers["steal_share"] == pytest.approx(steal / 100)
    else:  # never since boot
        assert found["steal"].message == "The system does not report what a hypervisor takes."


def test_load_on_other_cpus_is_only_doubtful(tmp_path: Path) -> None:
    idle, busy = (0, 100, 0), (100, 0, 0)
    others = watch(tmp_path, {0, 1}, cpu0=idle, cpu1=idle, cpu2=busy, cpu3=busy)["other load"]
    assert others.state == "doubtful" and "2.00 of 4 CPUs busy, 0.00 of our 2" in others.message
    among = watch(tmp_path, {2, 3}, cpu0=idle, cpu1=idle, cpu2=busy, cpu3=busy)["other load"]
    assert among.state == "bad"


@pytest.mark.parametrize(("busy_s", "state"), [(1.05, "good"), (1.3, "doubtful"), (1.9, "bad")])
def test_our_own_work_is_not_other_load(busy_s: float, state: str) -> None:
    """Two CPUs for a second; our child process used one CPU second."""
    before = dict.fromkeys(range(2), CpuTime(busy_s=7.0, steal_s=0.0))
    after = dict.fromkeys(range(2), CpuTime(busy_s=7.0 + busy_s / 2, steal_s=0.0))
    found = system.others(before, after, 1.0, {0, 1}, 1.0)
    assert found.state == state and found.numbers["busy_cpus"] == pytest.approx(busy_s - 1)
    assert system.others(before, before, 1.0, {0, 1}, 1.0).numbers["busy_cpus"] == 0
    assert system.others({}, {}, 1.0, None, 1.0).state == "unknown"


def test_a_neighbour_that_rests_now_is_seen_since_boot() -> None:
    times = {0: CpuTime(busy_s=100.0, steal_s=100.0)}
    found = system.steal(times, times, 1.0, 1000.0)
    assert found.state == "bad" and found.numbers == {"steal_share": 0, "steal_share_since_boot": 0.1}


CLOCK = {"scaling_governor": "performance", "scaling_cur_freq": 2900000, "cpuinfo_max_freq": 3000000}


@pytest.mark.parametrize(
    ("files", "state", "words"),
    [
        ({}, "good", "2.90 of at most 3.00 GHz"),
        ({"scaling_governor": "schedutil"}, "doubtful", "schedutil"),
        ({"scaling_cur_freq": 1200000}, "doubtful", "1.20"),
        ({"scaling_cur_freq": 1200000, "scaling_max_freq": 1200000}, "good", "1.20"),
        ({"scaling_cur_freq": "nonsense"}, "good", "performance."),
    ],
)
def test_clock(files: dict[str, object], state: str, words: str, tmp_path: Path) -> None:
    root = machine(tmp_path, {f"{CPU}/cpu3/cpufreq/{key}": value for key, value in {**CLOCK, **files}.items()})
    found = system.clock(root, {2, 3})
    assert found.state == state and words in found.message


@pytest.mark.parametrize(("name", "on"), [("intel_pstate/no_turbo", 0), ("cpufreq/boost", 1)])
@pytest.mark.parametrize("state", ["doubtful", "good"])
def test_turbo(name: str, on: int, state: str, tmp_path: Path) -> None:
    found = system.clock(machine(tmp_path, {f"{CPU}/{name}": on if state == "doubtful" else 1 - on}), {0})
    assert found.state == state and f"turbo is {'off' if state == 'good' else 'on'}" in found.message
    assert (name in found.advice) == (state == "doubtful") and not found.numbers


def test_heat(tmp_path: Path) -> None:
    folder = f"{CPU}/cpu0/thermal_throttle"
    machine(tmp_path, {f"{folder}/core_throttle_count": 0, f"{folder}/package_throttle_count": 0})
    none = system.throttles(tmp_path)
    machine(tmp_path, {f"{CPU}/cpu1/thermal_throttle/core_throttle_count": 7})
    seven = system.throttles(tmp_path)
    assert (none, seven) == (0, 7)
    assert [system.heat(*pair).state for pair in ((0, 0), (7, 7), (0, 7))] == ["good", "doubtful", "bad"]


GB = 1_000_000_000


def meminfo(total: int, free: int, *, swap: int = 0, swap_free: int = 0) -> str:
    sizes = {"MemTotal": total, "MemAvailable": free, "SwapTotal": swap, "SwapFree": swap_free}
    return "\n".join(f"{name}:   {size // 1024} kB" for name, size in sizes.items()) + "\nHugePages_Total:   0"


@pytest.mark.parametrize(("free", "state"), [(20, "good"), (3, "doubtful"), (0, "bad")])
def test_memory(free: int, state: str, tmp_path: Path) -> None:
    root = machine(tmp_path, {"proc/meminfo": meminfo(32 * GB, free * GB)})
    found = system.memory(root)
    assert found.state == state and found.numbers["swap_used_bytes"] == 0
    assert f"{free}.0 of 32.0 GB" in found.message


@pytest.mark.parametrize(
    "names", [("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes")]
)
def test_the_containers_limit_is_nearer(names: tuple[str, str], tmp_path: Path) -> None:
    limits = {f"sys/fs/cgroup/{name}": size for name, size in zip(names, (2 * GB, GB + GB // 2), strict=True)}
    found = system.memory(machine(tmp_path, {"proc/meminfo": meminfo(32 * GB, 20 * GB), **limits}))
    assert found.state == "bad" and found.numbers["available_memory_bytes"] == GB // 2


@pytest.mark.parametrize("text", ["max", str(2**63 - 4096)])
def test_no_limit(text: str, tmp_path: Path) -> None:
    names = ("memory.max", "memory/memory.limit_in_bytes")
    assert system.container(machine(tmp_path, {f"sys/fs/cgroup/{name}": text for name in names})) is None


def test_swap_and_an_empty_machine(tmp_path: Path) -> None:
    assert system.memory(tmp_path).state == "unknown"
    machine(tmp_path, {"proc/meminfo": meminfo(32 * GB, 20 * GB, swap=8 * GB, swap_free=3 * GB)})
    assert system.memory(tmp_path).state == "doubtful"


@pytest.mark.parametrize(("free", "state"), [(50 * GB, "good"), (GB, "doubtful"), (1000, "bad")])
def test_room(free: int, state: str) -> None:
    assert system.room(free).state == state


def test_the_disk_is_asked_where_the_folder_will_be(tmp_path: Path) -> None:
    found = by_name(system.resources(tmp_path / "not" / "yet"))
    assert found["disk"].numbers["free_bytes"] > 0
    assert not list(tmp_path.iterdir())


def test_the_source_of_the_clock_is_named_and_a_coarse_one_shows_its_step(tmp_path: Path) -> None:
    readings = np.arange(1000) * 1e-5
    assert "(hpet)" not in system.timer(readings, tmp_path).message
    machine(tmp_path, {"sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet"})
    found = system.timer(readings, tmp_path)
    assert "(hpet)" in found.message and found.state == "doubtful"
    readings = np.floor(np.arange(5000) * 1e-7 / 1e-5) * 1e-5
    assert system.timer(readings).numbers["timer_step_s"] == pytest.approx(1e-5, rel=1e-6)


@pytest.mark.parametrize(("step_s", "state"), [(5e-8, "good"), (1e-5, "doubtful"), (1e-2, "bad")])
def test_the_timer(step_s: float, state: str) -> None:
    found = system.timer(np.arange(1000) * step_s)
    assert found.state == state
    assert found.numbers["timer_step_s"] == pytest.approx(step_s, rel=1e-6)


BASE = {"jax": "0.10.2", "jaxlib": "0.10.2"}
CUDA = {**BASE, "jax-cuda13-plugin": "0.10.2"}
CLOSED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6 22:20:39 UTC 2023"
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (x)"


def sees(platform: str, *kinds: str) -> dict[str, Any]:
    return {"platform": platform, "devices": len(kinds)}


@pytest.mark.parametrize(("text", "driver"), [(CLOSED, "535.54.03"), (OPEN, "580.65.06"), ("nonsense", "")])
def test_the_driver_is_read_without_nvidia_smi(text: str, driver: str, tmp_path: Path) -> None:
    machine(tmp_path, {"proc/driver/nvidia/version": text, "dev/nvidia0": "", "dev/nvidia1": "", "dev/nvidiactl": ""})
    assert system.read_host(tmp_path) == Host(nvidia_driver=driver, nvidia=2)


def test_cards_tpus_and_amd(tmp_path: Path) -> None:
    pci = "sys/bus/pci/devices"
    files = {f"{pci}/{n}/vendor": vendor for n, vendor in enumerate(("0x10de", "0x10de", "0x8086"))}
    files |= {f"{pci}/{n}/class": kind for n, kind in enumerate(("0x030200", "0x040300", "0x030000"))}
    machine(tmp_path, {**files, "dev/kfd": "", "dev/accel0": "", "dev/accel1": ""})
    assert system.read_host(tmp_path) == Host(nvidia=1, amd=True, tpu=2)
    assert system.read_host(tmp_path / "nothing") == Host()


@pytest.mark.parametrize(
    ("host", "answer", "found", "environment", "state", "advice"),
    [
        (Host(), sees("cpu", "cpu"), BASE, {}, "good", ""),
        (Host("580.1", 1), sees("gpu", "H100"), CUDA, {}, "good", ""),
        (Host("580.1", 1), sees("cpu", "cpu"), BASE, {}, "doubtful", "'.[cuda13]'"),
        (Host("535.1", 1), sees("cpu", "cpu"), BASE, {}, "doubtful", "'.[cuda12]'"),
        (Host("470.1", 1), sees("cpu", "cpu"), BASE, {}, "doubtful", "Update NVIDIA's driver (470.1) to 525"),
        (Host("", 1), sees("cpu", "cpu"), BASE, {}, "doubtful", "Install NVIDIA's driver, 580 or newer"),
        (Host("580.1", 1), sees("cpu", "cpu"), CUDA, {}, "doubtful", "JAX_PLATFORMS=cuda"),
        (Host("580.1", 2), sees("gpu", "H100"), CUDA, {}, "doubtful", "JAX_PLATFORMS=cuda"),
        (Host("580.1", 2), sees("gpu", "H100"), CUDA, {"CUDA_VISIBLE_DEVICES": "0"}, "doubtful", "DEVICES='0' may"),
        (Host(amd=True), sees("cpu", "cpu"), BASE, {}, "doubtful", "jax-rocm7-plugin) of jaxlib 0.10.2"),
        (Host(amd=True), sees("gpu", "MI300"), BASE, {}, "good", ""),
        (Host(tpu=4), sees("cpu", "cpu"), BASE, {}, "doubtful", "'.[tpu]'"),
        (Host(tpu=4), sees("cpu", "cpu"), {**BASE, "libtpu": "0"}, {}, "doubtful", "holds the TPU"),
        (Host(tpu=4), sees("tpu", *["v4"] * 4), BASE, {}, "good", ""),
    ],
)
def test_shown_against_seen(
    host: Host, answer: dict[str, Any], found: dict[str, str], environment: dict[str, str], state: str, advice: str
) -> None:
    last = system.accelerators(host, **answer, packages=found, environment=environment)
    assert last.state == state and advice in last.advice and bool(advice) == bool(last.advice)


def test_a_jax_that_does_not_start_is_bad_and_the_driver_is_still_judged() -> None:
    found = by_name(system.software(None, CUDA, Host("470.1", 1)))
    assert found["NVIDIA driver"].state == "bad" and "accelerators" not in found
    found = by_name(system.software(sees("cpu", "cpu"), BASE, Host(nvidia=1)))
    assert found["NVIDIA driver"].state == found["accelerators"].state == "doubtful"


def test_jax_is_asked_in_a_child() -> None:
    facts, finding = system.probe_jax()
    assert facts is not None and finding.state == "good" and finding.numbers["devices"] == facts["devices"] > 0


def test_a_jax_that_cannot_even_be_imported_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So only the doctor's child processes import it."""
    machine(tmp_path, {"jax/__init__.py": "raise RuntimeError('jaxlib is version 0.1')"})
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(manifest, "probe", manifest.probe.__wrapped__)  # without its cache
    facts, finding = system.probe_jax()
    assert facts is None and finding.state == "bad" and "RuntimeError: jaxlib is version 0.1" in finding.message
    subprocess.run([sys.executable, "-P", "-c", "import jaxbench.features.doctor.examine"], check=True, timeout=60)


LINES = [
    "jaxlib<=0.10.2,>=0.10.1",
    'jaxlib==0.10.1; extra == "minimum-jaxlib"',
    'libtpu==0.0.42.*; extra == "tpu"',
    'jax-cuda13-plugin[with-cuda]<=0.10.2,>=0.10.2; extra == "cuda13"',
    'jax-cuda13-plugin<=0.10.2,>=0.10.2; extra == "cuda13-local"',
    'jax-rocm7-plugin==0.10.2.*; extra == "rocm7-local"',
    "numpy>=2.0",
]


FIT = {"jaxlib": "0.10.1", "jax-cuda13-plugin": "0.10.2", "jax-rocm7-plugin": "0.10.2.1", "libtpu": "0.0.42.1"}


@pytest.mark.parametrize("name", ["jax", *FIT])
def test_what_fits(name: str) -> None:
    assert system.versions({**BASE, name: {**BASE, **FIT}[name]}, LINES).state == "good"


@pytest.mark.parametrize(
    ("found", "message", "legal"),
    [
        ({"jaxlib": "0.9.2"}, "jaxlib is 0.9.2", "jaxlib<=0.10.2,>=0.10.1"),
        ({"jaxlib": "0.10.3"}, "jaxlib is 0.10.3", "jaxlib<=0.10.2,>=0.10.1"),
        ({"jax-cuda13-plugin": "0.10.1"}, "jax-cuda13-plugin is 0.10.1", "jax-cuda13-plugin<=0.10.2,>=0.10.2"),
        ({"jax-rocm7-plugin": "0.9.1"}, "jax-rocm7-plugin is 0.9.1", "jax-rocm7-plugin==0.10.2.*"),
        ({"libtpu": "0.0.37"}, "libtpu is 0.0.37", "libtpu==0.0.42.*"),
    ],
)
def test_each_mismatch_names_the_legal_version(found: dict[str, str], message: str, legal: str) -> None:
    wrong = system.versions({**BASE, **found}, LINES)
    assert wrong.state == "bad" and message in wrong.message and wrong.advice == f"Install '{legal}'."


def test_several_mismatches_are_one_finding() -> None:
    both = system.versions({**BASE, "jaxlib": "0.9.0", "libtpu": "0.0.37"}, LINES)
    assert "jaxlib is 0.9.0, libtpu is 0.0.37" in both.message and "libtpu==" in both.advice
    absent = system.versions({**BASE, "jaxlib": "not installed"}, LINES)
    assert absent.state == "bad" and "jaxlib not installed" in absent.message


@pytest.mark.parametrize(
    ("driver", "plugin", "state", "extra"),
    [
        ("580.65.06", "jax-cuda13-plugin", "good", "cuda13"),
        ("535.54.03", "jax-cuda13-plugin", "bad", "cuda12"),
        ("535.54.03", "jax-cuda12-plugin", "good", "cuda12"),
        ("470.1", "jax-cuda12-plugin", "bad", ""),
    ],
)
def test_the_driver_must_be_new_enough(driver: str, plugin: str, state: str, extra: str) -> None:
    found = system.driver(Host(driver, 1), {**BASE, plugin: "0.10.2"})
    assert found.state == state and system.extra_for(driver) == extra
    if state == "bad":
        advice = f"{with_extra(extra)}." if extra else "Update the driver."
        assert driver in found.message and found.advice.endswith(advice)


def test_the_installed_versions_fit() -> None:
    assert system.versions(manifest.versions()).state == "good"  # by the requirements of the installed jax
