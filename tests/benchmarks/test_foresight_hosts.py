# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Two hosts from one: the one-process step plus alpha and beta of the profile, compared with the measurement."""

from __future__ import annotations

from pathlib import Path

import fabricate_cases
import fabricate_losses
import pytest
from fabricate_losses import Loss

from benchmarks import foresight_hosts
from jaxbench.core import store

LINK = {"op": "all_reduce", "dtype": "float32", "devices": 2, "mesh": "2", "axis": "x", "oversubscribed": False}
BYTES = 246_832  # 4 of each of 61,706 parameters, the loss and the accuracy, in 12 all-reduces
SENT_S = 12 * 1e-4 + BYTES / 1e8


def card(folder: Path) -> None:
    """The machine profile with its link."""
    link = {**LINK, "alpha_s": 1e-4, "beta_bytes_per_s": 1e8, "bus_bytes_per_s": 1e8}
    store.write_json(folder / "machine.json", fabricate_cases.card(links=[link]))


def rate(folder: Path, name: str, communication: float) -> None:
    """A training with this factor of communication, and the machine profile with its link."""
    lost = {2: Loss(communication=communication)}
    fabricate_losses.folder(folder / name / "cnn", lost, noise=0.0005, sent=(BYTES,))
    card(folder / name)


def test_the_forecast_is_the_step_of_one_and_what_the_card_says_of_the_messages(tmp_path: Path) -> None:
    rate(tmp_path, "100mbit", 0.5)
    rate(tmp_path, "unlimited", 0.99)
    fast, slow = foresight_hosts.read(tmp_path)
    assert (fast.rate, slow.rate) == ("unlimited", "100mbit")
    for one in (fast, slow):
        assert one.forecast.communication_s == pytest.approx(SENT_S, rel=1e-3)  # each message's alpha is counted once
        assert one.forecast.scheduled_s == pytest.approx(one.forecast.work_s + SENT_S, rel=1e-3)
        assert one.over(one.forecast) == pytest.approx(one.forecast.scheduled_s / one.step_s.value)
    assert slow.step_s.value > 1.9 * fast.step_s.value
    assert slow.judged is slow.forecast  # a share of a batch is not the step of one host
    assert slow.held == (slow.forecast.low_s <= slow.step_s.value <= slow.forecast.high_s)


def test_the_neighbour_at_work_is_in_the_forecast_that_is_judged(tmp_path: Path) -> None:
    """While both work, a step takes 1 / 0.8 of the time of one alone; no communication is hidden."""
    step_s = fabricate_losses.BASE_S / 0.8
    lost = {2: Loss(machine=0.8, communication=step_s / (step_s + SENT_S), collectives=SENT_S / step_s)}
    folder = tmp_path / "100mbit"
    fabricate_losses.folder(folder / "cnn", lost, noise=0.0005, drift=0.0, sent=(BYTES,), scalings=("weak",))
    card(folder)
    (one,) = foresight_hosts.read(tmp_path)
    assert one.judged is one.both_busy
    assert one.over(one.both_busy) == pytest.approx(1, abs=0.01)
    assert one.over(one.forecast) == pytest.approx(1 - 0.2 * step_s / (step_s + SENT_S), abs=0.01)


def test_a_missing_card_is_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="has no rates"):
        foresight_hosts.read(tmp_path)
    rate(tmp_path, "1gbit", 0.9)
    (tmp_path / "1gbit/machine.json").unlink()
    with pytest.raises(SystemExit, match=r"1gbit/machine\.json is missing"):
        foresight_hosts.read(tmp_path)
