# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Fits recover the law behind the records, and refuse data that they cannot describe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fabricate
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxbench.analysis import points, run_rows, scaling_laws
from jaxbench.core.store import RunFolder


def fit(path: Path, **facts: Any) -> dict[str, scaling_laws.Fit]:
    run = RunFolder(fabricate.run_folder(path, **facts))
    return {f.law: f for f in scaling_laws.fit_all(run_rows.analyse(points.load(run), config=run.config()))}


def test_amdahl_and_gustafson_are_recovered_with_intervals_that_hold_the_truth(tmp_path: Path) -> None:
    found = fit(tmp_path, law=fabricate.amdahl(0.07), rounds=10)
    for law in ("Amdahl", "Gustafson"):
        ((_, _, serial),) = found[law].parameters
        assert serial.value == pytest.approx(0.07, abs=0.012)
        assert serial.lo <= 0.07 <= serial.hi and serial.hi - serial.lo < 0.05
        assert found[law].misfit < 0.03


def test_usl_is_recovered(tmp_path: Path) -> None:
    found = fit(tmp_path, law=fabricate.usl(0.03, 0.004), noise=0.003, rounds=10, devices=(1, 2, 4, 8, 16), cores=16)
    (_, _, contention), (_, _, coherency) = found["USL"].parameters
    assert contention.value == pytest.approx(0.03, abs=0.01)
    assert coherency.value == pytest.approx(0.004, rel=0.3)
    assert coherency.lo <= 0.004 <= coherency.hi
    assert found["Amdahl"].misfit > 0.05, "another law must be seen not to fit"


@given(serial=st.floats(0, 0.9))
def test_exact_speedups_give_the_exact_share(serial: float) -> None:
    n = np.array([1.0, 2, 4, 8])
    for name in ("Amdahl", "Gustafson"):
        found = scaling_laws._solve(scaling_laws._LAWS[name], n, scaling_laws.predict(name, n, serial))
        assert found == pytest.approx([serial], abs=1e-9)


def test_superlinear_points_are_not_described_and_ideal_ones_by_the_bound(tmp_path: Path) -> None:
    """A share of 0 [0, 0] would be an answer; the law has none."""
    found = fit(tmp_path, law=lambda scaling, n: n**1.02)["Amdahl"]
    assert found.why_not == "s = 0 is at its bound, so this law does not describe the run" and not found.parameters
    ((_, _, serial),) = fit(tmp_path, law=lambda scaling, n: float(n), noise=0, drift=0)["Amdahl"].parameters
    assert serial.value == pytest.approx(0, abs=1e-9)


def test_more_devices_that_are_slower_are_no_serial_share(tmp_path: Path) -> None:
    """A run with a speed-up below 1 was reported as "s = 1 [1, 1]"."""
    found = fit(tmp_path, law=lambda scaling, n: n**-0.3, noise=0.002)
    for law in ("Amdahl", "Gustafson"):
        assert found[law].why_not == "s = 1 is at its bound, so this law does not describe the run"
    said = scaling_laws.sentences(list(found.values()))
    assert any("no fit for shard_map, s = 1 is at its bound" in sentence for sentence in said)


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"cores": 2}, "2 valid device counts, and Amdahl needs 3"),
        ({"cores": 1}, "1 valid device count, and Amdahl needs 3"),
        ({"wrong": ("shard_map/strong/2", "shard_map/strong/4")}, "2 valid device counts"),
        ({"wrong": ("shard_map/strong/1",)}, "its base shard_map/strong/1 is not a valid point"),
    ],
)
def test_too_few_reportable_points_is_a_sentence(tmp_path: Path, facts: dict[str, Any], why: str) -> None:
    found = fit(tmp_path, **facts)["Amdahl"]
    assert why in found.why_not and not found.parameters


def test_oversubscribed_points_do_not_bend_the_fit(tmp_path: Path) -> None:
    law = fabricate.amdahl(0.05)
    found = fit(tmp_path, law=lambda s, n: law(s, n) if n <= 4 else 0.3, cores=4, devices=(1, 2, 3, 4, 8), noise=0.002)
    assert found["Amdahl"].devices == (1, 2, 3, 4)
    assert found["Amdahl"].parameters[0][2].value == pytest.approx(0.05, abs=0.01)


def test_points_of_another_session_than_their_base_are_in_no_fit(tmp_path: Path) -> None:
    found = fit(tmp_path, session=lambda point, round: int(point == "shard_map/strong/8"))
    assert found["Amdahl"].devices == (1, 2, 4)
    assert found["USL"].why_not.startswith("3 valid device counts measured in the same rounds")


def test_a_solver_that_gives_up_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def give_up(matrix: np.ndarray, target: np.ndarray) -> None:
        raise RuntimeError("Maximum number of iterations reached.")

    monkeypatch.setattr(scaling_laws.optimize, "nnls", give_up)
    found = fit(tmp_path)["Amdahl"]
    assert found.why_not == "least squares did not converge" and not found.parameters


def test_laws_that_lack_a_fit_share_a_sentence(tmp_path: Path) -> None:
    said = scaling_laws.sentences(list(fit(tmp_path, cores=2).values()))
    assert "Amdahl, strong: no fit for shard_map, 2 valid device counts, and Amdahl needs 3." in said
