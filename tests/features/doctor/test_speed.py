# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The speed of cores side by side, and scatter, drift and the smallest difference of series with known answers."""

from __future__ import annotations

import fcntl
import os
import resource
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from features.doctor.fabricated import by_name
from scipy import signal, stats

from jaxbench.features.doctor import speed
from jaxbench.features.doctor.speed import CoreRates


def rates(*, together_rate: float = 100.0, second: float = 100.0, share: float = 1.0, rounds: int = 8) -> CoreRates:
    wobble = 1 + 0.01 * np.random.default_rng(0).standard_normal((rounds, 1))
    alone = np.tile([100.0, second], (rounds, 1))
    return CoreRates(alone, alone * together_rate / 100 * wobble, np.full((rounds, 2), share))


@pytest.mark.parametrize(("rate", "state"), [(100, "good"), (85, "doubtful"), (50, "bad")])
def test_two_cores_that_are_one(rate: float, state: str) -> None:
    found = speed.side_by_side(rates(together_rate=rate))
    assert found.state == state
    assert found.numbers["core_worth"] == pytest.approx(rate / 100, rel=0.02)
    assert found.numbers["core_worth_lo"] <= found.numbers["core_worth"] <= found.numbers["core_worth_hi"]


def test_few_rounds_have_no_interval_one_core_has_no_neighbour_and_a_large_machine_is_sampled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "runs at 85 % of its speed alone (3 rounds)" in speed.side_by_side(rates(together_rate=85, rounds=3)).message
    one = CoreRates(np.ones((3, 1)), np.ones((3, 1)), np.ones((3, 1)))
    monkeypatch.setattr(speed, "physical_cores", lambda: [0])
    monkeypatch.setattr(speed, "measure_cores", lambda cores, seconds: one)
    assert list(by_name(speed.contention())) == ["cores granted"]
    assert speed.spread(2) == [0, 1] and speed.spread(1) == [0]
    assert speed.spread(64)[0] == 0 and speed.spread(64)[-1] == 63 and len(speed.spread(64)) == 8


@pytest.mark.parametrize(("share", "state"), [(0.99, "good"), (0.9, "doubtful"), (0.5, "bad")])
def test_cores_that_are_not_granted(share: float, state: str) -> None:
    found = speed.granted(rates(share=share))
    assert found.state == state and found.numbers["granted_cores"] == pytest.approx(2 * share)


@pytest.mark.parametrize(("second", "state"), [(98, "good"), (70, "doubtful"), (30, "bad")])
def test_big_and_little_cores(second: float, state: str) -> None:
    assert speed.evenness(rates(second=second)).state == state


def test_workers_answer() -> None:
    measured = speed.measure_cores(speed.physical_cores()[:1], 0.1)
    assert measured.alone.shape == (3, 1) and (measured.alone > 0).all() and (measured.cpu_share > 0).all()


@pytest.mark.parametrize("code", ["pass", "import sys; sys.stdin.readline(); print('nonsense')"])
def test_a_worker_that_dies_is_a_finding(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "COMMAND", [sys.executable, "-c", code])
    found = speed.contention(0.1)
    assert [finding.state for finding in found] == ["unknown"]


def test_a_worker_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "COMMAND", [sys.executable, "-c", "import time; time.sleep(600)"])
    worker = speed.worker(0)
    with pytest.raises(speed.Silent):
        speed.ask([worker], 0.01, limit_s=0.2)
    worker.kill()
    worker.communicate()


