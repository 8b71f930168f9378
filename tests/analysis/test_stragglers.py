# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A slow process is found, and named if it is slow on its own; equal processes are not accused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fabricate_ranks as fab
import numpy as np
import pytest

from jaxbench.analysis import points, run_rows, stragglers
from jaxbench.analysis.stragglers import Stragglers
from jaxbench.core.store import RunFolder
from jaxbench.statistics.bootstrap import Estimate


def rows_of(path: Path, slower: tuple[float, ...], **facts: Any) -> list[run_rows.Row]:
    run = RunFolder(fab.folder(path, slower, **facts))
    return run_rows.analyse(points.load(run), config=run.config())


def only(path: Path, slower: tuple[float, ...], **facts: Any) -> Stragglers:
    (one,) = stragglers.find(rows_of(path, slower, **facts))
    return one


@pytest.mark.parametrize("starts", [1, 5])
@pytest.mark.parametrize("count", [2, 4, 8])
def test_a_slow_process_is_found_with_its_interval(tmp_path: Path, count: int, starts: int) -> None:
    slower = (*(1.0,) * (count - 1), 1.3)
    one = only(tmp_path, slower, starts=starts)
    assert one.local is not None and one.local.slow == count - 1
    expected = 1.3 / float(np.median(slower))
    about = one.local.relative[count - 1]
    assert about.lo < expected < about.hi and about.hi - about.lo < 0.2
    assert one.local.slowest_over_median.value == pytest.approx(expected, rel=0.03)
    assert one.local.slowest_in[count - 1] == one.local.rounds == 10


def test_in_a_whole_step_all_wait_for_the_slow_one(tmp_path: Path) -> None:
    """So its own blocks hide it; differences below 1 % make no process slow."""
    one = only(tmp_path, (1.0, 1.3))
    assert one.clearest is one.local and one.step.slow is None
    assert one.step.slowest_over_median.value == pytest.approx(1, abs=0.01)


def test_without_the_part_local_a_process_is_only_said_to_end_last(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, (1.0, 1.3), local=False, own=0.8)
    (one,) = stragglers.find(rows)
    assert one.local is None and one.clearest.slow == 1
    (said,) = stragglers.sentences(rows, {})
    assert "process 1 of 2 ends its blocks last" in said and "2 is slow" not in said
    assert said.endswith("Only a step without communication shows which process is slow.")


@pytest.mark.parametrize("count", [2, 8])
def test_equal_processes_are_rarely_accused(tmp_path: Path, count: int) -> None:
    made = [only(tmp_path / str(seed), (1.0,) * count, noise=0.1, rounds=6, seed=seed) for seed in range(25)]
    assert sum(one.clearest.slow is not None for one in made) <= 1
    slowest = [one.clearest.slowest_over_median for one in made]
    assert all(1 <= each.lo < each.value for each in slowest), "one of them is always the slowest"


@pytest.mark.parametrize(("rounds", "slow"), [(9, 0), (4, None)])
def test_the_slowest_of_several_needs_more_rounds_than_one_named_in_advance(rounds: int, slow: int | None) -> None:
    """A certain one of 8 equal processes is the slowest in 3 of 4 rounds with a chance of 0.7 %, any of 5.7 %."""
    late, same = Estimate(value=1.3, lo=1.2, hi=1.4), Estimate(value=1.0, lo=0.99, hi=1.01)
    pace = stragglers.Pace(
        point="shard_map",
        relative=(late, *(same,) * 7),
        slowest_over_median=late,
        slowest_in=(rounds - 1, 1, *(0,) * 6),
        rounds=rounds,
        worker="worker",
    )
    assert pace.slow == slow


def test_a_process_that_is_slow_in_two_of_three_starts_is_not_named(tmp_path: Path) -> None:
    """Variation is between starts: all rounds of one start may share an unlucky placement."""
    one = only(tmp_path, (1.3, 1.0, 1.0), rounds=12, starts=3, slow_starts=2)
    assert one.local is not None and one.local.slowest_in[0] >= 8
    assert one.local.relative[0].lo < 1 < one.local.relative[0].value and one.local.slow is None


def test_a_difference_below_a_hundredth_is_not_worth_a_name(tmp_path: Path) -> None:
    one = only(tmp_path, (1.0, 1.0, 1.008), noise=0.0001)
    assert one.local is not None and one.local.slowest_in == (0, 0, 10)
    assert one.local.relative[2].lo > 1 and one.local.slow is None


def test_one_process_and_more_devices_than_cores_have_no_stragglers(tmp_path: Path) -> None:
    assert not stragglers.find(rows_of(tmp_path / "over", (1.0, 1.5), oversubscribed=True))
    assert stragglers.sentences(rows_of(tmp_path / "one", (1.0,), local=False), {}) == []


def test_the_sentences(tmp_path: Path) -> None:
    (named,) = stragglers.sentences(rows_of(tmp_path / "slow", (1.0, 1.3, 1.0)), {})
    assert named.startswith("shard_map/strong/3/local: process 1 of 3 is slow, 1.")
    assert named.endswith("the median's time, and is the slowest in 10 of 10 rounds.")
    rows = rows_of(tmp_path / "hosts", (1.0, 1.3, 1.0))
    workers = {"session0/w0#4": {"hosts": ["node1", "node2", "node2"]}}
    assert stragglers.sentences(rows, workers) == [named.replace("of 3 is", "of 3 (on node2) is")]
    workers["session0/w0#4"]["hosts"] = ["node1"] * 3
    assert stragglers.sentences(rows, workers) == [named], "one host needs no name"
    (none,) = stragglers.sentences(rows_of(tmp_path / "equal", (1.0, 1.0, 1.0)), {})
    assert none.startswith("No process is slow in most rounds.") and "shard_map/strong/3/local" in none
    few = only(tmp_path / "few", (1.0, 1.3), rounds=4, starts=2)
    assert few.local is not None and few.local.slow is None and not few.local.relative[1].has_interval
