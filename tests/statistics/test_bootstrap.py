# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The bootstrap against plain definitions, and its coverage of the truth."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import fabricate
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thin import thin

from benchmarks import interval_coverage as simulation
from jaxbench.analysis import points, run_rows
from jaxbench.core.store import RunFolder
from jaxbench.errors import UserError
from jaxbench.records import documents
from jaxbench.statistics import bootstrap, timing
from jaxbench.statistics.bootstrap import (
    ASSUMED,
    BootstrapSamples,
    Estimate,
    RunVariance,
    estimate,
    weighted_median,
    widened,
)


@given(rounds=st.integers(1, 12), samples=st.integers(1, 300), seed=st.integers(0, 2**16))
@settings(max_examples=40, deadline=None)
def test_weighted_median_is_the_median_of_repeated_samples(rounds: int, samples: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    values = random.choice(random.normal(size=max(1, samples // 2)), size=samples)  # with ties
    owners = random.integers(0, rounds, samples)
    weights = BootstrapSamples(range(rounds), draws=20, seed=seed).weights
    for weight, found in zip(weights, weighted_median(values, owners, weights), strict=True):
        repeated = np.repeat(values, weight[owners].astype(int))
        if len(repeated):
            assert found == np.median(repeated)
        else:
            assert math.isnan(found)


def test_draws_are_seeded_and_whole() -> None:
    one, two = BootstrapSamples([5, 3, 9, 3]), BootstrapSamples([9, 5, 3])
    assert one.units == [3, 5, 9]
    assert np.array_equal(one.weights, two.weights)
    assert (one.weights.sum(axis=1) == 3).all()
    assert np.array_equal(one.of([9]), one.weights[:, 2:])


def test_a_round_of_another_session_is_another_unit() -> None:
    draws = BootstrapSamples([(0, 3), (1, 3), (0, 4)])
    assert draws.weights.shape[1] == 3
    assert not np.array_equal(draws.of([(0, 3)]), draws.of([(1, 3)]))


KNOWN = RunVariance(sd=0.02, df=1e6, source="known")


def test_rounds_that_share_a_process_are_resampled_together() -> None:
    """A change of another worker's name does not split a process of the first worker."""
    workers = [(r, f"cpu1#{r // 2}") for r in range(8)] + [(r, "cpu2") for r in (3, 4)]
    draws = BootstrapSamples(range(8), workers)
    assert draws.process.tolist() == [0, 0, 1, 1, 1, 1, 2, 2]
    assert draws.processes([0, 1]) == 1 and draws.processes(draws.units) == 3
    chosen = draws.of(draws.units)
    assert (chosen[:, 0] == chosen[:, 1]).all() and (chosen[:, 2:6] == chosen[:, 2:3]).all()
    assert not (BootstrapSamples(range(8)).of(range(8))[:, 0] == BootstrapSamples(range(8)).of(range(8))[:, 1]).all()


def test_the_centre_weighs_processes_alike() -> None:
    draws = BootstrapSamples(range(4), [(0, "a"), (1, "b"), (2, "c"), (3, "c")])
    value, drawn = draws.centre(np.array([1.0, 2, 4, 4]), np.arange(4), draws.units)
    assert value == pytest.approx(2) and np.median(drawn) == pytest.approx(2, rel=0.1)
    one, _ = BootstrapSamples(range(4)).centre(np.array([1.0, 2, 4, 4]), np.arange(4), range(4))
    assert one == pytest.approx(3)  # the plain median


def test_one_process_cannot_show_how_processes_differ() -> None:
    """The variation is added to each point separately, so it does not cancel in a ratio; two processes need less."""
    single = BootstrapSamples(range(6), spread=KNOWN)
    a, b = (np.log(single.differing(name, single.units)) for name in "ab")
    assert np.std(a) == pytest.approx(0.02, rel=0.1) and np.std(a - b) == pytest.approx(0.02 * 2**0.5, rel=0.1)
    assert np.array_equal(a, np.log(single.differing("a", single.units)))
    two = BootstrapSamples(range(6), [(r, str(r // 3)) for r in range(6)], spread=KNOWN)
    assert np.std(np.log(two.differing("a", two.units))) == pytest.approx(0.02 / 2**0.5, rel=0.1)
    three = BootstrapSamples(range(6), [(r, str(r // 2)) for r in range(6)], spread=KNOWN)
    assert (three.differing("a", three.units) == 1).all()
    assert single.only([1, 2]).units == [1, 2] and single.only([1, 2]).spread is KNOWN


def test_a_spread_from_few_processes_is_doubted() -> None:
    unsure = BootstrapSamples(range(6), spread=RunVariance(sd=0.02, df=2.5, source="few"))
    sure = BootstrapSamples(range(6), spread=KNOWN)
    ends = [np.quantile(np.log(draws.differing("a", draws.units)), 0.975) for draws in (unsure, sure)]
    assert ends[0] > 1.5 * ends[1]


def test_no_interval_below_five_rounds() -> None:
    draws = np.linspace(0, 2, 100)
    assert not estimate(1.0, draws, rounds=4).has_interval
    assert estimate(1.0, draws, rounds=5).has_interval
    assert not estimate(1.0, np.full(10, np.nan), rounds=9).has_interval
    assert not estimate(math.nan, draws, rounds=9).has_interval
    assert not Estimate().known


def test_draws_of_few_units_are_moved_away_from_the_value() -> None:
    draws = np.exp(0.01 * np.random.default_rng(0).normal(size=2000))
    few, many = (estimate(1.0, widened(1.0, draws, count), rounds=count) for count in (5, 500))
    assert few.lo < many.lo < 1 < many.hi < few.hi
    assert (many.lo, many.hi) == pytest.approx((0.98, 1.02), abs=0.002)
    assert estimate(9.0, draws, rounds=5).hi == 9.0
    slopes = widened(0.5, np.array([-1.0, 0.5, 2.0]), 5)  # of a clock: may be negative
    assert slopes[1] == 0.5 and slopes[0] < -1 and slopes[2] > 2


@pytest.mark.parametrize(("kind", "processes", "rounds"), thin([
    ("noise", 1, 10), ("drift", 3, 10), ("heavy tails", 5, 10), ("two modes", 5, 5), ("two modes", 3, 30),
    ("drift", 1, 30), ("noise", 5, 30),
], 3))  # fmt: skip
@pytest.mark.parametrize("effect", [0.0, 0.05])
def test_intervals_cover_what_they_say(kind: str, processes: int, rounds: int, effect: float) -> None:
    """Resampling rounds under process effects of 3 % covered 30 times in 100."""
    assert simulation.coverage(kind, effect, processes, rounds, 300) >= 0.92


def test_there_is_nothing_to_cover_below_five_rounds() -> None:
    assert math.isnan(simulation.coverage("noise", 0.0, 3, 4, 10))


def test_devices_that_share_cores_do_not_make_one_process_of_several(tmp_path: Path) -> None:
    """One process measures them in the first three rounds; processes of other points are replaced after two."""
    run = RunFolder(fabricate.run_folder(tmp_path, devices=(1, 2, 4), cores=2, rounds=6))

    def measured(point: Any) -> Any:
        rounds = point.rounds[:3] if point.oversubscribed else point.rounds
        name = "session0/cpu4" if point.oversubscribed else f"session0/cpu{point.devices}#%d"
        workers = [name % (each.round // 2) if "%" in name else name for each in rounds]
        changed = (dataclasses.replace(each, worker=worker) for each, worker in zip(rounds, workers, strict=True))
        return dataclasses.replace(point, rounds=tuple(changed))

    loaded = [measured(point) for point in points.load(run)]
    draws = timing.resampling_of(loaded)
    assert draws.processes(loaded[0].units) == 3


def test_an_interval_follows_its_value_through_a_ratio() -> None:
    seconds = Estimate(value=4.0, lo=2.0, hi=8.0)
    assert seconds.over(4.0) == Estimate(value=1.0, lo=0.5, hi=2.0)
    assert seconds.times(2.0) == Estimate(value=8.0, lo=4.0, hi=16.0)
    assert seconds.under(16.0) == Estimate(value=4.0, lo=2.0, hi=8.0)  # a rate: the longest time is the lowest


def test_unknown_estimates_are_equal_on_every_python() -> None:
    alone, other = Estimate(value=1.0), Estimate(value=1.0, lo=float("nan"), hi=float("nan"))
    assert alone == other and hash(alone) == hash(other) and Estimate() == Estimate()
    assert alone != Estimate(value=1.0, lo=0.9, hi=1.1) and alone != 1.0


CALIBRATED = RunVariance(sd=0.02, df=7, source="calibrated")


def analyse(path: Path, **facts: Any) -> dict[str, run_rows.Row]:
    run = RunFolder(fabricate.run_folder(path, **facts))
    return {row.point_id: row for row in run_rows.analyse(points.load(run), config=run.config())}


@pytest.mark.parametrize(
    ("processes", "known", "rests_on"),
    [(1, ASSUMED, "rounds + assumed"), (2, CALIBRATED, "rounds + calibrated"), (3, CALIBRATED, "processes")],
)
def test_an_interval_says_what_it_rests_on(tmp_path: Path, processes: int, known: RunVariance, rests_on: str) -> None:
    run = RunFolder(fabricate.run_folder(tmp_path, rounds=6, processes=processes))
    row = run_rows.analyse(points.load(run), config={}, spread=known)[1]
    assert (row.timing.processes, row.timing.rests_on) == (processes, rests_on)
    assert (row.timing.inside.step_s == row.timing.step_s) is (processes == 3)


def test_one_process_is_less_certain_than_its_rounds(tmp_path: Path) -> None:
    """Its interval was as narrow as with as many processes; for effects of 3 %, resampled rounds covered 30 %."""
    one, many = (analyse(tmp_path / str(n), rounds=6, processes=n, noise=0.002)["shard_map/strong/2"] for n in (1, 6))
    wide, narrow = (row.speedup.hi / row.speedup.lo for row in (one, many))
    assert wide > 1.15 and narrow < 1.05
    assert one.timing.clock_ratio.hi - one.timing.clock_ratio.lo < 0.1, "both clocks are of one process"


def test_images_a_second_and_speedup_agree(tmp_path: Path) -> None:
    """One was a ratio of totals, the other a ratio of medians: a page showed both 1.26 and 1.15."""
    rows = analyse(tmp_path, rounds=6, processes=3, noise=0.3)
    base, row = rows["shard_map/strong/1"], rows["shard_map/strong/2"]
    assert row.timing.examples_per_s.value == pytest.approx(256 / row.timing.step_s.value)
    ratio = row.timing.examples_per_s.value / base.timing.examples_per_s.value
    assert row.speedup.value == pytest.approx(ratio)


def test_a_spread_that_was_kept_with_a_run_is_read(tmp_path: Path) -> None:
    assert bootstrap.read_spread(tmp_path) is ASSUMED
    (tmp_path / bootstrap.SPREAD).write_text(json.dumps(dataclasses.asdict(CALIBRATED)))
    assert bootstrap.read_spread(tmp_path) == CALIBRATED
    (tmp_path / bootstrap.SPREAD).write_text(json.dumps({**dataclasses.asdict(CALIBRATED), "sd": -1}))
    with pytest.raises(UserError, match="is damaged"):
        bootstrap.read_spread(tmp_path)


def test_an_edited_spread_makes_no_narrower_interval(tmp_path: Path) -> None:
    held = dataclasses.asdict(CALIBRATED)
    path = tmp_path / bootstrap.SPREAD
    path.write_text(json.dumps({**held, "sha256": documents.digest(held)}))
    assert bootstrap.read_spread(tmp_path) == CALIBRATED
    path.write_text(json.dumps({**held, "sd": 1e-6, "sha256": documents.digest(held)}))
    with pytest.raises(UserError, match="its numbers were changed after it was written"):
        bootstrap.read_spread(tmp_path)


def test_students_interval_has_one_degree_of_freedom_less_than_values() -> None:
    """Tables of Student's t have 4.3027 for 2 degrees of freedom and 97.5 %."""
    found = bootstrap.student([1.0, 2.0, 3.0])
    half = 4.3027 / math.sqrt(3)
    assert (found.lo, found.value, found.hi) == pytest.approx((2 - half, 2, 2 + half), rel=1e-4)
    assert not bootstrap.student([5.0]).has_interval
