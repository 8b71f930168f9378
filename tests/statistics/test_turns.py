# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Interleaved rounds of several processes: coverage of their intervals, and compatibility with older runs."""

from __future__ import annotations

import csv
import dataclasses
import math
from pathlib import Path

import fabricate
import numpy as np
import pytest

from benchmarks import dense_rounds, waterfall_rounds
from jaxbench.analysis import points, run_rows, waterfall
from jaxbench.config import BUDGET_S
from jaxbench.core.store import RunFolder
from jaxbench.statistics import bootstrap, paired_ratio, turns
from jaxbench.statistics.bootstrap import BootstrapSamples, estimate

FIGURES = Path(__file__).parents[2] / "docs" / "figures"
NUMBERS = ("step_s", "step_s_lo", "step_s_hi", "efficiency", "efficiency_lo", "efficiency_hi", "clock_ratio_lo")
IN_TURNS = [(r, str(r % 4)) for r in range(56)]


def in_turns(times):
    """The bootstrap samples of these points. times: (points, 56) seconds."""
    resampling = BootstrapSamples(range(56), IN_TURNS)
    resampling.fit([(range(56), np.log(each)) for each in times], [(1, 0)])
    return resampling


def centres(resampling, times):
    return [resampling.centre(each, np.arange(56), range(56)) for each in times]


def test_no_interval_of_a_mean_is_many_times_wider_than_the_range_of_its_rounds():
    """For all kinds of rounds: noise, a random walk, processes that differ by much or only by it, outliers."""
    chance, normal = np.random.default_rng(1), np.random.default_rng(2).standard_normal
    for number in range(200):
        processes, each = int(chance.integers(1, 7)), int(chance.integers(3, 8))
        process = np.tile(np.arange(processes), each)
        rounds = len(process)
        differing = normal(processes)[process]
        kinds = (
            lambda e: e, np.cumsum, lambda e, of=differing: 10 * of + e / 10, lambda e, of=differing: of + 1e-6 * e,
            lambda e: e + 100 * (np.arange(len(e)) % 10 == 0),
        )  # fmt: skip
        series = [(np.arange(rounds), kinds[number % len(kinds)](normal(rounds))) for _ in range(2)]
        fitted = turns.fit(process, series, [(1, 0)], sets=processes >= 3)
        means = [fitted.mean(*one) for one in series]
        for mean, (_, values) in zip(means, series, strict=True):
            assert turns.half_width(mean, turns.Mean(value=0.0, loadings=np.zeros(rounds))) <= 2 * np.ptp(values)
        assert turns.half_width(*means) <= 2 * np.ptp(series[1][1] - series[0][1])


@pytest.mark.parametrize("name", ["ladder", "remat", "zero"])
def test_runs_with_processes_in_sequence_keep_their_numbers(name):
    run = RunFolder(FIGURES / name)
    rows = run_rows.analyse(points.load(run), config=run.config(), spread=bootstrap.read_spread(run.path))
    kept = list(csv.DictReader((run.path / "summary.csv").read_text().splitlines()))
    for row, line in zip(rows, kept, strict=True):
        assert row.timing.resampling.turns is None
        time, share, clock = row.timing.step_s, row.efficiency, row.timing.clock_ratio
        found = (time.value, time.lo, time.hi, share.value, share.lo, share.hi, clock.lo)
        for column, value in zip(NUMBERS, found, strict=True):
            assert float(line[column] or "nan") == pytest.approx(value, rel=1e-8, nan_ok=True), column


def test_an_outlier_counts_for_no_more_than_the_fence_and_a_fifth_of_the_rounds_for_what_it_is():
    values = np.array([1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1000])
    mean, each = turns.influences(values)
    assert mean == (55 + 14) / 11 and each.sum() == pytest.approx(0) and each[-1] == (14 - mean) / 11
    assert turns.influences(values[:9])[0] == 5, "too few to tell"
    two = np.repeat([0.0, 1.0], [80, 20])
    assert turns.influences(two)[0] == pytest.approx(0.2)


def test_a_common_change_of_two_points_cancels_in_their_ratio():
    random = np.random.default_rng(0)
    drift = np.exp(0.3 * np.sin(np.arange(56) / 9) + 0.1 * random.standard_normal(56))
    times = np.stack([drift, 2 * drift * np.exp(0.01 * random.standard_normal(56))])
    resampling = in_turns(times)
    (a, of_a), (b, of_b) = centres(resampling, times)
    alone, ratio = estimate(a, of_a, rounds=56), estimate(b / a, of_b / of_a, rounds=56)
    assert ratio.lo < 2 < ratio.hi and ratio.hi / ratio.lo < 1.02 and alone.hi / alone.lo > 1.1


def test_an_interval_of_draws_is_the_half_width_of_the_means():
    random = np.random.default_rng(1)
    times = np.exp(0.1 * random.standard_normal((2, 56)))
    resampling = in_turns(times)
    (a, of_a), (b, of_b) = centres(resampling, times)
    found = estimate(a / b, of_a / of_b, rounds=56)
    half = turns.half_width(*(resampling.mean(np.log(each), range(56)) for each in times))
    assert math.log(found.hi / found.lo) / 2 == pytest.approx(half, rel=0.05)


