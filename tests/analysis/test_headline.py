# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A headline is based on reportable rows that passed every gate; without any, it gives the reason."""

from __future__ import annotations

import dataclasses
import math
import re
from pathlib import Path
from typing import Any

import fabricate
import fabricate_cases as fab
import pytest
from passed_rows import rows, sweep

from jaxbench.analysis import alpha_beta, case_comparisons, headline, points, run_rows
from jaxbench.analysis.gates import Gate
from jaxbench.analysis.headline import headlines
from jaxbench.analysis.quantities import percent, seconds
from jaxbench.core.store import RunFolder
from jaxbench.digits import digits
from jaxbench.statistics.bootstrap import Estimate
from jaxbench.statistics.timing import wall_s
from jaxbench.workloads.cases import VIEWS

MI = 2**20


def said(path: Path, view: str, made: list[fab.Made], **facts: Any) -> list[str]:
    found = rows(path, made, view=view, rounds=facts.pop("rounds", 10), **facts)
    return headline.case_headlines(
        view, found, alpha_beta.fit_all(found), case_comparisons.find_crossings(found), cache_bytes=32 * MI
    )


def first_number(sentence: str, unit: str) -> float:
    found = re.search(rf"([\d.]+) {re.escape(unit)}", sentence)
    assert found, sentence
    return float(found[1])


def test_matmul_names_the_best_shape_of_each_dtype(tmp_path: Path) -> None:
    made = [fab.matmul(n, call_s=2.0 * n**3 / rate) for n, rate in ((512, 6e10), (1024, 1e11), (2048, 9e10))]
    made.append(fab.matmul(512, call_s=2.0 * 512**3 / 2e10, dtype="bfloat16"))
    single, half = said(tmp_path, "matmul", made)
    assert single.startswith("matmul float32 on 1 core: ") and half.startswith("matmul bfloat16 on 1 core: ")
    assert "with 1024x1024x1024 (jit, selected among 3 on 5 rounds, measured on the other 5)." in single
    assert first_number(single, "GFLOP/s") == pytest.approx(100, rel=0.05)
    assert re.search(r"\[\d+\.?\d* GFLOP/s, \d+\.?\d* GFLOP/s\]", single), "an interval"
    assert "with 512x512x512 (jit)." in half, "nothing was chosen among one"


def test_matmul_has_the_share_of_the_peak_when_it_is_known(tmp_path: Path) -> None:
    (row,) = rows(tmp_path, [fab.matmul(1024, call_s=0.02)])
    share = Estimate(value=0.9, lo=0.88, hi=0.92)
    row = dataclasses.replace(row, peak_share=share, peak="measured peak: 119 GFLOP/s")
    (sentence,) = headline.case_headlines("matmul", [row], [], [])
    assert sentence.endswith(", 90 % [88, 92] of measured peak: 119 GFLOP/s.")


def test_the_share_is_that_of_the_rate_that_is_reported(tmp_path: Path) -> None:
    """A rate of 75 GFLOP/s is not 118 % of a peak of 75 GFLOP/s, even if each is right for its own rounds."""
    made = [fab.matmul(n, call_s=2.0 * n**3 / 1e11) for n in (512, 1024, 2048)]
    found = rows(tmp_path, made, rounds=9, noise=0.3, seed=3)
    peak = "measured peak: 100 GFLOP/s"
    share = [Estimate(value=r.value / 1e11, lo=r.lo / 1e11, hi=r.hi / 1e11) for r in (row.flop_per_s for row in found)]
    found = [dataclasses.replace(f, peak_share=s, peak=peak) for f, s in zip(found, share, strict=True)]
    (sentence,) = headline.case_headlines("matmul", found, [], [])
    (percent,) = re.findall(r"([\d.]+) % \[", sentence)
    assert float(percent) == pytest.approx(first_number(sentence, "GFLOP/s"), abs=0.6)


def test_integer_operations_are_no_flops_and_a_stream_names_its_own_experiment(tmp_path: Path) -> None:
    (sentence,) = said(tmp_path, "matmul", [fab.matmul(1024, call_s=0.02, dtype="int8")])
    assert first_number(sentence, "GOP/s") == pytest.approx(107, rel=0.05) and "FLOP" not in sentence
    (sentence,) = said(tmp_path, "stream", [fab.stream("triad", 2**25, bytes_per_s=1e10, experiment="mine")])
    assert sentence.startswith("mine float32 on 1 core: ")


