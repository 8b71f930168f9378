# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Intervals and verdicts: on simulated runs with a known truth (seeds are fixed), on measured pairs and gates."""

from __future__ import annotations

import dataclasses
import io
import json
import math
import random
import subprocess
import time

import numpy as np
import pytest
from doorway import QUICK_MLP, command, environment, jaxbench
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from rich.console import Console
from thin import thin

import jaxbench as jb
from benchmarks import verdicts as simulations
from benchmarks.verdicts import of_times
from jaxbench.core import schema
from jaxbench.core.store import RunFolder
from jaxbench.errors import UserError
from jaxbench.features.comparison import ab, judge, ratio, sequential
from jaxbench.features.comparison.judge import CANNOT_TELL, FASTER, SAME, SLOWER
from jaxbench.features.comparison.ratio import Ratio
from jaxbench.records import documents
from jaxbench.statistics.bootstrap import ASSUMED, CALIBRATED, RunVariance
from jaxbench.sweep import progress

STEP_S, THROUGHPUT = judge.METRICS["step_s"], judge.METRICS["throughput"]


@pytest.mark.parametrize("facts", thin([*simulations.ALARMS.values()], [*simulations.ALARMS.values()][2:12:6]))
def test_tables_of_nothing_raise_few_false_alarms(facts):
    """Earlier, a day effect of 3 % raised them in 60 of 100 tables, drift in 13 to 33, one process in 30 to 63."""
    assert simulations.tables(100, **facts)["alarm"] <= 9


@pytest.mark.parametrize("by", ["step_s", "throughput"])
def test_fifteen_percent_slower_is_found_without_a_calibration(by):
    assert simulations.tables(60, effect=1.15, by=by)[SLOWER] >= 57


def test_ten_percent_slower_is_found_with_one():
    found = simulations.tables(60, **simulations.POWER["10 % slower, days differ by 1 %, calibrated in 8 sessions"])
    assert found[SLOWER] >= 57


@pytest.mark.parametrize("pairs", thin([*simulations.SEQUENCES.values()]))
def test_looking_again_and_again_keeps_the_error_rate(pairs):
    """Pairs of two modes raised an alarm in 24 of 100, autocorrelated ones in 7 to 61."""
    nothing, _ = simulations.sequences(200, pairs)
    assert nothing[SLOWER] + nothing[FASTER] <= 0.08 * 200


ELEVEN = np.log([0.828, 0.824, 0.826, 0.821, 0.815, 0.811, 0.803, 0.801, 0.804, 0.812, 0.809])


def test_eleven_pairs_that_agree_have_an_interval_like_their_spread():
    """It was 0.814 [0.001, 444.785], "about 10274 more pairs": they were worth 1.46 independent ones."""
    alpha = judge.ALPHA * sequential.share(sequential.looks(len(ELEVEN))) / 2 / 2
    found = sequential.of_pairs(ELEVEN)
    assert judge.decide(found, alpha, 0.02) == FASTER
    shown = found.estimate(alpha)
    assert 0.7 < shown.lo < 0.81 and 0.82 < shown.hi < 0.95


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    logs=arrays(float, st.integers(2, 40), elements=st.floats(-3, 3)), steps=st.booleans(),
    alpha=st.sampled_from([0.05, 0.01, 1e-4, 1e-7]),
)  # fmt: skip
def test_no_interval_of_pairs_is_many_times_wider_than_their_range(logs, steps, alpha):
    logs = np.cumsum(logs) if steps else logs
    half = sequential.of_pairs(logs).half(alpha)
    assert 0 < half <= sequential.WIDEST * max(np.ptp(logs), sequential.FLOOR_RANGE)
    help_ = sequential._more_pairs(sequential.of_pairs(logs), logs, alpha, 0.02)
    assert int(help_.split()[1]) >= 1


