# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The page of one run at several power limits, from fabricated runs with a known power."""

from __future__ import annotations

import json
from pathlib import Path

import fabricate_power
import pytest
from fabricate_power import WATTS
from rich.console import Console

from jaxbench.commands.report import report
from jaxbench.core.store import write_manifest
from jaxbench.features.power_limits import page


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Runs at 700 W and at 400 W, which takes 0.6 of the energy. One GPU drew 60 W before anything ran."""
    for watts, scale in ((700, 1.0), (400, 0.6)):
        path = fabricate_power.folder(tmp_path / page.folder_of(watts), scale=scale)
        manifest = json.loads((path / "manifest.json").read_text())
        write_manifest(path, {**manifest, "workers": {"one": {"idle_w": {"GPU 0": 60.0}}}})
    return tmp_path


def test_each_point_has_its_time_and_energy_at_each_limit(folder: Path) -> None:
    reports = page.runs(folder)
    assert list(reports) == [400.0, 700.0]
    low, high, *two = page.lines(reports)
    assert [low.watts, high.watts] == [400.0, 700.0] and len(two) == 2
    assert (high.time, high.energy) == (1.0, 1.0)
    assert low.time == pytest.approx(1.0, rel=0.01) and low.energy == pytest.approx(0.6, rel=0.02)
    assert high.row.energy.joules_per_step.value == pytest.approx(WATTS * high.row.timing.step_s.value, rel=0.02)
    # The idle part is apart: 60 W for the time of a step. The idle power of the second GPU is unknown.
    assert high.idle_j == pytest.approx(60.0 * high.row.timing.step_s.value)
    assert all(each.idle_w != each.idle_w for each in two)


def test_the_page_says_where_the_energy_is_least(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(folder, Console(width=200)) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "least energy at 400 W, with 0.60 of the energy and 1.00 of the time of 700 W" in said
    written = (folder / page.PAGE).read_text()
    assert "Idle power, before anything ran: GPU 0 60 W" in written and "400W/report.html" in written
    assert {path.suffix for path in (folder / "figures").glob("power_limits.*")} >= {".svg"}


def test_without_energy_the_page_has_times_and_no_figure(tmp_path: Path) -> None:
    for watts in (700, 400):
        fabricate_power.folder(tmp_path / page.folder_of(watts), joules=None)
    points = page.lines(page.runs(tmp_path))
    assert page.headlines(points) == [page.UNKNOWN_ENERGY]
    assert page.draw_limits.make(points, title="") is None
    assert page.runs(tmp_path / "700W") == {}
