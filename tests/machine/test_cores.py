# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Cores in a container, or on a processor with two threads per core."""

from __future__ import annotations

import os
import threading

import pytest

from jaxbench.machine import cores, energy
from jaxbench.machine.energy import Counter


def test_two_threads_of_a_core_are_one(tmp_path):
    for cpu, siblings in enumerate(["0,2", "1,3", "0,2", "1,3"]):
        folder = tmp_path / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(siblings + "\n")
    assert cores.physical_cores({0, 1, 2, 3}, tmp_path) == [0, 1]
    assert cores.physical_cores({2, 3}, tmp_path) == [2, 3]
    assert cores.physical_cores({0, 2}, tmp_path) == [0]
    assert cores.physical_cores({7}, tmp_path) == [7]  # nothing known about it


def test_a_quota_below_the_cores_wins(monkeypatch):
    monkeypatch.setattr(cores, "physical_cores", lambda: list(range(64)))
    monkeypatch.setattr(cores.cpu_quota, "limit", lambda: 2.5)
    assert cores.available_cores() == 2


def machine_of_four(monkeypatch, loads):
    """A machine of four cores, each with one thread, that were busy for `loads` seconds of the last second."""
    readings = iter([{cpu: cores.CpuTime(busy_s=7.0, steal_s=1.0) for cpu in loads}, None])
    later = {cpu: cores.CpuTime(busy_s=7.0 + busy, steal_s=1.0 + steal) for cpu, (busy, steal) in loads.items()}
    monkeypatch.setattr(cores, "cpu_times", lambda: next(readings) or later)
    monkeypatch.setattr(cores, "physical_cores", lambda: [0, 1, 2, 3])
    monkeypatch.setattr(cores, "siblings", lambda cpu: frozenset({cpu, cpu + 4}))


@pytest.mark.parametrize(
    ("loads", "order"),
    [
        ({cpu: (0.0, 0.0) for cpu in range(8)}, [0, 1, 2, 3]),
        ({0: (0.9, 0.0), 1: (0.0, 0.0), 2: (0.5, 0.0), 3: (0.0, 0.0)}, [1, 3, 2, 0]),
        ({0: (0.04, 0.0), 1: (0.03, 0.0), 2: (0.0, 0.0), 3: (0.0, 0.0)}, [0, 1, 2, 3]),  # as good as idle
        ({0: (0.0, 0.3), 1: (0.0, 0.0), 2: (0.0, 0.0), 3: (0.0, 0.0)}, [1, 2, 3, 0]),  # stolen
        ({0: (0.0, 0.0), 4: (0.9, 0.0), 1: (0.5, 0.0), 2: (0.0, 0.0), 3: (0.0, 0.0)}, [2, 3, 1, 0]),  # its other thread
        ({}, [0, 1, 2, 3]),  # a system that does not say
    ],
)
def test_the_least_loaded_cores_come_first(monkeypatch, loads, order):
    machine_of_four(monkeypatch, loads)
    slept = []
    assert cores.free_cores(1.0, slept.append) == order and slept == [1.0]


@pytest.mark.parametrize(
    ("count", "order", "pinned"),
    [(1, (), {0}), (2, (3, 1, 0, 2), {3, 1}), (2, (3,), {3, 0}), (9, (3,), {0, 1, 2, 3}), (1, (7, 2), {2})],
)
def test_a_process_is_pinned_in_that_order(monkeypatch, count, order, pinned):
    seen = []
    monkeypatch.setattr(cores, "physical_cores", lambda: [0, 1, 2, 3])
    monkeypatch.setattr(cores.os, "sched_setaffinity", lambda pid, chosen: seen.append(set(chosen)), raising=False)
    assert cores.pin_to_cores(count, order) and seen == [pinned]


@pytest.mark.parametrize(("text", "threads"), [("0,64", {0, 64}), ("0-3", {0, 1, 2, 3}), ("", {0}), ("0", {0})])
def test_hardware_threads_of_a_core(tmp_path, text, threads):
    (tmp_path / "cpu0" / "topology").mkdir(parents=True)
    (tmp_path / "cpu0" / "topology" / "thread_siblings_list").write_text(text + "\n")
    assert cores.siblings(0, tmp_path) == threads


# The load of a block, from /proc/stat, and what /proc/stat does not contain.


