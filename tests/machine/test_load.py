# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The load of a block, from /proc/stat, and what /proc/stat does not contain."""

import os

import pytest

from jaxbench.machine import cores

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
STAT = """cpu  99 99 99 99 99 99 99 99 0 0
cpu0 100 10 40 5000 7 1 2 30 0 0
cpu1 300 0 100 9000 0 0 0 0 0 0
intr 12345 0 0
ctxt 99
"""


def test_busy_is_what_ran_and_steal_is_apart(tmp_path):
    (tmp_path / "stat").write_text(STAT)
    times = cores.cpu_times(tmp_path / "stat")
    assert set(times) == {0, 1}
    assert times[0].busy_s == pytest.approx(153 * TICK_S) and times[0].steal_s == pytest.approx(30 * TICK_S)
    assert times[1].busy_s == pytest.approx(400 * TICK_S) and times[1].steal_s == 0


@pytest.mark.parametrize("text", ["", "cpu0 0 0 0 0 0 0 0 0\n", "intr 5\n"])
def test_a_system_that_says_nothing_is_believed(tmp_path, text):
    (tmp_path / "stat").write_text(text)
    assert cores.cpu_times(tmp_path / "stat") == {}
    assert cores.cpu_times(tmp_path / "none") == {}


def test_old_kernels_have_fewer_columns(tmp_path):
    (tmp_path / "stat").write_text("cpu0 100 10 40 5000\n")
    assert cores.cpu_times(tmp_path / "stat")[0] == cores.CpuTime(busy_s=150 * TICK_S, steal_s=0.0)


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
