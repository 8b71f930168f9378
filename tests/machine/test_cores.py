# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Cores in a container, or on a processor with two threads per core."""

import pytest

from jaxbench.machine import cores


def test_two_threads_of_a_core_are_one(tmp_path):
    for cpu, siblings in enumerate(["0,2", "1,3", "0,2", "1,3"]):
        folder = tmp_path / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(siblings + "\n")
    assert cores.physical_cores({0, 1, 2, 3}, tmp_path) == [0, 1]
    assert cores.physical_cores({2, 3}, tmp_path) == [2, 3]
    assert cores.physical_cores({0, 2}, tmp_path) == [0]
    assert cores.physical_cores({7}, tmp_path) == [7]  # nothing known about it


@pytest.mark.parametrize(("text", "limit"), [("max 100000", None), ("150000 100000", 1.5), ("nonsense", None)])
def test_quota_of_cgroup_2(tmp_path, text, limit):
    (tmp_path / "cpu.max").write_text(text + "\n")
    assert cores.quota(tmp_path) == limit


@pytest.mark.parametrize(("most", "limit"), [("-1", None), ("200000", 2.0)])
def test_quota_of_cgroup_1(tmp_path, most, limit):
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text(most)
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000")
    assert cores.quota(tmp_path) == limit


def test_a_quota_below_the_cores_wins(monkeypatch):
    monkeypatch.setattr(cores, "physical_cores", lambda: list(range(64)))
    monkeypatch.setattr(cores, "quota", lambda: 2.5)
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
