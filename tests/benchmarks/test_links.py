# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Efficiency over link rate: the prediction is the local step plus the communication predicted by the profile."""

from __future__ import annotations

from pathlib import Path

import fabricate_cases
import fabricate_losses
import pytest
from fabricate_losses import Loss

from benchmarks import links
from jaxbench.core import store

LINK = {"op": "all_reduce", "dtype": "float32", "devices": 2, "mesh": "2", "axis": "x", "oversubscribed": False}


def rate(folder: Path, name: str, communication: float) -> None:
    """A training with this factor of communication, from sending 400 kB in 12 all-reduces."""
    lost = {2: Loss(communication=communication)}
    run = fabricate_losses.folder(folder / name / "cnn", lost, noise=0.0005, sent=(400_000,))
    card = fabricate_cases.card(links=[{**LINK, "alpha_s": 1e-4, "beta_bytes_per_s": 1e8, "bus_bytes_per_s": 1e8}])
    card["peaks"] = []
    card["machine"] = {}  # no facts are known about either machine, so none differ
    store.write_json(run / "machine.json", card)


def test_rates_are_read_from_the_fastest_and_predicted(tmp_path: Path) -> None:
    rate(tmp_path, "100mbit", 0.5)
    rate(tmp_path, "unlimited", 0.99)
    (tmp_path / "notes").mkdir()
    fast, slow = links.read(tmp_path)
    assert (fast.rate, slow.rate) == ("unlimited", "100mbit")
    for one in (fast, slow):
        assert one.communication_s == pytest.approx(12 * 1e-4 + 4e5 / 1e8)
        assert one.predicted_s == one.local_s + one.communication_s
        assert one.predicted_efficiency * one.predicted_s == pytest.approx(one.efficiency.value * one.step_s.value)
    assert slow.step_s.value == pytest.approx(2 * slow.local_s, rel=0.02)
    assert links.draw([fast, slow]).axes[0].get_xticklabels()[1].get_text() == "100 Mbit/s"


def test_an_unpredictable_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="has no rates: name its folders unlimited, 1gbit or 100mbit"):
        links.read(tmp_path)
    rate(tmp_path, "1gbit", 0.9)
    (tmp_path / "1gbit/cnn/machine.json").unlink()
    with pytest.raises(SystemExit, match="cnn cannot be predicted: .* from a run of collectives before it"):
        links.read(tmp_path)