def test_stream_tells_memory_from_caches(tmp_path: Path) -> None:
    known = ((2**17, 6e10), (2**19, 4e10), (2**25, 1.2e10), (2**26, 1.2e10))
    made = [fab.stream("triad", n, bytes_per_s=rate) for n, rate in known]
    made.append(fab.stream("copy", 2**25, bytes_per_s=9e10))
    (sentence,) = said(tmp_path, "stream", made)
    memory, cache = sentence.split("; ")
    assert "from memory, triad of" in memory and first_number(memory, "GB/s") == pytest.approx(12, rel=0.05)
    assert "from caches, triad of 1.5 MiB" in cache and first_number(cache, "GB/s") == pytest.approx(60, rel=0.05)


def test_dispatch_is_seconds_per_call(tmp_path: Path) -> None:
    known = (("synchronous", 8e-6), ("pipelined", 3e-6))
    made = [fab.kernel("empty", 1, impl=impl, call_s=t, flops=None, bytes_moved=None) for impl, t in known]
    (sentence,) = said(tmp_path, "dispatch", made)
    assert sentence.startswith("Calls on 1 core: empty synchronous ") and sentence.endswith("per call.")
    synchronous, pipelined = sentence.split(", empty pipelined ")
    assert first_number(synchronous, "µs") == pytest.approx(8, rel=0.05)
    assert first_number(pipelined, "µs") == pytest.approx(3, rel=0.05)


def test_fusion_compares_at_the_largest_size(tmp_path: Path) -> None:
    made = sweep("chain", "op_by_op", (MI, 16 * MI), start_s=0, per_s=1e8)
    made += sweep("chain", "fused", (MI, 16 * MI), start_s=0, per_s=4e8)
    made += sweep("chain", "barriers", (MI, 16 * MI), start_s=0, per_s=1e8)
    (sentence,) = said(tmp_path, "fusion", made)
    assert sentence.startswith("chain float32 on 1 core, fused vs op by op at 16,777,216 elements: ")
    assert first_number(sentence, "x") == pytest.approx(4, rel=0.03)


def test_linalg_is_compared_with_each_host_library(tmp_path: Path) -> None:
    made = [
        m
        for impl, rate in (("numpy", 1e8), ("scipy", 2e8), ("jit", 5e7))
        for m in sweep("lu", impl, (512, 1024), start_s=0, per_s=rate)
    ]
    numpy_, scipy_ = said(tmp_path, "linalg", made)
    assert "jit vs numpy at 1,024 elements" in numpy_ and first_number(numpy_, "x") == pytest.approx(0.5, rel=0.03)
    assert "jit vs scipy" in scipy_ and first_number(scipy_, "x") == pytest.approx(0.25, rel=0.03)


def test_transfer_is_the_least_over_all_pairs_and_of_the_table(tmp_path: Path) -> None:
    pairs = [("cpu:0", "cpu:1", 8e9), ("cpu:1", "cpu:0", 5e9), ("cpu:0", "cpu:2", 8e9)]
    made = [fab.transfer("device_to_device", 64 * MI, a, b, call_s=64 * MI / rate) for a, b, rate in pairs]
    made.append(fab.transfer("device_to_device", MI, "cpu:0", "cpu:1", call_s=1.0))
    (sentence,) = said(tmp_path, "transfer", made)
    assert first_number(sentence, "GB/s") == pytest.approx(5, rel=0.05)
    assert "64 MiB" in sentence and "at least, over 3 pairs; the slowest is cpu:1->cpu:0" in sentence
    pairs = [("cpu:0", "cpu:1"), ("cpu:1", "cpu:0"), ("cpu:0", "cpu:2"), ("cpu:2", "cpu:0")]
    made = [fab.transfer("device_to_device", 64 * MI, a, b, call_s=8e-3) for a, b in pairs]
    found = rows(tmp_path, made, view="transfer", rounds=5, noise=0.2)
    (sentence,) = headline.case_headlines("transfer", found, [], [])
    least = min(found, key=lambda row: row.algbw.value)
    assert f"{least.point.source}->{least.point.target}." in sentence
    assert first_number(sentence, "GB/s") == pytest.approx(least.algbw.value / 1e9, rel=0.01)


