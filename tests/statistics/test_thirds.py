# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The last third of a point's rounds against the first: changes that are found, and noise that is none."""

from __future__ import annotations

import csv
import json
import math

import fabricate
import numpy as np
import pytest

from benchmarks import dense_rounds
from jaxbench.core import store
from jaxbench.core.store import RunFolder
from jaxbench.report import run_report, sentences
from jaxbench.statistics import thirds

ROUNDS = 36
SETS = np.arange(ROUNDS) % 6


def noise(seed, sd=0.01):
    return sd * np.random.default_rng(seed).standard_normal(ROUNDS)


def test_a_change_is_the_ratio_of_the_last_third_to_the_first():
    step = 0.1 * (np.arange(ROUNDS) >= 24)
    found = thirds.compare(SETS, step + noise(0))
    assert found.ratio.lo < math.exp(0.1) < found.ratio.hi and found.ratio.lo > 1.05
    assert found.differ(1) and found.differ(20)
    faster = thirds.compare(SETS, noise(0) - step)
    assert faster.ratio.value == pytest.approx(1 / thirds.compare(SETS, step - noise(0)).ratio.value)
    assert faster.ratio.hi < 0.95 and faster.differ(1)


def test_a_change_of_less_than_two_percent_is_no_news():
    small = thirds.compare(SETS, 0.01 * (np.arange(ROUNDS) >= 24) + noise(1, 1e-4))
    assert small.ratio.lo > 1.005 and small.chance < 1e-6 and not small.differ(1)


def test_processes_that_follow_each_other_are_no_change():
    """Their thirds differ because processes do."""
    process = np.arange(ROUNDS) // 12
    effect = np.array([0.0, 0.03, 0.06])[process]
    assert not thirds.compare(process, effect + noise(2)).differ(1)
    assert thirds.compare(np.zeros(ROUNDS, dtype=int), effect + noise(2)).ratio.value > 1.04


def test_processes_in_turns_cancel_in_the_ratio():
    effect = np.array([-0.2, 0.1, 0.15, -0.1, 0.05, 0.0])[SETS]
    alone, differing = thirds.compare(SETS, noise(3)), thirds.compare(SETS, effect + noise(3))
    assert differing.ratio.half_width < 2 * alone.ratio.half_width


def test_few_rounds_or_constant_ones_show_nothing():
    assert thirds.compare(SETS[:8], noise(4)[:8]) is None
    same = thirds.compare(SETS, np.full(ROUNDS, -3.0))
    assert (same.ratio.value, same.chance, same.differ(1)) == (1.0, 1.0, False)


def test_an_interrupted_round_is_no_change():
    values = noise(5)
    values[-1] += 3.0
    assert not thirds.compare(SETS, values).differ(1)


@pytest.mark.parametrize(("seed", "rounds"), [(6, 200), (7, 45)])
def test_more_rounds_than_are_inverted_and_counts_without_whole_thirds(seed, rounds):
    step = 0.05 * (np.arange(rounds) >= rounds - rounds // 3)
    found = thirds.compare(np.arange(rounds) % 6, step + 0.01 * np.random.default_rng(seed).standard_normal(rounds))
    assert found.differ(4) and found.ratio.value == pytest.approx(math.exp(0.05), rel=0.01)


@pytest.mark.parametrize(("kind", "effect"), [
    ("independent", 0.03),
    *(pytest.param(*each, marks=pytest.mark.full) for each in (("autoregressive 1 s", 0.0), ("heavy tails", 0.01))),
])  # fmt: skip
def test_a_quiet_run_has_not_changed(kind, effect):
    """At most 5 % of runs by design."""
    ended = dense_rounds.simulate(np.random.default_rng(8), kind, effect, 6, 20)
    assert sum(run.changed for run in ended) <= 2


def test_a_run_on_a_machine_that_slows_down_says_so():
    ended = dense_rounds.simulate(np.random.default_rng(9), "drift", 0.01, 6, 10)
    assert sum(run.changed for run in ended) >= 8


def reported(path, *, slow):
    """The report of a run of 30 rounds in six sets. slow: the last ten of two devices took this many times as long."""
    fabricate.run_folder(path, rounds=30, devices=(1, 2), scalings=("strong",), drift=0.0)
    lines = [json.loads(line) for line in (path / store.RECORDS).read_text().splitlines()]
    for line in lines:
        if line["kind"] == "round":
            late = slow if line["point"].endswith("/2") and line["round"] >= 20 else 1.0
            line |= {"worker": f"session0/w0#{line['round'] % 6}", "block_s": [s * late for s in line["block_s"]]}
    (path / store.RECORDS).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return run_report.find(RunFolder(path))


def test_the_page_names_the_point_and_the_ratio_with_its_interval(tmp_path):
    report = reported(tmp_path / "slow", slow=1.2)
    (section,) = [each for each in report.sections() if each.heading == "Change during the run"]
    (sentence,) = section.sentences
    begin, end = "shard_map/strong/2 became slower during the run: the last third of its rounds took 1.2", "explain."
    assert sentence.startswith(begin) and end in sentence and "other" not in sentence
    (sentence,) = sentences.changes(reported(tmp_path / "fast", slow=0.8).rows)
    assert "became faster" in sentence and "took 0.8" in sentence


def test_a_quiet_page_does_not_mention_it(tmp_path):
    report = reported(tmp_path, slow=1.0)
    assert report.rows[0].timing.rests_on == "processes and time"
    assert "Change during the run" not in [each.heading for each in report.sections()]


def test_several_points_that_changed_are_one_sentence(tmp_path):
    rows = reported(tmp_path, slow=1.2).rows
    (sentence,) = sentences.changes([*rows, *(each for each in rows if each.point.devices == 2)])
    assert sentence.count("shard_map") == 1 and "1 of the other 2 points changed as well." in sentence


def test_the_table_has_the_ratio(tmp_path):
    report = reported(tmp_path, slow=1.2)
    for row, line in zip(report.rows, csv.DictReader(report.csv().splitlines()), strict=True):
        found = [float(line[f"last_over_first{end}"]) for end in ("_lo", "", "_hi")]
        assert found == pytest.approx([row.thirds.ratio.lo, row.thirds.ratio.value, row.thirds.ratio.hi], rel=1e-6)
