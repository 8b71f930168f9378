# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The committed memory forecasts for published runs on TPUs, which all fitted."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import forecasts, forecasts_memory
from jaxbench.catalog import targets

RESULTS = Path(__file__).parents[2] / forecasts.RESULTS / forecasts_memory.FILE


def test_no_published_run_is_said_to_need_much_more_than_its_chip_has():
    """They all ran. A line through two depths with memory to spare gave the first run three times what there is."""
    found = forecasts_memory.read(RESULTS)
    rows = {row["id"]: row for row in forecasts_memory.runs()}
    assert found.keys() == rows.keys()
    for name, (needed, whole, has) in found.items():
        assert needed == pytest.approx(whole, rel=0.01)  # as docs/FORECASTS.md says
        assert has == targets.parse(rows[name]["target"]).memory_bytes
        assert 0 < needed < 1.01 * has
    assert sum(needed <= has for needed, _, has in found.values()) == 5  # as docs/FORECASTS.md says


def test_results_are_read_as_they_were_written(tmp_path):
    forecasts_memory.write({"a": (1, 1, 2), "b": (3, 4, 2)}, tmp_path / "again.csv")
    assert forecasts_memory.read(tmp_path / "again.csv") == {"a": (1, 1, 2), "b": (3, 4, 2)}
    assert forecasts_memory.read(tmp_path / "none.csv") == {}