def test_the_bound_on_an_interval_is_seldom_the_cause_of_an_error():
    """Six pairs of autocorrelation 0.9 have a mean that is further from the truth than the bound once in 150 times."""
    random_, count, r = np.random.default_rng(0), 40_000, 0.9
    for pairs, most in ((6, 0.01), (8, 0.0025), (11, 0.0005)):
        noise = random_.standard_normal((count, pairs))
        logs = np.empty_like(noise)
        logs[:, 0] = noise[:, 0]
        for i in range(1, pairs):
            logs[:, i] = r * logs[:, i - 1] + math.sqrt(1 - r**2) * noise[:, i]
        assert np.mean(abs(logs.mean(axis=1)) > sequential.WIDEST * np.ptp(logs, axis=1)) < most


@settings(max_examples=200, deadline=None, derandomize=True)
@given(parts=st.lists(st.tuples(st.floats(0, 1e6), st.floats(1, 50)), min_size=1, max_size=4))
def test_degrees_of_freedom_are_never_below_those_of_the_least_certain_part(parts):
    assert ratio.welch(parts) >= min(df for _, df in parts) * (1 - 1e-9)


def test_three_slow_pairs_of_ten_are_not_the_same():
    """Earlier they were in 33 of 100: the first three were similar."""
    assert simulations.sequences(200, simulations.three_of_ten)[0][SAME] <= 0.05 * 200
    slower, pairs = simulations.sequences(100, simulations.pairs(math.log(1.05)))
    assert slower[SLOWER] >= 95 and pairs < 16
    assert simulations.sequences(100, simulations.pairs(sd=0.005))[0][SAME] >= 95


def test_the_autocorrelation_of_pairs_is_seen_and_doubted():
    seen, most = sequential.correlation(np.array([1.0, 2, 3, 4, 5, 6, 7, 8]))
    assert seen == pytest.approx(0.625) and most == sequential.MAX_AUTOCORRELATION
    assert sequential.correlation(1e-12 * np.arange(20.0))[1] < 0.5, "less than the floor is no pattern"
    alternating, none = sequential.correlation(np.array([1.0, -1] * 20))
    assert alternating < -0.9 and none == 0
    logs = 0.03 + 0.001 * np.arange(6) % 2
    assert sequential.of_pairs(logs).se >= sequential.FLOOR / 6**0.5, "pairs that agree by chance"
    assert sequential.correlation(np.ones(6))[0] == 0


STEADY = RunVariance(sd=0.003, df=14, session_sd=0.002, session_df=9, session_kind=CALIBRATED, source="calibrated")


def side(effect=1.0, *, processes=4, rounds=3, noise=0.002, seed=0, work=1.0):
    random = np.random.default_rng(seed)
    times = effect * np.exp(noise * random.standard_normal((processes, rounds, 2)))
    sample = of_times(times)
    return {"p": type(sample)(processes=sample.processes, names=sample.names, work=work)}


@pytest.mark.parametrize(("effect", "verdict", "code"), [(1.1, SLOWER, 1), (0.9, FASTER, 0), (1.005, SAME, 0)])
def test_the_verdict_and_its_exit_code(effect, verdict, code):
    found = judge.judge(side(), side(effect, seed=1), STEP_S, STEADY)
    assert found.verdict == verdict and judge.EXIT[found.verdict] == code
    assert found.overall.ratio.value == pytest.approx(effect, rel=0.01)


def test_a_throughput_is_better_when_it_is_more():
    half_the_work = side(1.0, seed=1, work=32.0)
    found = judge.judge(side(work=64.0), half_the_work, THROUGHPUT, ASSUMED)
    assert found.verdict == SLOWER and found.overall.ratio.value == pytest.approx(0.5, rel=0.01)
    assert found.points[0].a == pytest.approx(64, rel=0.01) and found.points[0].b == pytest.approx(32, rel=0.01)
    more = judge.judge(half_the_work, side(work=64.0), THROUGHPUT, ASSUMED)
    assert more.verdict == FASTER
    same_step = judge.judge(side(work=64.0), half_the_work, STEP_S, STEADY)
    assert same_step.verdict == SAME


