# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A headline is based on reportable rows that passed every gate; without any, it gives the reason."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import fabricate_cases as fab
import pytest
from passed_rows import rows, sweep

from jaxbench.analysis import alpha_beta, case_comparisons, headline
from jaxbench.analysis.gates import Gate
from jaxbench.statistics.bootstrap import Estimate
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


def test_integer_operations_are_no_flops(tmp_path: Path) -> None:
    (sentence,) = said(tmp_path, "matmul", [fab.matmul(1024, call_s=0.02, dtype="int8")])
    assert first_number(sentence, "GOP/s") == pytest.approx(107, rel=0.05) and "FLOP" not in sentence


def test_stream_tells_memory_from_caches(tmp_path: Path) -> None:
    known = ((2**17, 6e10), (2**19, 4e10), (2**25, 1.2e10), (2**26, 1.2e10))
    made = [fab.stream("triad", n, bytes_per_s=rate) for n, rate in known]
    made.append(fab.stream("copy", 2**25, bytes_per_s=9e10))
    (sentence,) = said(tmp_path, "stream", made)
    memory, cache = sentence.split("; ")
    assert "from memory, triad of" in memory and first_number(memory, "GB/s") == pytest.approx(12, rel=0.05)
    assert "from caches, triad of 1.5 MiB" in cache and first_number(cache, "GB/s") == pytest.approx(60, rel=0.05)


def test_a_headline_of_streams_names_its_own_experiment(tmp_path: Path) -> None:
    (sentence,) = said(tmp_path, "stream", [fab.stream("triad", 2**25, bytes_per_s=1e10, experiment="mine")])
    assert sentence.startswith("mine float32 on 1 core: ")


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


def test_transfer_is_the_least_over_all_pairs(tmp_path: Path) -> None:
    pairs = [("cpu:0", "cpu:1", 8e9), ("cpu:1", "cpu:0", 5e9), ("cpu:0", "cpu:2", 8e9)]
    made = [fab.transfer("device_to_device", 64 * MI, a, b, call_s=64 * MI / rate) for a, b, rate in pairs]
    made.append(fab.transfer("device_to_device", MI, "cpu:0", "cpu:1", call_s=1.0))
    (sentence,) = said(tmp_path, "transfer", made)
    assert first_number(sentence, "GB/s") == pytest.approx(5, rel=0.05)
    assert "64 MiB" in sentence and "at least, over 3 pairs; the slowest is cpu:1->cpu:0" in sentence


def test_the_slowest_pair_is_the_one_of_the_table(tmp_path: Path) -> None:
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


def test_groups_are_compared_at_a_payload_that_all_have(tmp_path: Path) -> None:
    sizes = [4**k for k in range(5, 14)]
    made = fab.alpha_beta("all_gather", 4, sizes, alpha_s=1e-4, beta=6e9, mesh="4x4", axis="x")
    made += fab.alpha_beta("all_gather", 4, sizes[:-3], alpha_s=1e-4, beta=6.5e9, mesh="4x4", axis="y")
    (sentence,) = said(tmp_path, "collectives", made)
    assert "along x of 4x4, the slowest of 2 groups: " in sentence and "at 1 MiB" in sentence
    (alone,) = said(tmp_path / "b", "collectives", made[:9])
    assert "on 4 devices along x of 4x4: " in alone and "at 64 MiB" in alone


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


def test_collectives_along_axes_name_the_slowest(tmp_path: Path) -> None:
    sizes = [4**k for k in range(5, 14)]
    made = fab.alpha_beta("all_gather", 4, sizes, alpha_s=2e-5, beta=6e9, mesh="4x4", axis="x")
    made += fab.alpha_beta("all_gather", 4, sizes, alpha_s=2e-5, beta=1e9, mesh="4x4", axis="y")
    (sentence,) = said(tmp_path, "collectives", made)
    assert "along y of 4x4, the slowest of 2 groups: " in sentence
    assert first_number(sentence, "MB/s") == pytest.approx(750, rel=0.05)


def test_a_run_of_oversubscribed_groups_has_no_headline(tmp_path: Path) -> None:
    made = fab.alpha_beta("all_reduce", 8, [4**k for k in range(5, 9)], alpha_s=2e-5, beta=1e9, oversubscribed=True)
    (sentence,) = said(tmp_path, "collectives", made)
    assert sentence.startswith("No headline: every group is oversubscribed")


def test_one_device_has_no_bus(tmp_path: Path) -> None:
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