@pytest.fixture
def may_open() -> Iterator[Callable[[int], None]]:
    """Sets how many files this process may open, until the test ends."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield lambda count: resource.setrlimit(resource.RLIMIT_NOFILE, (min(count, before[1]), before[1]))
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_worker_of_hundreds_is_heard(may_open: Callable[[int], None]) -> None:
    may_open(2048)
    with speed.worker(0) as worker:
        assert worker.stdin is not None and worker.stdout is not None
        # The pipe of core 512: `select` refuses descriptors from 1024 on.
        pipe = os.fdopen(fcntl.fcntl(worker.stdout.fileno(), fcntl.F_DUPFD, 1024), "rb", buffering=0)
        worker.stdout.close()
        worker.stdout = pipe
        try:
            assert speed.ask([worker], 0.01).shape == (1, 2)
        finally:
            worker.stdin.close()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts its open files in /proc")
def test_too_many_cores_for_the_files_of_a_process_are_a_finding(may_open: Callable[[int], None]) -> None:
    may_open(len(os.listdir("/proc/self/fd")) + 4)
    found = speed.contention(0.1)
    assert [finding.state for finding in found] == ["unknown"] and "ulimit" in found[0].advice


CALL_S, PER_BLOCK, BLOCKS = 0.02, 25, 120  # a minute of calls of 20 ms, in blocks of half a second


def series(random: np.random.Generator, shape: tuple[int, ...], *, cv: float, memory: float) -> np.ndarray:
    """AR(1) around CALL_S along the last axis, with standard deviation cv CALL_S; memory 0 is white noise."""
    noise = random.standard_normal((*shape[:-1], shape[-1] + 200)) * np.sqrt(1 - memory**2)
    return CALL_S * (1 + cv * signal.lfilter([1], [1, -memory], noise, axis=-1)[..., 200:])


def found_share(random: np.random.Generator, difference: float, *, cv: float, memory: float) -> float:
    """How often a difference between two arms, interleaved for a minute, is significant at 5 %."""
    calls = series(random, (1000, BLOCKS * PER_BLOCK), cv=cv, memory=memory)
    blocks = calls.reshape(1000, BLOCKS, PER_BLOCK).mean(axis=2)
    blocks[:, 1::2] += difference * CALL_S
    return float((stats.ttest_ind(blocks[:, ::2], blocks[:, 1::2], axis=1).pvalue < 0.05).mean())


@pytest.mark.parametrize("memory", [0.0, 0.9])
def test_a_resolvable_difference_is_found_four_times_of_five(memory: float) -> None:
    random = np.random.default_rng(0)
    calls = series(random, (4000 * PER_BLOCK,), cv=0.05, memory=memory)
    delta = speed.resolvable(calls.reshape(-1, PER_BLOCK).mean(axis=1)).value
    assert 0.75 < found_share(random, delta, cv=0.05, memory=memory) < 0.92
    assert found_share(random, 0.0, cv=0.05, memory=memory) < 0.08


def test_single_calls_as_units_would_promise_too_much() -> None:
    """Why blocks: with autocorrelated noise, the formula over single calls is too optimistic."""
    random = np.random.default_rng(0)
    calls = series(random, (100_000,), cv=0.05, memory=0.9)
    naive = speed.resolvable(calls, block_s=CALL_S).value
    blocks = speed.resolvable(calls.reshape(-1, PER_BLOCK).mean(axis=1)).value
    assert blocks > 2.5 * naive
    assert found_share(random, naive, cv=0.05, memory=0.9) < 0.4


def test_the_formula() -> None:
    blocks = np.array([1.0, 1.1, 0.9, 1.0, 1.05, 0.95])
    reach = stats.t.ppf(0.975, 118) + stats.t.ppf(0.8, 118)
    found = speed.resolvable(blocks)
    assert found.value == pytest.approx(reach * blocks.std(ddof=1) * np.sqrt(2 / 60))
    assert found.lo < found.value < found.hi
    four = speed.resolvable(blocks, total_s=240).value  # "four times as long for half of it"
    assert four == pytest.approx(found.value / 2, rel=0.02)
    assert not speed.resolvable(blocks[:4]).known


def test_the_interval_holds_the_truth() -> None:
    random = np.random.default_rng(0)
    truth = speed.resolvable(1 + 0.01 * random.standard_normal(1_000_000)).value
    held = 0
    for _ in range(500):
        found = speed.resolvable(1 + 0.01 * random.standard_normal(20))
        held += found.lo < truth < found.hi
    assert 0.91 < held / 500 < 0.99


def test_blocks_are_cut_by_wall_time_and_the_last_is_full() -> None:
    took = np.array([0.2, 0.2, 0.2, 0.3, 0.1, 0.4, 0.05])
    began = np.concatenate([[0.0], np.cumsum(took)[:-1]])
    np.testing.assert_allclose(speed.block_means(began, took), [0.2, 0.2])  # the third ends at 1.5, not 1.45
    long = np.array([1.2, 1.2])
    np.testing.assert_allclose(speed.block_means(np.array([0.0, 1.2]), long), [1.2, 1.2])


def answer(took: np.ndarray) -> dict[str, Any]:
    began = np.concatenate([[0.0], np.cumsum(took)[:-1]])
    return {"rows": 64, "device_kind": "thing", "began_s": began.tolist(), "took_s": took.tolist()}


def test_a_steady_machine_and_ones_that_are_not() -> None:
    random = np.random.default_rng(0)
    steady = by_name(speed.kernel_findings(answer(series(random, (500,), cv=0.01, memory=0))))
    assert {finding.state for finding in steady.values()} == {"good"}
    assert steady["reference kernel"].numbers["kernel_cv"] == pytest.approx(0.01, rel=0.2)
    assert steady["resolution"].numbers["blocks"] in (19, 20)
    warm = by_name(speed.kernel_findings(answer(CALL_S * np.linspace(1, 1.3, 500))))
    assert warm["drift"].state == "bad" and "slower" in warm["drift"].message
    assert warm["drift"].numbers["kernel_drift"] == pytest.approx(0.139, abs=0.01)
    assert warm["resolution"].numbers["block_autocorrelation"] > 0.5
    wild = by_name(speed.kernel_findings(answer(series(random, (500,), cv=0.2, memory=0.9))))
    assert wild["reference kernel"].state == "doubtful" and wild["resolution"].state == "bad"
    cooler = speed.drift(np.linspace(1.3, 1, 100))
    assert "faster" in cooler.message


def test_too_little_is_unknown() -> None:
    assert speed.kernel_findings(answer(np.array([0.1])))[0].state == "unknown"
    assert by_name(speed.kernel_findings(answer(np.full(10, 0.1))))["resolution"].state == "unknown"


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import os; os.abort()", "SIGABRT"),
        ("import sys; sys.stderr.write('one\\ntwo\\n'); sys.exit(3)", "did not run: two"),
        ("print('no json')", "did not run"),
        ("pass", "did not run"),
    ],
)
def test_a_kernel_that_fails_is_bad(code: str, reason: str) -> None:
    (found,) = speed.stability("cpu", 0.1, [sys.executable, "-c", code])
    assert found.state == "bad" and reason in found.message


def test_a_kernel_that_hangs_is_bad(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "START_LIMIT_S", 0.2)
    (found,) = speed.stability("cpu", 0.0, [sys.executable, "-c", "import time; time.sleep(600)"])
    assert found.state == "bad" and "timed out" in found.message


@pytest.mark.parametrize("flops_per_s", [1e9, 5e10, 1e12, 1e14])
def test_the_kernel_is_sized_to_the_device(flops_per_s: float) -> None:
    assert speed.rows_for(lambda n: 1e-6) == speed.LARGEST
    rows = speed.rows_for(lambda n: 2e-6 + 2 * n**3 / flops_per_s)
    took = 2 * rows**3 / flops_per_s
    assert rows % speed.STEP == 0 and (0.005 < took < 0.02 or rows == speed.SMALLEST)


def test_the_kernel_runs_in_a_child() -> None:
    found = speed.measure_kernel("cpu", 0.2)
    assert len(found["took_s"]) == len(found["began_s"]) > 0 and min(found["took_s"]) > 0 <= found["began_s"][0]
    (absent,) = speed.stability("tpu", 0.2)
    assert absent.state == "bad" and "a TPU was requested" in absent.message