def test_one_process_or_one_round_says_nothing_of_how_processes_differ():
    a, b = side(processes=1, rounds=10), side(1.05, processes=1, rounds=10, seed=1)
    assert judge.judge(a, b, STEP_S, ASSUMED).verdict == CANNOT_TELL
    assert judge.judge(a, b, STEP_S, STEADY).verdict == SLOWER
    much = judge.judge(a, side(2.0, processes=1, rounds=10), STEP_S, ASSUMED)
    assert much.verdict == CANNOT_TELL and "use jaxbench calibrate or jaxbench ab" in much.overall.why
    assert "--config.measure.processes=" in judge.judge(a, b, STEP_S, ASSUMED).overall.why
    found = judge.judge(side(processes=1, rounds=1), side(2.0, processes=1, rounds=1), STEP_S, ASSUMED)
    assert found.verdict == CANNOT_TELL and "one round" in found.overall.why
    assert not found.overall.ratio.has_interval and found.overall.ratio.known


def test_the_suggested_number_of_processes_helps():
    noisy = dict(noise=0.08, rounds=2)
    few = judge.judge(side(**noisy), side(1.06, seed=1, **noisy), STEP_S, STEADY).overall
    assert few.verdict == CANNOT_TELL
    more = int(few.why.split(" more processes")[0].split()[-1])
    many = [
        judge.judge(
            side(processes=4 + more, seed=2 * s, **noisy), side(1.06, processes=4 + more, seed=2 * s + 1, **noisy),
            STEP_S, STEADY,
        ).verdict
        for s in range(1, 21)
    ]  # fmt: skip
    assert many.count(CANNOT_TELL) < 15


def test_no_number_of_processes_makes_two_days_one():
    """Twenty processes on each side that agree closely say nothing about the difference between two days."""
    a, b = side(processes=20, noise=1e-4), side(1.05, processes=20, noise=1e-4, seed=1)
    found = judge.judge(a, b, STEP_S, ASSUMED)
    assert (
        found.verdict == CANNOT_TELL
        and "runs at two times differ by 3 % (assumed): use jaxbench ab" in found.overall.why
    )
    assert judge.judge(a, b, STEP_S, STEADY).verdict == SLOWER


def test_the_standard_error_is_that_of_a_bootstrap_over_processes():
    sample = side(processes=6, noise=0.05)["p"]
    found = ratio.log_times({"p": sample}, ASSUMED)["p"]
    weights = np.random.default_rng(0).multinomial(6, np.full(6, 1 / 6), size=20_000) / 6
    drawn = weights @ sample.log_medians()
    se = math.sqrt(sum(part**2 for part in found.deviations.values()))
    assert se == pytest.approx(math.sqrt(6 / 5) * np.std(drawn), rel=0.03) and found.df == 5


def test_what_two_points_share_cancels_in_their_ratio():
    base = ratio.LogTime(value=1.0, deviations={"w0": 0.1, "w1": -0.2}, df=5)
    other = ratio.LogTime(value=3.0, deviations={"w0": 0.1, "w2": 0.3}, df=4)
    over = other.over(base)
    assert over.value == 2.0 and over.df == 4 and dict(over.deviations) == {"w0": 0.0, "w1": 0.2, "w2": 0.3}


def test_points_of_one_process_are_not_independent():
    """The mean over points that share their processes is no more certain than each of them."""
    random = np.random.default_rng(0)
    effects = np.exp(0.02 * random.standard_normal((2, 6)))
    sides = []
    for own in effects:
        sample = of_times(own[:, None, None] * np.ones((6, 2, 2)))
        sides.append({f"p{i}": sample for i in range(5)})
    left, right = (ratio.log_times(each, ASSUMED) for each in sides)
    one = ratio.ratio([left["p0"]], [right["p0"]])
    every = ratio.ratio(list(left.values()), list(right.values()))
    assert every.se == pytest.approx(one.se)


def test_a_verdict_is_read_off_its_interval():
    known = dict(df=math.inf)
    assert judge.decide(Ratio(log=0.015, se=0.001, **known), 0.05, 0.02) == SAME  # certain, and too small to matter
    assert judge.decide(Ratio(log=0.03, se=0.001, **known), 0.05, 0.02) == SLOWER
    assert judge.decide(Ratio(log=0.01, se=0.004, **known), 0.05, 0.02) == SAME
    assert judge.decide(Ratio(log=0.015, se=0.004, **known), 0.05, 0.02) == CANNOT_TELL  # real, and too small or not
    assert judge.decide(Ratio(log=0.03, se=0.02, **known), 0.05, 0.02) == CANNOT_TELL
    assert judge.decide(Ratio(log=math.nan, se=math.nan, **known), 0.05, 0.02) == CANNOT_TELL


