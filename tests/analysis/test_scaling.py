# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Speed-up, efficiency, clocks, utilisation and the headline, from made records with a known answer."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import fabricate
import pytest

from jaxbench.analysis import headline, points, run_rows
from jaxbench.analysis.headline import headlines
from jaxbench.analysis.quantities import percent, seconds
from jaxbench.core.store import RunFolder
from jaxbench.digits import digits
from jaxbench.statistics.bootstrap import Estimate
from jaxbench.statistics.contended import wall_s


def analyse(path: Path, **facts: Any) -> dict[str, run_rows.Row]:
    run = RunFolder(fabricate.run_folder(path, **facts))
    return {row.point.point: row for row in run_rows.analyse(points.load(run), config=run.config())}


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


def test_the_base_is_the_smallest_reportable_count(tmp_path: Path) -> None:
    rows = analyse(tmp_path, devices=(2, 4, 8), cores=4, law=lambda scaling, n: float(n), noise=0, drift=0)
    row = rows["shard_map/strong/4"]
    assert row.base is not None and row.base.devices == 2
    assert (row.speedup.value, row.efficiency.value) == (pytest.approx(2), pytest.approx(1))
    assert "more devices than cores" in rows["shard_map/strong/8"].notes[0]


def test_no_base_no_speedup(tmp_path: Path) -> None:
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
        assert not (row.speedup.known or row.efficiency.known), row.point.point
        assert any(f"{rounds} of the 5 rounds" in note for note in row.notes)
    assert not headline.controls([*rows.values()])
    assert all(row.efficiency.has_interval for row in analyse(tmp_path / "five", rounds=5).values())


def test_a_speedup_rests_on_the_rounds_that_base_and_point_share(tmp_path: Path) -> None:
    loaded = points.load(RunFolder(fabricate.run_folder(tmp_path, rounds=11)))

    def cut(first: int, last: int) -> dict[str, run_rows.Row]:
        """The base in rounds 0 to 5, the point on 2 devices in rounds `first` to `last`."""
        kept = {1: slice(0, 6), 2: slice(first, last)}
        some = [dataclasses.replace(p, rounds=p.rounds[kept.get(p.devices, slice(11))]) for p in loaded]
        return {r.point.point: r for r in run_rows.analyse(some, config={})}

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


def test_a_round_of_another_session_is_not_the_base_s_round(tmp_path: Path) -> None:
    rows = analyse(tmp_path, session=late("shard_map/strong/8"))
    row = rows["shard_map/strong/8"]
    assert row.speedup.known and not row.speedup.has_interval and not row.efficiency.has_interval
    assert any("0 of its 5 rounds are shared" in note for note in row.notes)
    assert rows["shard_map/strong/4"].speedup.has_interval


def test_a_run_continued_as_a_whole_keeps_its_intervals(tmp_path: Path) -> None:
    row = analyse(tmp_path, session=lambda point, round: int(round > 2))["shard_map/strong/8"]
    assert row.paired and row.speedup.has_interval


def test_two_sessions_give_no_noise_floor(tmp_path: Path) -> None:
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
    assert "22x as many rounds (--config.measure.budget_s)" in sentence
    rows[name] = dataclasses.replace(rows[name], efficiency=Estimate(value=0.68, lo=0.57, hi=0.8))
    assert headlines([*rows.values()])[0].startswith("No headline")


@pytest.mark.parametrize(
    ("platform", "others", "steal", "why"),
    [
        ("cpu", 0.3, 0.0, "other processes took 30 % of the CPU time of shard_map/strong/2 while it was timed"),
        ("cpu", 0.0, 0.2, "the hypervisor took 20 %"),
        ("cpu", 0.05, 0.04, ""),
        ("gpu", 0.3, 0.0, ""),  # its processor only waits
    ],
)
def test_an_efficiency_of_what_others_left_is_no_headline(tmp_path, platform, others, steal, why):
    rows = analyse(tmp_path, devices=(1, 2), platform=platform, device_kind="H100" if platform == "gpu" else "cpu")
    for name in ("shard_map/strong/2", "shard_map/weak/2"):
        point = rows[name].point
        wall = [wall_s(each) for each in point.rounds]
        timed = [
            dataclasses.replace(each, cpu_s=(2 * s,), cpus=2, others_s=(2 * others * s,), steal_s=(2 * steal * s,))
            for each, s in zip(point.rounds, wall, strict=True)
        ]
        rows[name] = dataclasses.replace(rows[name], point=dataclasses.replace(point, rounds=tuple(timed)))
    (sentence,) = headlines([*rows.values()])
    assert sentence.startswith("No headline") == bool(why) and why in sentence
