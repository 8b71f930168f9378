# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The share of the rated power at which `advise` counts energy: measured in a run, else published."""

from __future__ import annotations

import dataclasses
import datetime
import json
from pathlib import Path
from typing import Any

import fabricate
import fabricate_power
import pytest
from fabricate_forecasts import at

from jaxbench.core.store import write_manifest
from jaxbench.errors import UserError
from jaxbench.features.forecast import advice, page, power
from jaxbench.features.forecast.advice import Price, TrainingBudget
from jaxbench.features.forecast.power import PowerShare

H100 = "NVIDIA H100 SXM"
RATED = {H100: 700.0}
TODAY = datetime.date(2026, 11, 24)
PRICE = Price(
    device=H100,
    provider="Mine",
    per_device_hour=2.0,
    currency="USD",
    date=TODAY,
    watts=700.0,
    source="an invoice",
    kind="on demand",
)


def run_on(folder: Path, kind: str = "NVIDIA H100 80GB HBM3", **facts: Any) -> Path:
    """A run on GPUs that each take `fabricate_power.WATTS`."""
    fabricate_power.folder(folder, **facts)
    manifest = json.loads((folder / "manifest.json").read_text())
    write_manifest(folder, {**manifest, "device_kind": kind})
    return folder


def test_a_run_with_readings_says_the_share(tmp_path: Path) -> None:
    (share,) = power.measured(run_on(tmp_path / "mine"), RATED).values()
    assert share.value == pytest.approx(fabricate_power.WATTS / 700.0, rel=0.01)
    assert share.source == "measured in 'mine', the median of 2 points"


def test_energy_is_counted_at_the_measured_share_and_the_page_says_which(tmp_path: Path) -> None:
    shares, other = power.measured(run_on(tmp_path), RATED), dataclasses.replace(PRICE, device="NVIDIA H200 SXM")
    # A global batch of 32, so 100 steps of 1.8 to 3.6 s, and 8 devices of 700 W.
    forecast = dataclasses.replace(at(8), low_s=1.8, high_s=3.6, peak_bytes=10**9)
    mine, theirs = advice.candidates([forecast], [PRICE, other], TrainingBudget(examples=3200), shares)
    assert mine.joules == pytest.approx((500.0 / 700 * 1_008_000, 500.0 / 700 * 2_016_000), rel=0.01)
    assert theirs.share == PowerShare() and theirs.joules == pytest.approx((0.76 * 1_008_000, 0.76 * 2_016_000))
    first, second = page._price_sources(advice.lines([mine, theirs], TODAY))
    assert "700 W, counted at 71 % (measured in" in first
    assert "counted at 76 % (the peak of a node of 8 H100 in training, published in arXiv:2506.14551)" in second


def test_what_a_run_cannot_say_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="made on 'NVIDIA T1000', which has no rated power: known are NVIDIA H100 SXM"):
        power.measured(run_on(tmp_path / "kind", "NVIDIA T1000"), RATED)
    with pytest.raises(UserError, match="has no energy of a GPU"):
        power.measured(run_on(tmp_path / "denied", joules=None), RATED)
    fabricate.run_folder(tmp_path / "cpu", devices=(1,), scalings=("strong",), rounds=6, processes=3)
    with pytest.raises(UserError, match="has no energy of a GPU"):
        power.measured(tmp_path / "cpu", RATED)
    limited = run_on(tmp_path / "limited")
    config = json.loads((limited / "config.json").read_text())
    (limited / "config.json").write_text(json.dumps({**config, "power_limit": "400"}))
    with pytest.raises(UserError, match="made at a limit of 400 W"):
        power.measured(limited, RATED)