def test_a_line_that_misses_the_times_has_no_alpha_in_a_headline(tmp_path: Path) -> None:
    sizes = [4**k for k in range(5, 14)]
    made = [fab.collective("all_reduce", s, 2, call_s=1e-4 + s / (1e10 if s < MI else 2e9)) for s in sizes]
    (sentence,) = said(tmp_path, "collectives", made)
    assert "alpha" not in sentence and sentence.endswith("at 1 KiB.")
    assert first_number(sentence, "µs") == pytest.approx(100, rel=0.05)


def test_groups_are_compared_at_a_payload_that_all_have_and_the_slowest_is_named(tmp_path: Path) -> None:
    sizes = [4**k for k in range(5, 14)]
    made = fab.alpha_beta("all_gather", 4, sizes, alpha_s=1e-4, beta=6e9, mesh="4x4", axis="x")
    made += fab.alpha_beta("all_gather", 4, sizes[:-3], alpha_s=1e-4, beta=6.5e9, mesh="4x4", axis="y")
    (sentence,) = said(tmp_path, "collectives", made)
    assert "along x of 4x4, the slowest of 2 groups: " in sentence and "at 1 MiB" in sentence
    (alone,) = said(tmp_path / "b", "collectives", made[:9])
    assert "on 4 devices along x of 4x4: " in alone and "at 64 MiB" in alone
    made = fab.alpha_beta("all_gather", 4, sizes, alpha_s=2e-5, beta=6e9, mesh="4x4", axis="x")
    made += fab.alpha_beta("all_gather", 4, sizes, alpha_s=2e-5, beta=1e9, mesh="4x4", axis="y")
    (sentence,) = said(tmp_path / "c", "collectives", made)
    assert "along y of 4x4, the slowest of 2 groups: " in sentence
    assert first_number(sentence, "MB/s") == pytest.approx(750, rel=0.05)


def test_collectives_have_bus_bandwidth_of_the_largest_payload_and_alpha(tmp_path: Path) -> None:
    made = [
        m
        for n, beta in ((2, 9e9), (4, 6e9))
        for m in fab.alpha_beta("all_reduce", n, [4**k for k in range(5, 14)], alpha_s=2e-5, beta=beta)
    ]
    (sentence,) = said(tmp_path, "collectives", made)
    assert sentence.startswith("all_reduce float32 on 4 devices: ") and "of bus bandwidth at 64 MiB" in sentence
    assert first_number(sentence, "GB/s") == pytest.approx(1.5 * 6 * (64 * MI / 6e9) / (64 * MI / 6e9 + 2e-5), rel=0.05)
    assert first_number(sentence, "µs") == pytest.approx(20, rel=0.05) and sentence.endswith("(alpha).")


def test_oversubscribed_groups_and_one_device_have_no_headline(tmp_path: Path) -> None:
    made = fab.alpha_beta("all_reduce", 8, [4**k for k in range(5, 9)], alpha_s=2e-5, beta=1e9, oversubscribed=True)
    (sentence,) = said(tmp_path, "collectives", made)
    assert sentence.startswith("No headline: every group is oversubscribed")
    made = [fab.collective("all_reduce", MI, 1, call_s=1e-3)]
    assert said(tmp_path, "collectives", made) == ["No headline: no group of more than one device passed every gate."]


def test_curves_have_throughput_and_crossings(tmp_path: Path) -> None:
    sizes = [4**k for k in range(1, 12)]
    made = sweep("relu", "numpy", sizes, start_s=1e-6, per_s=1e8)
    made += sweep("relu", "jit", sizes, start_s=1.1e-5, per_s=1e9)
    made += sweep("relu", "python", sizes[:3], start_s=2e-5, per_s=1e6)  # never faster: no news
    best, crossing = said(tmp_path, "curves", made)
    assert best.startswith("relu float32: ") and "at 4,194,304 elements (jit on 1 core)" in best
    assert first_number(best, "Melements/s") == pytest.approx(1000 / (1 + 0.0026), rel=0.05)
    assert "jit overtakes numpy between 1,024 and 4,096 elements" in crossing