def test_noise_that_lasts_widens_an_interval_and_noise_that_does_not_counts_once():
    random = np.random.default_rng(2)
    fast = 0.1 * random.standard_normal((2, 56))
    slow = np.repeat(0.1 * random.standard_normal((2, 8)), 7, axis=1)
    halves = {}
    for name, noise in (("fast", fast), ("slow", slow)):
        resampling = in_turns(np.exp(noise))
        halves[name] = turns.half_width(*(resampling.mean(each, range(56)) for each in noise))
    se = 0.1 * (2 / 56) ** 0.5
    assert 2 * se < halves["fast"] < 5 * se and halves["slow"] > 2 * halves["fast"]
    assert resampling.turns.own > 3 * in_turns(np.exp(fast)).turns.own


def test_how_processes_differ_is_seen_in_rounds_in_turns():
    effect = np.array([-0.05, 0.02, 0.04, -0.01])[np.arange(56) % 4]
    values = effect + 0.001 * np.random.default_rng(3).standard_normal(56)
    resampling = in_turns(np.exp([values, np.zeros(56)]))
    mean = resampling.mean(values, range(56))
    expected = 3.182 * np.std(effect[:4], ddof=1) / 2  # Student's with 3 degrees of freedom
    assert 1.96 * np.linalg.norm(mean.loadings) == pytest.approx(expected, rel=0.02)


