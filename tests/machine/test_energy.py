# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Energy counters: which are read, and the difference of two readings."""

from __future__ import annotations

from jaxbench.machine import energy
from jaxbench.machine.energy import Counter


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