def test_refused_rows_reach_no_headline(tmp_path: Path) -> None:
    honest, lie = fab.matmul(1024, call_s=0.02), fab.matmul(2048, call_s=1e-6)
    (sentence,) = said(tmp_path, "matmul", [honest, lie], refused=[lie.record.point])
    assert "1024x1024x1024" in sentence and "2048" not in sentence


def test_when_every_row_is_refused_it_says_by_which_gates(tmp_path: Path) -> None:
    made = [fab.matmul(n, call_s=1e-6) for n in (512, 1024)]
    found = rows(tmp_path, made, refused=[m.record.point for m in made])
    gates = Gate(name="not above peak", passed=False, reason=""), Gate(name="right result", passed=True, reason="")
    found = [dataclasses.replace(row, gates=gates) for row in found]
    sentence = "No headline: all 2 measured rows were refused ('not above peak' refused 2)."
    assert headline.case_headlines("matmul", found, [], []) == [sentence]


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_says_why_it_has_no_headline(tmp_path: Path, view: str) -> None:
    assert said(tmp_path / "a", view, []) == ["No headline: nothing was measured."]
    failed = fab.matmul(512, call_s=1.0, rounds=0, failure="it broke", recorded=False)
    assert said(tmp_path / "b", view, [failed]) == ["No headline: nothing was measured."]
    bad = dataclasses.replace(fab.CHECKED, ok=False)
    wrong = fab.matmul(512, call_s=1.0, checks=(bad,))
    (sentence,) = said(tmp_path / "c", view, [wrong])
    assert sentence == "No headline: did not pass its checks (matmul/float32/512x512x512/jit)."


# Speed-up, efficiency, clocks, utilisation and the headline, from made records with a known answer.


def analyse(path: Path, **facts: Any) -> dict[str, run_rows.Row]:
    run = RunFolder(fabricate.run_folder(path, **facts))
    return {row.point_id: row for row in run_rows.analyse(points.load(run), config=run.config())}


def test_exact_times_give_exact_numbers(tmp_path: Path) -> None:
    rows = analyse(tmp_path, law=fabricate.amdahl(0.1), noise=0, drift=0, base_step_s=0.01)
    strong, weak = rows["shard_map/strong/4"], rows["shard_map/weak/4"]
    assert strong.timing.step_s.value == pytest.approx(0.01 * 0.325)
    assert strong.speedup.value == pytest.approx(1 / 0.325)
    assert strong.efficiency.value == pytest.approx(1 / 1.3)
    assert strong.timing.examples_per_s.value == pytest.approx(256 / 0.00325)
    assert (strong.base_step_s, strong.base and strong.base.devices) == (pytest.approx(0.01), 1)
    assert weak.speedup.value == pytest.approx(4 - 0.3)
    assert weak.timing.samples == 10
    assert strong.timing.clock_ratio.value == pytest.approx(1)
    assert all("shared CPU thread pool" in note for note in strong.notes)


def test_resources_shared_by_the_devices_of_a_cpu_process_are_named_with_lost_time(tmp_path: Path) -> None:
    def said(row: run_rows.Row) -> bool:
        return any("shared CPU thread pool" in note for note in row.notes)

    rows = analyse(tmp_path / "lost", law=fabricate.amdahl(0.1), noise=0.002)
    assert said(rows["shard_map/strong/4"]) and not said(rows["shard_map/strong/1"])
    assert not any(map(said, analyse(tmp_path / "ideal", law=fabricate.amdahl(0.0), noise=0.002).values()))
    elsewhere = analyse(tmp_path / "gpu", law=fabricate.amdahl(0.1), noise=0.002, platform="gpu", device_kind="H100")
    assert not any(map(said, elsewhere.values()))


def test_drift_that_hits_all_points_cancels_in_ratios(tmp_path: Path) -> None:
    row = analyse(tmp_path, drift=0.1, noise=0.001, rounds=10)["shard_map/strong/8"]
    assert row.timing.step_s.hi / row.timing.step_s.lo > 1.05
    assert row.speedup.hi / row.speedup.lo < 1.02
    assert row.speedup.lo <= row.speedup.value <= row.speedup.hi