TICK_S = 1 / os.sysconf("SC_CLK_TCK")
STAT = """cpu  99 99 99 99 99 99 99 99 0 0
cpu0 100 10 40 5000 7 1 2 30 0 0
cpu1 300 0 100 9000 0 0 0 0 0 0
intr 12345 0 0
ctxt 99
"""


def test_busy_is_what_ran_and_steal_is_apart_where_the_kernel_tells(tmp_path):
    (tmp_path / "stat").write_text(STAT)
    times = cores.cpu_times(tmp_path / "stat")
    assert set(times) == {0, 1}
    assert times[0].busy_s == pytest.approx(153 * TICK_S) and times[0].steal_s == pytest.approx(30 * TICK_S)
    assert times[1].busy_s == pytest.approx(400 * TICK_S) and times[1].steal_s == 0
    (tmp_path / "stat").write_text("cpu0 100 10 40 5000\n")
    assert cores.cpu_times(tmp_path / "stat")[0] == cores.CpuTime(busy_s=150 * TICK_S, steal_s=0.0)


@pytest.mark.parametrize("text", ["", "cpu0 0 0 0 0 0 0 0 0\n", "intr 5\n"])
def test_a_system_that_says_nothing_is_believed(tmp_path, text):
    (tmp_path / "stat").write_text(text)
    assert cores.cpu_times(tmp_path / "stat") == {}
    assert cores.cpu_times(tmp_path / "none") == {}


def test_the_allowed_cpus_are_summed(monkeypatch):
    times = {0: cores.CpuTime(busy_s=1.0, steal_s=0.5), 1: cores.CpuTime(busy_s=2.0, steal_s=0.25)}
    monkeypatch.setattr(cores, "cpu_times", lambda: times)
    monkeypatch.setattr(cores.os, "sched_getaffinity", lambda pid: {0, 1}, raising=False)
    sample = cores.load_after()
    assert (sample.busy_s, sample.steal_s, sample.cpus) == (3.0, 0.75, 2) and sample.cpu_s > 0
    times[0] = cores.CpuTime(busy_s=1.0, steal_s=0.0)
    monkeypatch.setattr(cores.os, "sched_getaffinity", lambda pid: {0}, raising=False)
    assert cores.load_before().steal_s == 0  # the other CPU shows that this hypervisor reports
    times[1] = cores.CpuTime(busy_s=2.0, steal_s=0.0)
    assert cores.load_before().steal_s is None and cores.load_before().busy_s == 1
    monkeypatch.setattr(cores.os, "sched_getaffinity", lambda pid: {0, 5}, raising=False)
    assert cores.load_before().busy_s is None


# Energy counters: which are read, and the difference of two readings.


def zone(folder, name, joules, label):
    (folder / name).mkdir()
    (folder / name / "name").write_text(f"{label}\n")
    (folder / name / "energy_uj").write_text(f"{joules * 1_000_000}\n")
    (folder / name / "max_energy_range_uj").write_text("262143000000\n")


def test_whole_processors_are_read_and_their_parts_are_not(tmp_path):
    zone(tmp_path, "intel-rapl:0", 5, "package-0")
    zone(tmp_path, "intel-rapl:0:0", 3, "core")
    zone(tmp_path, "intel-rapl:1", 9, "psys")
    (tmp_path / "intel-rapl:2").mkdir()  # may not be read
    assert energy.packages(tmp_path) == {"package-0": Counter(5.0, 262143.0)}
    assert energy.packages(tmp_path / "nowhere") == {}


def test_a_counter_that_wrapped_once_is_continued():
    before = {"package-0": Counter(90.0, 100.0), "GPU 0": Counter(7.0), "GPU 1": Counter(9.0), "gone": Counter(1.0)}
    after = {"package-0": Counter(20.0, 100.0), "GPU 0": Counter(12.0), "GPU 1": Counter(2.0)}
    assert energy.between(before, after) == {"package-0": 30.0, "GPU 0": 5.0}  # GPU 1 was reset: unknown


def test_waiting_threads_count_as_threads_of_the_process():
    before, done = cores.threads(), threading.Event()
    assert before is not None
    waiting = threading.Thread(target=done.wait)
    waiting.start()
    try:
        assert cores.threads() == cores.load_before().threads == before + 1
    finally:
        done.set()
        waiting.join()


def test_without_a_list_of_tasks_the_number_of_threads_is_unknown(tmp_path):
    assert cores.threads(tmp_path / "none") is None
