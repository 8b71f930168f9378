# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Joules per step and per unit of work, from fabricated runs with a known power."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fabricate
import fabricate_power
import pytest
from fabricate_power import WATTS

from jaxbench.analysis.energy import PowerUse
from jaxbench.report import build
from jaxbench.report.run_report import RunReport


def measured(folder: Path, **how: Any) -> RunReport:
    """The report of a fabricated run; see `fabricate_power.folder`."""
    found = build.find(fabricate_power.folder(folder, **how))
    assert isinstance(found, RunReport)
    return found


def test_joules_of_a_step_are_power_times_its_time(tmp_path: Path) -> None:
    one, two = measured(tmp_path).rows
    for row, devices in ((one, 1), (two, 2)):
        use = row.energy
        assert use.joules_per_step.value == pytest.approx(WATTS * devices * row.timing.step_s.value, rel=0.02)
        assert use.joules_per_step.has_interval and use.joules_per_step.lo < use.joules_per_step.hi
        assert use.power_w == pytest.approx(WATTS * devices) == pytest.approx(use.reading_w)
        # Joules of an example are power over rate.
        rate = row.timing.examples_per_s.value
        assert use.joules_per_unit.value == pytest.approx(use.power_w / rate, rel=0.02)
        assert use.slowed == 0 and use.blocks > 0 and use.source == "GPU"
    same = one.energy.joules_per_step.value / two.energy.joules_per_step.value
    assert two.energy_efficiency.value == pytest.approx(same)
    assert one.energy_efficiency.lo == one.energy_efficiency.hi == 1.0, "the ratio to itself has no noise"
    low, high = two.energy_efficiency.lo, two.energy_efficiency.hi
    assert low <= same <= high and high / low < 1.5


def test_a_denied_counter_leaves_the_energy_unknown_and_the_clock_known(tmp_path: Path) -> None:
    one, _ = measured(tmp_path, **{"joules": None, "power_w": None}).rows
    assert not one.energy.joules_per_step.known and one.energy.sm_mhz == 2000.0
    assert not one.energy_efficiency.known


def test_slowed_blocks_are_counted_named_and_kept(tmp_path: Path) -> None:
    report = measured(tmp_path, reasons=0x20)
    one, two = report.rows
    assert one.energy.slowed == one.energy.blocks and one.timing.rounds == 12, "marked, not left out"
    said = " ".join(report.sentences()["Load"])
    assert "timed blocks were slowed" in said and "heat (by the driver)" in said
    assert two.energy.reasons[0][0] == "heat (by the driver)"


def test_without_readings_nothing_is_known(tmp_path: Path) -> None:
    fabricate.run_folder(tmp_path, devices=(1,), scalings=("strong",), rounds=6, processes=3)
    report = build.find(tmp_path)
    assert isinstance(report, RunReport) and repr(report.rows[0].energy) == repr(PowerUse())  # NaN differs from NaN