def test_the_base_is_the_smallest_reportable_count_and_without_one_there_is_no_speedup(tmp_path: Path) -> None:
    rows = analyse(tmp_path, devices=(2, 4, 8), cores=4, law=lambda scaling, n: float(n), noise=0, drift=0)
    row = rows["shard_map/strong/4"]
    assert row.base is not None and row.base.devices == 2
    assert (row.speedup.value, row.efficiency.value) == (pytest.approx(2), pytest.approx(1))
    assert "more devices than cores" in rows["shard_map/strong/8"].notes[0]
    row = analyse(tmp_path, devices=(4,), cores=2)["shard_map/strong/4"]
    assert row.timing.step_s.known and not row.speedup.known
    assert any("no speed-up" in note for note in row.notes)


def test_efficiency_above_one_is_flagged_and_noise_is_not(tmp_path: Path) -> None:
    rows = analyse(tmp_path, law=lambda scaling, n: n * (1.03 if n > 1 and scaling == "strong" else 1.0), noise=0.002)
    assert any("efficiency above 1" in note for note in rows["shard_map/strong/4"].notes)
    assert not any("efficiency above 1 beyond" in note for note in rows["shard_map/strong/1"].notes)


@pytest.mark.parametrize("rounds", [1, 4])
def test_few_rounds_have_a_time_and_no_speed_up(tmp_path: Path, rounds: int) -> None:
    rows = analyse(tmp_path, rounds=rounds)
    for row in rows.values():
        assert row.timing.step_s.known and math.isnan(row.timing.step_s.lo)
        assert not (row.speedup.known or row.efficiency.known), row.point_id
        assert any(f"needs 5 rounds instead of {rounds}" in note for note in row.notes)
    assert not headline.controls([*rows.values()])
    assert all(row.efficiency.has_interval for row in analyse(tmp_path / "five", rounds=5).values())


def test_a_speedup_rests_on_the_rounds_that_base_and_point_share(tmp_path: Path) -> None:
    loaded = points.load(RunFolder(fabricate.run_folder(tmp_path, rounds=11)))

    def cut(first: int, last: int) -> dict[str, run_rows.Row]:
        """The base in rounds 0 to 5, the point on 2 devices in rounds `first` to `last`."""
        kept = {1: slice(0, 6), 2: slice(first, last)}
        some = [dataclasses.replace(p, rounds=p.rounds[kept.get(p.devices, slice(11))]) for p in loaded]
        return {r.point_id: r for r in run_rows.analyse(some, config={})}

    both = cut(0, 6)["shard_map/strong/2"]
    row = cut(0, 8)["shard_map/strong/2"]
    assert row.timing.rounds == 8
    assert row.paired and row.speedup.value == both.speedup.value and row.speedup.has_interval
    assert any("6 of its 8 rounds are shared with its base" in note for note in row.notes)
    assert not any("rounds are shared" in note for note in both.notes)
    alone = cut(4, 11)["shard_map/strong/2"]
    assert alone.timing.step_s.has_interval and alone.speedup.known
    assert not (alone.paired or alone.speedup.has_interval or alone.efficiency.has_interval)
    assert any("2 of its 7 rounds are shared" in note and "drift" in note for note in alone.notes)


def late(name: str) -> fabricate.Session:
    """The run was continued, and this point was measured only in the second session."""
    return lambda point, round: int(point == name)


def test_a_round_of_another_session_is_not_the_base_s_round_and_gives_no_noise_floor(tmp_path: Path) -> None:
    rows = analyse(tmp_path, session=late("shard_map/strong/8"))
    row = rows["shard_map/strong/8"]
    assert row.speedup.known and not row.speedup.has_interval and not row.efficiency.has_interval
    assert any("0 of its 5 rounds are shared" in note for note in row.notes)
    assert rows["shard_map/strong/4"].speedup.has_interval
    row = analyse(tmp_path, session=lambda point, round: int(round > 2))["shard_map/strong/8"]
    assert row.paired and row.speedup.has_interval
    rows = list(analyse(tmp_path, session=late("shard_map/weak/1")).values())
    assert not headline.controls(rows)