def test_sequences_need_the_least_pairs_and_spend_no_more_than_they_have():
    assert sum(sequential.share(k) for k in range(1, 10_000)) < 1
    assert sequential.looks(2) == 0 and sequential.next_look(0) == sequential.LOOKS[0] == 6
    two = sequential.judge_pairs(side(processes=2), side(2.0, processes=2), STEP_S, margin=0.02)
    assert two.verdict == CANNOT_TELL and "6 pairs" in two.overall.why
    six = sequential.judge_pairs(side(processes=6), side(2.0, processes=6, seed=1), STEP_S, margin=0.02)
    assert six.verdict == SLOWER and math.isfinite(six.autocorrelation)
    seven = sequential.judge_pairs(side(processes=7), side(2.0, processes=7, seed=1), STEP_S, margin=0.02)
    assert seven.overall.processes == (6, 6)  # as of the newest look


def test_measuring_ends_with_the_verdict_or_the_budget():
    told = sequential.judge_pairs(side(processes=6), side(2.0, processes=6, seed=1), STEP_S, margin=0.02)
    open_ = sequential.judge_pairs(side(processes=2), side(2.0, processes=2, seed=1), STEP_S, margin=0.02)
    budget = ab.Budget(seconds=100, metric=STEP_S, margin=0.02)
    assert ab._ended(open_, 2, 49, 50, budget) == ""
    said = ab._ended(open_, 2, 51, 50, budget)
    assert "no further pair fits into the budget of 1 min 40 s after 2" in said
    assert "one pair takes 50 s, and the next verdict needs 6 pairs: add --budget_s=300" in said
    assert "verdict was reached after 6 pairs" in ab._ended(told, 6, 0, 0, budget)
    assert ab._ended(told, 7, 0, 0, budget) == ""  # looked at after 6 and 8 only
    assert f"{sequential.LOOKS[-1]} pairs" in ab._ended(open_, sequential.LOOKS[-1], 0, 0, budget)


def measured(first_s, others_s, budget_s, monkeypatch):
    """(why `ab` ended, what it said, its pairs), of pairs that take so long and decide nothing."""
    now, pairs = [0.0], []

    def pair(arms, number, order):
        now[0] += others_s if number else first_s
        pairs.append(number)

    def outcome(arms, pairs, budget, since, longest):
        open_ = sequential.judge_pairs(side(processes=6), side(processes=6, seed=1), STEP_S, margin=0.02)
        return open_, ab._ended(open_, pairs, since, longest, budget)

    monkeypatch.setattr(ab, "_pair", pair)
    monkeypatch.setattr(ab, "_outcome", outcome)
    arm = type("Arm", (), {"pairs": 0, "done": lambda self, pairs: None})()
    console = Console(file=io.StringIO(), width=200)
    budget = ab.Budget(seconds=budget_s, metric=STEP_S, margin=0.02)
    _, why = ab._measure([arm, arm], budget, console, lambda: now[0], random.Random(0))
    return why, console.file.getvalue(), len(pairs)


@pytest.mark.parametrize(("seconds", "warned"), [(600.0, True), (1799.0, True), (1801.0, False)])
def test_after_the_first_pair_it_says_what_a_verdict_needs(seconds, warned, monkeypatch):
    """A pair takes 5 minutes on this clock, so six need 30."""
    why, said, pairs = measured(300, 300, seconds, monkeypatch)
    needs = "one pair takes 5 min 0 s, and the next verdict needs 6 pairs: add --budget_s=1800"
    assert (f"The budget is too short: {needs}." in said) is warned and said.count("--budget_s") == warned
    assert (needs in why) is warned and pairs == seconds // 300


