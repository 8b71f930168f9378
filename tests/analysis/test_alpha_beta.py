# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The line of time over size recovers its alpha and beta, and reports when it does not fit."""

import dataclasses
from pathlib import Path
from typing import Any

import fabricate_cases as fab
import numpy as np
import passed_rows
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from jaxbench.analysis import alpha_beta

SIZES = tuple(2**k for k in range(10, 27, 2))


def fit_one(path: Path, made: list[fab.Made], **facts: Any) -> alpha_beta.AlphaBetaFit:
    (fit,) = alpha_beta.fit_all(passed_rows.rows(path, made, view="collectives", **facts))
    return fit


def line(alpha_s: float = 2e-5, beta: float = 5e9, **changes: Any) -> list[fab.Made]:
    return fab.alpha_beta("all_reduce", 4, SIZES, alpha_s=alpha_s, beta=beta, **changes)


def test_alpha_and_beta_are_recovered_with_their_intervals(tmp_path: Path) -> None:
    fit = fit_one(tmp_path, line(), rounds=10)
    assert (fit.alpha_s.value, fit.beta_bytes_per_s.value) == pytest.approx((2e-5, 5e9), rel=0.03)
    assert fit.alpha_s.lo <= 2e-5 <= fit.alpha_s.hi and fit.beta_bytes_per_s.lo <= 5e9 <= fit.beta_bytes_per_s.hi
    assert fit.half_bytes.value == pytest.approx(1e5, rel=0.05) and fit.half_bytes.has_interval
    assert fit.bus_factor == pytest.approx(1.5) and fit.misfit < 0.03 and not fit.why_not
    assert [size for size, _ in fit.residuals] == list(SIZES)
    assert fit.seconds_at(np.array([5e9]))[0] == pytest.approx(1, rel=0.03)


@pytest.mark.full
def test_the_intervals_cover_the_truth_about_as_often_as_they_say(tmp_path: Path) -> None:
    held = [0, 0]
    for seed in range(40):
        fit = fit_one(tmp_path / str(seed), line(), rounds=6, blocks=1, seed=seed)
        held[0] += fit.alpha_s.lo <= 2e-5 <= fit.alpha_s.hi
        held[1] += fit.beta_bytes_per_s.lo <= 5e9 <= fit.beta_bytes_per_s.hi
    assert min(held) >= 34, held  # 95 % of 40 is 38; 34 is less likely than 1 in 100


@given(st.floats(1e-6, 1e-3), st.floats(1e8, 1e12), st.integers(0, 2**31))
def test_no_solver_finds_a_line_that_is_nearer(alpha: float, beta: float, seed: int) -> None:
    sizes = np.array(SIZES, dtype=float)
    times = (alpha + sizes / beta) * np.random.default_rng(seed).lognormal(0, 0.5, len(sizes))

    def distances(logs: np.ndarray) -> np.ndarray:
        return np.log((np.exp(logs[0]) + sizes * np.exp(logs[1])) / times)

    solved = optimize.least_squares(distances, np.log([alpha, 1 / beta]))
    ((alpha_s, inverse),) = alpha_beta.solve(sizes, times[None])
    found = np.log((alpha_s + sizes * inverse) / times)
    assert (found**2).sum() <= (solved.fun**2).sum() * (1 + 1e-6)


def test_twice_and_half_the_time_are_equally_far_and_no_term_is_negative() -> None:
    """Times vary by a factor in both directions around a constant: the line must be at the constant, not below."""
    sizes = np.array([1.0, 2.0, 4.0, 8.0])
    ((alpha_s, inverse),) = alpha_beta.solve(sizes, np.array([[2.0, 0.5, 0.5, 2.0]]))
    line = alpha_s + sizes * inverse
    assert np.exp(np.log(line).mean()) == pytest.approx(1)
    sizes = np.array([1.0, 2.0, 4.0])
    falling, steep = alpha_beta.solve(sizes, np.array([[4.0, 2.0, 1.0], [1.0, 4.0, 16.0]]))
    assert falling[1] == 0 and falling[0] > 0
    assert steep[0] == 0 and steep[1] > 0


def test_every_size_weighs_the_same(tmp_path: Path) -> None:
    """In plain least squares the noise of the largest payload would determine alpha."""
    fit = fit_one(tmp_path, line(alpha_s=1e-5, beta=1e8), noise=0.02, rounds=10)
    assert fit.alpha_s.value == pytest.approx(1e-5, rel=0.1)