def test_two_processes_in_turns_cannot_show_how_they_differ():
    resampling = BootstrapSamples(range(20), [(r, str(r % 2)) for r in range(20)])
    assert resampling.turns is not None and np.std(np.log(resampling.differing("a", range(20)))) > 0.01
    assert not BootstrapSamples(range(20), [(r, str(r // 10)) for r in range(20)]).turns


def test_a_best_row_is_chosen_and_measured_by_all_processes(tmp_path):
    """If every second round selected, two of four sets would select and the other two would measure."""
    run = RunFolder(
        fabricate.run_folder(tmp_path, rounds=24, devices=(1,), scalings=("strong",), strategies=("a", "b"))
    )
    loaded = []
    for point in points.load(run):
        rounds = tuple(dataclasses.replace(each, worker=f"session0/w0#{each.round % 4}") for each in point.rounds)
        loaded.append(dataclasses.replace(point, rounds=rounds))
    rows = run_rows.analyse(loaded, config={})
    assert rows[0].timing.rests_on == "processes and time"
    best = paired_ratio.best(rows, lambda row: 1.0)
    assert best is not None and best.rounds == 12 and best.rate.has_interval
    assert (
        rows[0]
        .timing.resampling.only([(0, r) for r in range(24) if r // 4 % 2 == 0])
        .processes([(0, r) for r in range(24) if r // 4 % 2 == 0])
        == 4
    )
    assert best.rate.hi / best.rate.lo < 1.1


@pytest.mark.parametrize(("kind", "effect"), [("independent", 0.03), ("bursts 1 s", 0.0), ("autoregressive 5 s", 0.01)])
def test_intervals_of_turns_cover_what_they_say(kind, effect):
    """With the allocation and the end of a run. With lasting noise, a bootstrap over sets alone covers 71 of 100."""
    ended = dense_rounds.simulate(np.random.default_rng(7), kind, effect, 4, 60)
    assert np.mean([run.hits for run in ended]) >= 0.91
    assert 25 <= min(run.spent_s for run in ended) and max(run.spent_s for run in ended) <= BUDGET_S


def test_the_second_clock_uses_the_rounds_that_have_both(tmp_path):
    """A visit without a block of 2 K steps has no slope, and its slow block is not compared with a slope."""
    run = RunFolder(fabricate.run_folder(tmp_path, rounds=20, devices=(1, 2), noise=0.001))
    loaded = []
    for point in points.load(run):
        rounds = []
        for each in point.rounds:
            slow = (
                {} if each.round % 3 == 0 else {"double_block_s": (), "block_s": tuple(1.5 * s for s in each.block_s)}
            )
            rounds.append(dataclasses.replace(each, worker=f"session0/w0#{each.round % 4}", **slow))
        loaded.append(dataclasses.replace(point, rounds=tuple(rounds)))
    for row in run_rows.analyse(loaded, config={}):
        assert row.timing.resampling.turns is not None
        assert row.timing.clock_ratio.value == pytest.approx(1, abs=0.02) and row.gate == "passed"


def test_what_points_share_says_nothing_about_a_difference_of_times():
    """The slope of the second clock is a difference of two times, and what points share is a share of a time."""
    random = np.random.default_rng(4)
    drift = 0.1 * np.sin(np.arange(56) / 9)
    times = 0.03 * np.exp(drift + 0.01 * random.standard_normal((2, 56)))
    resampling = in_turns(times)
    slopes = times[0] * (1 + 0.01 * random.standard_normal(56))
    half = 1.96 * np.linalg.norm(resampling.mean(slopes, range(56), logs=False).loadings)
    assert half < 0.1 * slopes.mean() < 1.96 * np.linalg.norm(resampling.mean(slopes, range(56)).loadings)


def test_how_processes_differ_is_seen_in_more_rounds_than_are_inverted():
    effect = np.array([-0.05, 0.02, 0.04, -0.01])[np.arange(256) % 4]
    values = effect + 0.02 * np.random.default_rng(5).standard_normal(256)
    resampling = BootstrapSamples(range(256), [(r, str(r % 4)) for r in range(256)])
    resampling.fit([(range(256), values), (range(256), np.zeros(256))], [(1, 0)])
    expected = 3.182 * np.std(effect[:4], ddof=1) / 2  # Student's with 3 degrees of freedom
    assert 1.96 * np.linalg.norm(resampling.mean(values, range(256)).loadings) == pytest.approx(expected, rel=0.15)


SIX_SETS = [(r, str(r % 6)) for r in range(36)]
PLACES = [6, 7, 8, 12, 13, 14]  # of the parts of a waterfall: three sets, twice each


def of_six_sets(values):
    """The samples of a run of 36 rounds. values: the logarithm of the ratio of its two points, by round."""
    resampling = BootstrapSamples(range(36), SIX_SETS)
    resampling.fit([(range(36), np.zeros(36)), (range(36), values)], [(1, 0)])
    return resampling


def half(mean):
    return turns.half_width(mean, turns.Mean(value=0.0, loadings=np.zeros_like(mean.loadings)))


def test_the_interval_of_a_few_rounds_is_students_over_their_own_processes():
    """The run has six processes with six rounds each, the waterfall three with two each."""
    effect = np.array([-0.05, 0.02, 0.04, -0.01, 0.03, -0.03])[np.arange(36) % 6]
    values = effect + 0.001 * np.random.default_rng(6).standard_normal(36)
    resampling = of_six_sets(values)
    by_own, by_run = (half(each.mean(values[PLACES], PLACES)) for each in (resampling.at(PLACES), resampling))
    assert by_own == pytest.approx(4.303 * np.std(effect[:3], ddof=1) / math.sqrt(3), rel=0.03)
    assert by_own < 0.85 * by_run


def test_a_few_rounds_close_together_know_what_their_common_noise_hides():
    """All of them lie in one spell of slow rounds, so they agree, and their mean is not that of the run."""
    spells = 0.1 * np.repeat([1.0, -1.0, 1.0, -1.0, -1.0, 1.0], 6)
    values = spells + 0.01 * np.random.default_rng(7).standard_normal(36)
    resampling = of_six_sets(values)
    alone = 2.571 * np.std(values[6:12], ddof=1) / math.sqrt(6)
    together = half(resampling.at(range(6, 12)).mean(values[6:12], range(6, 12)))
    apart = half(resampling.at(range(0, 36, 7)).mean(values[::7], range(0, 36, 7)))
    assert together > 3 * alone
    assert apart < 1.6 * 2.571 * np.std(values[::7], ddof=1) / math.sqrt(6)


def test_rounds_of_two_processes_keep_the_factor_of_the_run():
    resampling = of_six_sets(0.1 * np.random.default_rng(8).standard_normal(36))
    assert resampling.at([0, 1, 6, 7, 12, 13]) is resampling


def test_the_factors_of_a_waterfall_have_the_uncertainty_of_their_own_rounds():
    run = RunFolder(FIGURES / "cnn")
    rows = run_rows.analyse(points.load(run), config=run.config(), spread=bootstrap.read_spread(run.path))
    found = waterfall.find(rows)
    assert [(each.rounds, each.processes) for each in found] == [(6, 3), (6, 3)]
    for each in found:
        parts = [each.row.ablations[name] for name in ("alone", "local") if name in each.row.ablations]
        both = [parts[-1], each.row]  # all factors share six rounds: those of any part
        by_own, by_run = (paired_ratio.times(both, own=own).ratio() for own in (True, False))
        assert by_own.value == by_run.value and 0.6 < by_own.half_width / by_run.half_width < 0.9
        contention = each.factor(waterfall.CONTENTION)
        assert contention.value.half_width < (0.5 * contention.value.value)


@pytest.mark.parametrize(("kind", "effect"), [
    ("autoregressive 5 s", "3 %"),
    *(pytest.param(*each, marks=pytest.mark.full) for each in (("drift", "3 % of the parts"), ("independent", "0 %"))),
])  # fmt: skip
def test_the_intervals_of_factors_cover_what_they_say(kind, effect):
    cells = waterfall_rounds.simulate(np.random.default_rng(11), kind, effect, 40)
    assert not cells[4].hits, "four rounds have no interval"
    for count in waterfall_rounds.ROUNDS[1:]:
        assert np.mean(cells[count].hits) >= 0.93 and np.median(cells[count].narrower) < 0.95, count