def test_a_slow_first_pair_does_not_end_the_comparison_early(monkeypatch):
    """100 s and then 50 s fill 350 s with six pairs. A sixth pair of 100 s would not fit."""
    assert measured(100, 50, 360.0, monkeypatch)[2] == 6
    assert measured(50, 100, 360.0, monkeypatch)[2] == 4


@pytest.mark.parametrize("seconds", [0, -5, math.nan])
def test_a_budget_without_time_is_refused(seconds):
    with pytest.raises(UserError, match=rf"--budget_s={seconds} leaves no time for a pair: use seconds, such as 600"):
        ab.Budget(seconds=seconds, metric=STEP_S, margin=0.02)


def test_a_log_of_ab_says_which_pair_is_under_way(monkeypatch):
    console = Console(file=io.StringIO(), width=200)

    def pair(arms, number, order):
        until = time.monotonic() + 10
        while "0 s: pair 1, next verdict after pair 6, budget 10 min 0 s" not in console.file.getvalue():
            assert time.monotonic() < until
            time.sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(progress, "SILENT_S", 0.02)
    monkeypatch.setattr(ab, "_pair", pair)
    arm = type("Arm", (), {"pairs": 0})()
    budget = ab.Budget(seconds=600, metric=STEP_S, margin=0.02)
    with pytest.raises(KeyboardInterrupt):
        ab._measure([arm, arm], budget, console, lambda: 0.0, random.Random(0))


def test_a_pairs_ratio_is_formed_round_by_round():
    drift = np.array([1.0, 1.3, 0.8, 1.1, 2.0])
    a, b = (of_times([(factor * drift)[:, None]] * 16) for factor in (1.0, 1.1))
    found = sequential.judge_pairs({"p": a}, {"p": b}, STEP_S, margin=0.02).overall
    assert found.ratio.value == pytest.approx(1.1) and found.verdict == SLOWER


def test_a_pair_that_was_interrupted_in_one_arm_is_a_ratio_of_medians():
    a, b = (of_times([np.full((rounds, 1), factor)] * 16) for factor, rounds in ((1.0, 5), (1.1, 3)))
    found = sequential.judge_pairs({"p": a}, {"p": b}, STEP_S, margin=0.02).overall
    assert found.ratio.value == pytest.approx(1.1) and found.verdict == SLOWER


# Verdicts on real measurements: pairs of processes, and a CI check from calibration to alarm.


# One device; the other arm has many times the work, more than any noise.
ONE = (*QUICK_MLP, "--config.mesh.devices=1")
SLOW = "--config.model.width=4096"


def workers(run):
    """The workers of the valid rounds: a repeated round replaces the earlier one."""
    rounds = {r.round: r.worker for r in RunFolder(run).records() if isinstance(r, schema.RoundRecord)}
    return set(rounds.values())


@pytest.mark.full
def test_pairs_are_measured_until_the_answer_and_continued(tmp_path):
    words = ("ab", "mlp", "--a=", f"--b={SLOW}", f"--workdir={tmp_path}", *ONE)
    first = jaxbench(*words, "--budget_s=0.1")
    assert first.returncode == 2 and "after 1 pair: one pair takes" in first.stdout, first.stdout + first.stderr
    run = RunFolder.begin(tmp_path / "a", RunFolder(tmp_path / "a").config())
    begun = [record for record in run.records() if isinstance(record, schema.RoundRecord)][-1]
    run.append(dataclasses.replace(begun, round=2, worker="session0/cpu1#1"))  # as if the next pair was interrupted
    run.close()
    again = jaxbench(*words)
    assert again.returncode == 1 and "Slower" in again.stdout, again.stdout + again.stderr
    found = json.loads((tmp_path / "comparison.json").read_text())
    assert found["verdict"] == "slower" and found["across"] == ["model.width"]
    loaded = jb.load(tmp_path)
    assert loaded.verdict == "slower" and list(loaded.table["verdict"]) == ["slower"] * len(found["points"])
    pairs = found["overall"]["processes"]["a"]
    assert pairs in sequential.LOOKS and len(workers(tmp_path / "a")) == len(workers(tmp_path / "b")) == pairs
    assert "session0/cpu1#1" not in workers(tmp_path / "a")
    for arm in "ab":
        records = RunFolder(tmp_path / arm).records()
        assert len({record.steps for record in records if isinstance(record, schema.RoundRecord)}) == 1
    reported = jaxbench("report", f"--run={tmp_path / 'a'}")
    assert reported.returncode == 0, reported.stdout


