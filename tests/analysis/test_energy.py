# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Joules per step and per unit of work, from fabricated runs with a known power."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fabricate
import pytest

from jaxbench.analysis.energy import PowerUse
from jaxbench.core.store import RunFolder
from jaxbench.report import build
from jaxbench.report.run_report import RunReport

WATTS = 500.0


def measured(folder: Path, *, scale: float = 1.0, clock: float = 1.0, **device: Any) -> RunReport:
    """A run on one and on two devices that each take WATTS. scale: of the counters over the true ones. clock: of two
    devices over that of one."""
    fabricate.run_folder(folder, devices=(1, 2), scalings=("strong",), rounds=12, processes=3, noise=0.002)
    counts = {record.point: record.devices for record in RunFolder(folder).records() if record.kind == "point"}

    def add(line: dict[str, Any]) -> None:
        if line["kind"] != "round":
            return
        devices = counts[line["point"]]
        line["power"] = [
            [
                {
                    "device": f"GPU {number}",
                    "readings": 2,
                    "sm_mhz": 2000.0 * (clock if devices == 2 else 1),
                    "joules": scale * WATTS * seconds,
                    "power_w": WATTS,
                    "default_mhz": 1980.0,
                    **device,
                }
                for number in range(devices)
            ]
            for seconds in (*line["block_s"], *line["double_block_s"])
        ]

    fabricate.edit(folder, add)
    found = build.find(folder)
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
    assert isinstance(report, RunReport) and report.rows[0].energy == PowerUse()