def test_a_fixed_cost_per_block_makes_the_clocks_disagree(tmp_path: Path) -> None:
    row = analyse(tmp_path, fixed_s=0.1, noise=0.002, drift=0.002)["shard_map/strong/1"]
    assert row.timing.clock_ratio.hi < 0.95
    assert "fixed cost" in row.timing.clock_note and row.timing.clock_note in row.notes


def test_strong_and_weak_at_the_base_are_a_control(tmp_path: Path) -> None:
    run = RunFolder(fabricate.run_folder(tmp_path, strategies=("pmap", "shard_map")))
    found = headline.controls(run_rows.analyse(points.load(run), config={}))
    assert [c.strategy for c in found] == ["pmap", "shard_map"]
    assert found[0].ratio.value == pytest.approx(1, abs=0.03)
    assert "A/A spread" in found[0].sentence


def test_mfu_only_with_a_known_peak(tmp_path: Path) -> None:
    known = analyse(tmp_path / "a", device_kind="NVIDIA H200", noise=0, drift=0)["shard_map/strong/2"]
    assert known.use.mfu == pytest.approx(3.2e9 / known.timing.step_s.value / (2 * 494.5e12))
    unknown = analyse(tmp_path / "b", device_kind="cpu")["shard_map/strong/2"]
    assert math.isnan(unknown.use.mfu) and "no MFU" in unknown.use.note and unknown.use.flop_per_s > 0
    config = {"model": {"dtype": "float64"}}
    run = RunFolder(fabricate.run_folder(tmp_path / "c", device_kind="TPU v4", config=config))
    assert "no float64 peak" in run_rows.analyse(points.load(run), config=config)[0].use.note
    run = RunFolder(fabricate.run_folder(tmp_path / "e", device_kind="NVIDIA H200", config={"model": {"width": 8}}))
    untold = run_rows.analyse(points.load(run), config=run.config())[0].use
    assert math.isnan(untold.mfu) and untold.flop_per_s > 0 and "the config has no model.dtype" in untold.note
    shady = analyse(tmp_path / "d", device_kind="NVIDIA L4")["shard_map/strong/1"]
    assert "unverified" in shady.use.note


def test_headline_takes_the_largest_reportable_count(tmp_path: Path) -> None:
    (sentence,) = headlines(list(analyse(tmp_path, cores=4).values()))
    assert "on 4 devices" in sentence and "strong efficiency" in sentence and "base 1 device, 12." in sentence
    assert "8 devices" not in sentence


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"cores": 1}, "only one valid device count"),
        (
            {"wrong": tuple(f"shard_map/{s}/{n}" for s in ("strong", "weak") for n in (1, 2, 4, 8))},
            "did not pass its checks",
        ),
        ({"wrong": ("shard_map/strong/1", "shard_map/weak/1")}, "no strategy has two"),
        ({"rounds": 0}, "nothing was measured"),
        ({"devices": (4, 8), "cores": 2}, "more devices than cores"),
    ],
)
def test_no_headline_says_why(tmp_path: Path, facts: dict[str, Any], why: str) -> None:
    (sentence,) = headlines(list(analyse(tmp_path, **facts).values()))
    assert sentence.startswith("No headline") and why in sentence


def test_a_run_on_one_device_says_how_fast_it_is(tmp_path: Path) -> None:
    (sentence,) = headlines(list(analyse(tmp_path, devices=(1,)).values()))
    assert sentence.startswith("shard_map on 1 device: 12.3 ms [12.1 ms, 12.5 ms] per step, 20.8 k images/s")
    assert sentence.endswith("Scaling needs a second device count.")


@pytest.mark.parametrize("clocks", [1.0, 9.0])
def test_a_smoke_run_says_how_many_points_are_right(tmp_path: Path, clocks: float) -> None:
    """Also if a gate refused a point because one of three rounds was disturbed: no speed was measured anyway."""
    loaded = points.load(RunFolder(fabricate.run_folder(tmp_path, rounds=3, wrong=("shard_map/weak/2",))))
    rounds = [[dataclasses.replace(r, double_block_s=tuple(clocks * s for s in r.double_block_s)) for r in p.rounds]
              for p in loaded]  # fmt: skip
    loaded = [dataclasses.replace(p, rounds=tuple(each)) for p, each in zip(loaded, rounds, strict=True)]
    rows = run_rows.analyse(loaded, config={})
    assert {row.gate for row in rows} == {"passed" if clocks == 1 else "refused"}
    assert headlines(rows) == [
        "7 of 8 points ran and match one device; a smoke run measures no speed: a confidence interval needs 5 rounds, "
        "and this run has 3."
    ]


