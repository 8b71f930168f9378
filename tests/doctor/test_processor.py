# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Affinity, quota, hyper-threads, load and clock of fabricated machines."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from doctor.fabricated import by_name, machine

from jaxbench.doctor import processor
from jaxbench.doctor.finding import Finding
from jaxbench.machine.cores import CpuTime

CPU = "sys/devices/system/cpu"
PAIRS = {f"{CPU}/cpu{cpu}/topology/thread_siblings_list": f"{cpu % 2},{cpu % 2 + 2}" for cpu in range(4)}


def test_two_threads_a_core_count_once(tmp_path: Path) -> None:
    root = machine(tmp_path, PAIRS)
    found = by_name(processor.examine(root, {0, 1, 2, 3}))
    assert found["cores"].numbers == {"cpus": 4, "allowed_cpus": 4, "physical_cores": 2, "outside_cpus": 0}
    assert found["cores"].state == "good"
    assert "2 physical cores" in found["cores"].message


def test_the_other_thread_of_our_core_is_not_ours(tmp_path: Path) -> None:
    root = machine(tmp_path, PAIRS)
    found = by_name(processor.examine(root, {0, 1}))["cores"]
    assert found.state == "doubtful" and found.numbers["outside_cpus"] == 2 and "2 others share" in found.message
    one = by_name(processor.examine(root, {0}))["cores"]
    assert one.state == "doubtful" and "1 physical core " in one.message and one.advice


def test_an_empty_machine_is_unknown_and_nothing_fails(tmp_path: Path) -> None:
    found = by_name(processor.examine(tmp_path, {0, 1}))
    assert found["quota"].state == found["clock"].state == "unknown"
    assert processor.throttles(tmp_path) is None and processor.heat(None, None).state == "unknown"
    assert [f.state for f in processor.other_load(tmp_path, watch=lambda: 1.0)] == ["unknown", "unknown"]


@pytest.mark.parametrize(
    ("files", "state", "numbers"),
    [
        ({"cpu.max": "max 100000"}, "good", {}),
        ({"cpu.max": "150000 100000"}, "doubtful", {"quota_cores": 1.5}),
        (
            {"cpu.max": "200000 100000", "cpu.stat": "nr_periods 1000\nnr_throttled 300"},
            "doubtful",
            {"quota_cores": 2.0, "throttled_share": 0.3},
        ),
        (
            {"cpu.max": "200000 100000", "cpu.stat": "nr_periods 1000\nnr_throttled 1"},
            "good",
            {"quota_cores": 2.0, "throttled_share": 0.001},
        ),
        (
            {"cpu/cpu.cfs_quota_us": 50000, "cpu/cpu.cfs_period_us": 100000, "cpu/cpu.stat": "nr_periods 0"},
            "doubtful",
            {"quota_cores": 0.5},
        ),
    ],
)
def test_quota(files: dict[str, object], state: str, numbers: dict[str, float], tmp_path: Path) -> None:
    root = machine(tmp_path, {f"sys/fs/cgroup/{name}": content for name, content in files.items()})
    found = processor.quota(root, {0, 1})
    assert found.state == state and found.numbers == numbers and bool(found.advice) == (state != "good")


def stat(**ticks: tuple[int, int, int]) -> str:
    """/proc/stat with (busy, idle, steal) of each CPU."""
    lines = [f"{cpu} {busy} 0 0 {idle} 0 0 0 {steal} 0 0" for cpu, (busy, idle, steal) in ticks.items()]
    return "\n".join(["cpu  1 2 3 4 5 6 7 8 9 10", *lines, "intr 5"])


def watch(root: Path, allowed: set[int], **ticks: tuple[int, int, int]) -> dict[str, Finding]:
    """The findings for a machine with these CPU ticks, of 10 ms, in one observed second."""
    machine(root, {"proc/stat": stat(**dict.fromkeys(ticks, (5_000, 45_000, 0))), "proc/uptime": "500.0 900.0"})
    after = {cpu: (5_000 + busy, 45_000 + idle, steal) for cpu, (busy, idle, steal) in ticks.items()}
    assert os.sysconf("SC_CLK_TCK") == 100

    def second() -> float:
        machine(root, {"proc/stat": stat(**after)})
        return 1.0

    return by_name(processor.other_load(root, allowed, second))


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
    found = processor.others(before, after, 1.0, {0, 1}, 1.0)
    assert found.state == state and found.numbers["busy_cpus"] == pytest.approx(busy_s - 1)
    assert processor.others(before, before, 1.0, {0, 1}, 1.0).numbers["busy_cpus"] == 0
    assert processor.others({}, {}, 1.0, None, 1.0).state == "unknown"


def test_a_neighbour_that_rests_now_is_seen_since_boot() -> None:
    times = {0: CpuTime(busy_s=100.0, steal_s=100.0)}
    found = processor.steal(times, times, 1.0, 1000.0)
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
    found = processor.clock(root, {2, 3})
    assert found.state == state and words in found.message


@pytest.mark.parametrize(
    ("name", "value", "state"),
    [
        ("intel_pstate/no_turbo", 0, "doubtful"),
        ("intel_pstate/no_turbo", 1, "good"),
        ("cpufreq/boost", 1, "doubtful"),
        ("cpufreq/boost", 0, "good"),
    ],
)
def test_turbo(name: str, value: int, state: str, tmp_path: Path) -> None:
    found = processor.clock(machine(tmp_path, {f"{CPU}/{name}": value}), {0})
    assert found.state == state and f"turbo is {'off' if state == 'good' else 'on'}" in found.message
    assert (name in found.advice) == (state == "doubtful") and not found.numbers


def test_heat(tmp_path: Path) -> None:
    folder = f"{CPU}/cpu0/thermal_throttle"
    machine(tmp_path, {f"{folder}/core_throttle_count": 0, f"{folder}/package_throttle_count": 0})
    none = processor.throttles(tmp_path)
    machine(tmp_path, {f"{CPU}/cpu1/thermal_throttle/core_throttle_count": 7})
    seven = processor.throttles(tmp_path)
    assert (none, seven) == (0, 7)
    assert [processor.heat(*pair).state for pair in ((0, 0), (7, 7), (0, 7))] == ["good", "doubtful", "bad"]