REFUSED = [
    (("--a=--config.modle.width=3", "--b="), "modle"),
    (("--a=--preset=smoke", "--b="), "'--preset=smoke'"),
    (("--a='", "--b="), "cannot be read"),
    (("--a=", "--b=--config.measure.rounds=3"), "rounds is 2 in A and 3 in B"),
    (("--a=", "--b=", "--config.measure.processes=2"), "--config.measure.processes=2 has no effect on ab"),
    (("--a=", "--b=--config.batch=0"), "batch"),
    (("--a=", "--b=", "--margin=-2"), "--margin=-2.0"),
]


@pytest.mark.parametrize(("words", "said"), thin(REFUSED, 1))
def test_an_arm_that_cannot_be_is_one_sentence(tmp_path, words, said):
    done = jaxbench("ab", "mlp", f"--workdir={tmp_path}", *ONE, *words)
    assert done.returncode == 3 and said in done.stderr and len(done.stderr.strip().splitlines()) == 1


def differs_by(folder, threshold):
    """Puts another threshold into the calibration."""
    file = folder / "baselines" / "calibration.json"
    held = json.loads(file.read_text())
    for machine in held["machines"].values():
        machine["mlp"]["threshold"] = threshold
    file.write_text(json.dumps({**held, documents.SHA256: documents.digest(held)}))


@pytest.mark.full
def test_a_gate_from_calibration_to_alarm(tmp_path):
    def here(*words):
        how = {"capture_output": True, "text": True, "env": environment(), "cwd": tmp_path, "timeout": 300}
        return subprocess.run(command(*words), **how)

    measured = here("run", "mlp", "--workdir=first", *ONE, "--config.measure.rounds=6", "--config.measure.processes=3")
    assert measured.returncode == 0, measured.stdout + measured.stderr
    assert len(workers(tmp_path / "first")) == 3
    assert here("baseline", "--run=first", "--name=main").returncode == 0
    early = here("check", "mlp", "--name=main")
    assert early.returncode == 3 and "run jaxbench calibrate first" in early.stderr
    calibrated = here("calibrate", "mlp", *ONE, "--config.measure.rounds=16")
    assert calibrated.returncode == 0 and "35 comparisons" in calibrated.stdout, calibrated.stdout + calibrated.stderr
    # From here on nothing depends on this machine's noise: the calibration is from a noisy and then from a quiet
    # machine, and the baseline was 10,000 times as fast.
    differs_by(tmp_path, 1.31)
    refused = here("check", "mlp", "--name=main", "--workdir=never")
    assert refused.returncode == 3 and "131 %" in refused.stderr, refused.stderr
    assert not (tmp_path / "never").exists()
    differs_by(tmp_path, 0.05)
    faster = tmp_path / "baselines" / "main" / "records.jsonl"
    lines = [json.loads(line) for line in faster.read_text().splitlines()]
    for line in lines:
        line.pop(documents.SHA256)  # as in older runs, which have no chain of hashes
        if line["kind"] == "round":
            for clock in ("block_s", "double_block_s"):  # both, otherwise they disagree by an impossible amount
                line[clock] = [t / 1e4 for t in line[clock]]
    faster.write_text("".join(json.dumps(line) + "\n" for line in lines))
    checked = here("check", "mlp", "--name=main", "--workdir=now")
    assert checked.returncode == 1 and "Slower" in checked.stdout, checked.stdout + checked.stderr
    assert "<failure" in (tmp_path / "now" / "junit.xml").read_text()
    assert "slower" in (tmp_path / "now" / "summary.md").read_text().lower()
    other = here("check", "cnn", "--name=main")
    assert other.returncode == 3 and "mlp, not cnn" in other.stderr