def test_a_partial_run_names_what_is_missing(tmp_path: Path) -> None:
    loaded = points.load(RunFolder(fabricate.run_folder(tmp_path, rounds=5, cores=2, scalings=("strong",))))
    short = [p if p.oversubscribed else dataclasses.replace(p, rounds=p.rounds[:4], status="partial") for p in loaded]
    (sentence,) = headlines(run_rows.analyse(short, config={}))
    assert sentence == (
        "No headline: 4 of 5 rounds (shard_map/strong/1 and 1 more); more devices than cores (shard_map/strong/4 and 1 "
        "more)."
    )


def test_numbers_as_people_read_them() -> None:
    shown = [seconds(v) for v in (12.34, 1.234, 0.01234, 0.1234, 1.5e-6, 2e-9)]
    assert shown == ["12.3 s", "1.23 s", "12.3 ms", "123 ms", "1.50 µs", "2 ns"]
    assert [digits(v) for v in (0.0123, 1030.4, 12_345.0, 1e7)] == ["0.0123", "1030", "12,300", "1e+07"]
    assert [digits(v, 2) for v in (0.5, 1.25, 123.0)] == ["0.5", "1.2", "120"], "and not 1.2e+02"
    assert percent(Estimate(value=0.91, lo=0.89, hi=0.93)) == "91 % [89, 93]"
    assert percent(Estimate(value=0.914, lo=0.912, hi=0.919)) == "91.4 % [91.2, 91.9]"


def test_an_efficiency_that_is_hardly_known_is_no_headline(tmp_path: Path) -> None:
    rows = analyse(tmp_path, devices=(1, 2))
    name = "shard_map/strong/2"
    assert "efficiency" in headlines([*rows.values()])[0]
    rows[name] = dataclasses.replace(rows[name], efficiency=Estimate(value=0.68, lo=0.28, hi=1.2))
    (sentence,) = headlines([*rows.values()])
    assert sentence.startswith("No headline") and "is only known to ±46 points, and a headline needs ±10" in sentence
    assert "22x as many rounds would give that (--config.measure.budget_s)" in sentence
    rows[name] = dataclasses.replace(rows[name], efficiency=Estimate(value=0.68, lo=0.57, hi=0.8))
    assert headlines([*rows.values()])[0].startswith("No headline")


@pytest.mark.parametrize(
    ("platform", "others", "steal", "disturbed", "why"),
    [
        ("cpu", 0.5, 0.0, 3, "other processes took 30 % of the CPU time of shard_map/strong/2 while it was timed"),
        ("cpu", 0.3, 0.0, 5, "this machine was busy: other processes took 30 % of its CPUs in 5 of 5 rounds"),
        ("cpu", 0.0, 0.2, 5, "this machine was busy: the hypervisor took 20 %"),
        ("cpu", 0.05, 0.04, 5, ""),
        ("gpu", 0.3, 0.0, 5, ""),  # its processor only waits
    ],
)
def test_an_efficiency_of_what_others_left_is_no_headline(tmp_path, platform, others, steal, disturbed, why):
    rows = analyse(tmp_path, devices=(1, 2), platform=platform, device_kind="H100" if platform == "gpu" else "cpu")
    for name in ("shard_map/strong/2", "shard_map/weak/2"):
        point = rows[name].point
        wall = [wall_s(each) for each in point.rounds]
        timed = [
            dataclasses.replace(
                each,
                cpu_s=(2 * s,),
                cpus=2,
                others_s=(2 * others * s * (each.round < disturbed),),
                steal_s=(2 * steal * s,),
            )
            for each, s in zip(point.rounds, wall, strict=True)
        ]
        rows[name] = dataclasses.replace(rows[name], point=dataclasses.replace(point, rounds=tuple(timed)))
    (sentence,) = headlines([*rows.values()])
    assert sentence.startswith("No headline") == bool(why) and why in sentence
