# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Cores as a container or a processor with two threads a core has them."""

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
