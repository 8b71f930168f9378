# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Contention between cores: judged from rates, and measured by processes that may die or hang."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from doctor.fabricated import by_name

from jaxbench.doctor import core_contention
from jaxbench.doctor.core_contention import CoreRates


def rates(*, together_rate: float = 100.0, second: float = 100.0, share: float = 1.0, rounds: int = 8) -> CoreRates:
    wobble = 1 + 0.01 * np.random.default_rng(0).standard_normal((rounds, 1))
    alone = np.tile([100.0, second], (rounds, 1))
    return CoreRates(alone, alone * together_rate / 100 * wobble, np.full((rounds, 2), share))


@pytest.mark.parametrize(("rate", "state"), [(100, "good"), (85, "doubtful"), (50, "bad")])
def test_two_cores_that_are_one(rate: float, state: str) -> None:
    found = core_contention.side_by_side(rates(together_rate=rate))
    assert found.state == state
    assert found.numbers["core_worth"] == pytest.approx(rate / 100, rel=0.02)
    assert found.numbers["core_worth_lo"] <= found.numbers["core_worth"] <= found.numbers["core_worth_hi"]


@pytest.mark.parametrize(("share", "state"), [(0.99, "good"), (0.9, "doubtful"), (0.5, "bad")])
def test_cores_that_are_not_granted(share: float, state: str) -> None:
    found = core_contention.granted(rates(share=share))
    assert found.state == state and found.numbers["granted_cores"] == pytest.approx(2 * share)


@pytest.mark.parametrize(("second", "state"), [(98, "good"), (70, "doubtful"), (30, "bad")])
def test_big_and_little_cores(second: float, state: str) -> None:
    assert core_contention.evenness(rates(second=second)).state == state


def test_one_core_has_no_neighbour(monkeypatch: pytest.MonkeyPatch) -> None:
    one = CoreRates(np.ones((3, 1)), np.ones((3, 1)), np.ones((3, 1)))
    monkeypatch.setattr(core_contention, "physical_cores", lambda: [0])
    monkeypatch.setattr(core_contention, "measure", lambda cores, seconds: one)
    assert list(by_name(core_contention.examine())) == ["cores granted"]


def test_a_large_machine_is_sampled() -> None:
    assert core_contention.spread(2) == [0, 1] and core_contention.spread(1) == [0]
    assert (
        core_contention.spread(64)[0] == 0
        and core_contention.spread(64)[-1] == 63
        and len(core_contention.spread(64)) == 8
    )


def test_workers_answer() -> None:
    measured = core_contention.measure(core_contention.physical_cores()[:1], 0.1)
    assert measured.alone.shape == (3, 1) and (measured.alone > 0).all() and (measured.cpu_share > 0).all()


@pytest.mark.parametrize("code", ["pass", "import sys; sys.stdin.readline(); print('nonsense')"])
def test_a_worker_that_dies_is_a_finding(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_contention, "COMMAND", [sys.executable, "-c", code])
    found = core_contention.examine(0.1)
    assert [finding.state for finding in found] == ["unknown"]


def test_a_worker_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_contention, "COMMAND", [sys.executable, "-c", "import time; time.sleep(600)"])
    worker = core_contention.worker(0)
    with pytest.raises(core_contention.Silent):
        core_contention.ask([worker], 0.01, limit_s=0.2)
    worker.kill()
    worker.communicate()