def test_time_that_does_not_grow_has_no_bandwidth_and_one_that_some_draws_do_not_see_no_interval(
    tmp_path: Path,
) -> None:
    made = [fab.collective("all_reduce", s, 4, call_s=1e-3 / (1 + i)) for i, s in enumerate(SIZES)]
    fit = fit_one(tmp_path, made)
    assert fit.why_not == "no bandwidth term: time does not grow with size" and not fit.beta_bytes_per_s.known
    fit = fit_one(tmp_path, line(beta=1e15), noise=0.02)
    assert fit.beta_bytes_per_s.known and fit.alpha_s.has_interval
    assert not fit.beta_bytes_per_s.has_interval and not fit.half_bytes.has_interval
    assert "no upper limit" in alpha_beta.sentences([fit])[0]


def test_fewer_than_three_sizes_is_a_sentence_and_few_rounds_give_no_interval(tmp_path: Path) -> None:
    fit = fit_one(tmp_path, line()[:2])
    assert fit.why_not == "2 payload sizes, and a fit needs 3"
    said = alpha_beta.sentences([fit])
    assert said == ["No fit of time against size: all_reduce float32 on 4 devices: 2 payload sizes, and a fit needs 3."]
    fit = fit_one(tmp_path, line(), rounds=2)
    assert fit.alpha_s.known and not fit.alpha_s.has_interval


def test_refused_wrong_and_partial_rows_are_not_fitted(tmp_path: Path) -> None:
    made = line()
    bad = dataclasses.replace(fab.CHECKED, ok=False)
    wrong = dataclasses.replace(made[0], call_s=1.0, record=dataclasses.replace(made[0].record, checks=(bad,)))
    partial = dataclasses.replace(made[1], call_s=1.0, rounds=2)
    lying = dataclasses.replace(made[2], call_s=1.0)
    fit = fit_one(tmp_path, [wrong, partial, lying, *made[3:]], refused=[lying.record.point])
    assert [size for size, _ in fit.residuals] == list(SIZES[3:])
    assert fit.alpha_s.value == pytest.approx(2e-5, rel=0.2)
    fit = fit_one(tmp_path, made, refused=[m.record.point for m in made])
    assert fit.why_not == "every size was refused (it lies)"


def test_a_law_that_does_not_hold_is_said_with_its_size(tmp_path: Path) -> None:
    made = [*line()[:-1], fab.collective("all_reduce", SIZES[-1], 4, call_s=3 * SIZES[-1] / 5e9)]
    fit = fit_one(tmp_path, made)
    (said,) = alpha_beta.sentences([fit])
    worst = max(fit.residuals, key=lambda r: abs(r[1]))
    assert fit.misfit == abs(worst[1]) > 0.25 and worst[0] == SIZES[-1]
    assert worst[1] > 0, "measured less line: the call took longer"
    assert "(the line is below the time at 64 MiB): the line does not describe these times" in said
    assert fit.poor and "beta is no bandwidth; 64 MiB went at 1.6" in said, "5 / 3 GB/s"


def test_oversubscribed_groups_are_fitted_and_flagged(tmp_path: Path) -> None:
    fit = fit_one(tmp_path, line(oversubscribed=True))
    assert fit.point.oversubscribed and fit.alpha_s.known
    assert "more devices than cores" in alpha_beta.sentences([fit])[0]


def test_groups_are_told_apart_and_named_after_what_lies_between_their_devices(tmp_path: Path) -> None:
    made = [*line(), *fab.alpha_beta("all_reduce", 2, SIZES, alpha_s=1e-5, beta=1e10, mesh="2x4", axis="x")]
    made += [fab.transfer("host_to_device", s, "host", "cpu:0", call_s=1e-5 + s / 2e9) for s in SIZES]
    made += [fab.transfer("host_to_device", SIZES[-1], "host", "cpu:1", call_s=1e-2)]  # for comparison only
    found = alpha_beta.fit_all(passed_rows.rows(tmp_path, made, view="collectives"))
    assert [f.name for f in found] == [
        "all_reduce float32 on 4 devices", "all_reduce float32 on 2 devices along x of 2x4",
        "host_to_device float32 host->cpu:0",
    ]  # fmt: skip
    assert [f.beta_bytes_per_s.value for f in found] == pytest.approx([5e9, 1e10, 2e9], rel=0.05)
    assert np.isnan(found[2].bus_factor)
    processes = line(group_processes=2)
    hosts = fab.alpha_beta("all_reduce", 2, SIZES, alpha_s=2e-5, beta=5e9, mesh="2x4", group_processes=2, group_hosts=2)
    fits = alpha_beta.fit_all(passed_rows.rows(tmp_path, [*processes, *hosts], view="collectives"))
    assert [fit.name for fit in fits] == [
        "all_reduce float32 on 4 devices of 2 processes", "all_reduce float32 on 2 devices along x of 2x4 of 2 hosts"
    ]  # fmt: skip
