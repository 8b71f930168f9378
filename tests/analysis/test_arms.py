# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Arms compared with their baseline, phases, knees, latencies and laws, from fabricated records with a known answer."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import fabricate_arms as fab
import numpy as np
import pytest
from report.runs import drawn

from jaxbench.analysis import arms, lever_results, points, run_rows, stragglers, studies
from jaxbench.analysis.arms import ArmGroup
from jaxbench.analysis.run_rows import Row
from jaxbench.core import store
from jaxbench.core.store import RunFolder
from jaxbench.errors import UserError
from jaxbench.report import build, run_report
from jaxbench.statistics import bootstrap
from jaxbench.statistics.bootstrap import BootstrapSamples


def places(path: Path, made: list[fab.Made], swept: list[str], **facts: Any) -> list[ArmGroup]:
    run = RunFolder(fab.lever_folder(path, made, swept, **facts))
    return arms.analyse(run_rows.analyse(points.load(run), config=run.config()), swept)


def of(path: Path, made: list[fab.Made], swept: list[str], **facts: Any) -> dict[str, Row]:
    return {arm.label: arm for place in places(path, made, swept, **facts) for arm in place.arms}


def test_a_ratio_holds_the_truth_whatever_the_drift(tmp_path: Path) -> None:
    found = of(tmp_path, fab.precision(), ["precision"], drift=0.2, noise=0.003, rounds=10)
    base, fast = found["default"], found["bfloat16"]
    assert base.verdict == "baseline" and base.ratio.value == 1
    assert fast.ratio.value == pytest.approx(0.6, rel=0.01) and fast.ratio.lo <= 0.6 * 1.003
    assert fast.ratio.hi / fast.ratio.lo < 1.02, "the drift of 20 % is common to both and cancels"
    assert fast.gain.value == pytest.approx(1 / fast.ratio.value)
    assert (fast.gain.lo, fast.gain.hi) == pytest.approx((1 / fast.ratio.hi, 1 / fast.ratio.lo))
    assert (fast.verdict, fast.memory_ratio) == ("faster", pytest.approx(0.55))
    assert found["float32"].verdict == "cannot tell" and "contains 1" in found["float32"].why


def test_the_baseline_is_the_first_arm_as_typed_not_by_name(tmp_path: Path) -> None:
    found = of(tmp_path, list(reversed(fab.precision())), ["precision"])
    assert found["float16"].verdict == "baseline" and found["default"].verdict == "slower"


def test_every_device_count_has_its_own_baseline_and_every_arm_its_own_base(tmp_path: Path) -> None:
    made = [fab.arm(0.02, precision="default", by_devices={2: 0.012}), fab.arm(0.01, precision="bfloat16")]
    found = places(tmp_path, made, ["precision"], devices=(1, 2), noise=0, drift=0)
    ratios = {p.name: [round(a.ratio.value, 3) for a in p.arms] for p in found}
    assert ratios == {"1 device": [1, 0.5], "2 devices": [1, 0.833]}
    rows = {a.point_id: a for p in found for a in p.arms}
    bfloat16 = rows["jit_auto/strong/2/precision=bfloat16"]
    assert bfloat16.base is not None and bfloat16.base.point == "jit_auto/strong/1/precision=bfloat16"
    assert bfloat16.speedup.value == pytest.approx(1.0), "over its own arm on one device, not over the fastest"


def test_one_round_has_no_ratio_and_unequal_rounds_use_those_in_common(tmp_path: Path) -> None:
    fast = of(tmp_path, fab.precision(), ["precision"], rounds=1)["bfloat16"]
    assert fast.timing.step_s.known and not (fast.ratio.known or fast.gain.known)
    assert fast.verdict == "cannot tell" and "fewer than the 5 shared rounds" in fast.why
    made = [fab.arm(0.01, remat="none", rounds=range(6)), fab.arm(0.013, remat="block", rounds=range(2, 8))]
    few = of(tmp_path / "few", made, ["remat"], rounds=8)["block"]
    assert few.ratio.known and not few.ratio.has_interval and few.verdict == "cannot tell"
    more = [made[0], fab.arm(0.013, remat="block", rounds=range(1, 8))]
    arm = of(tmp_path / "more", more, ["remat"], rounds=8, drift=0.3, noise=0.001)["block"]
    assert arm.ratio.value == pytest.approx(1.3, rel=0.01) and arm.ratio.has_interval
    assert arm.point.status == "partial"


@pytest.mark.parametrize("how", [{"failed": "out of memory"}, {"rounds": ()}])
def test_without_a_baseline_nothing_is_compared(tmp_path: Path, how: dict[str, Any]) -> None:
    made = [fab.arm(0.01, remat="none", **how), fab.arm(0.013, remat="block")]
    arm = of(tmp_path, made, ["remat"])["block"]
    assert not arm.ratio.known and arm.verdict == "cannot tell" and "has no times" in arm.why


def test_a_failed_or_missing_arm_is_there_and_unknown(tmp_path: Path) -> None:
    made = [*fab.remat()[:2], fab.arm(0.01, remat="offload", failed="this device cannot"), fab.arm(0.01, remat="block")]
    found = of(tmp_path, made, ["remat"], missing=["jit_auto/strong/1/remat=block"])
    assert [a.point.status for a in found.values()] == ["ok", "ok", "failed", "missing"]
    assert found["offload"].verdict == "" and not found["offload"].ratio.known
    assert found["block"].point.levers["remat"] == "block", "from the plan"


def test_wrong_and_oversubscribed_arms_are_no_finding(tmp_path: Path) -> None:
    wrong = of(tmp_path / "wrong", [fab.arm(0.01, remat="none"), fab.arm(0.005, remat="block", ok=False)], ["remat"])
    assert wrong["block"].verdict == "cannot tell" and "did not pass its checks" in wrong["block"].why
    many = of(tmp_path / "many", fab.remat(), ["remat"], devices=(8,), cores=2)["block"]
    assert many.verdict == "cannot tell" and "more devices than cores" in many.why


def test_other_batches_are_compared_per_example(tmp_path: Path) -> None:
    made = [fab.arm(0.01, batch=32), fab.arm(0.016, batch=64)]
    arm = of(tmp_path, made, ["batch"], noise=0, drift=0)["64"]
    assert arm.ratio.value == pytest.approx(1.6) and arm.gain.value == pytest.approx(1.25)
    assert arm.verdict == "faster"


def test_phases_are_differences_and_add_up(tmp_path: Path) -> None:
    facts: dict[str, Any] = dict(strategy="shard_map", devices=(1, 2), drift=0.1, noise=0.002, rounds=10)
    one, two = lever_results.find_phases(places(tmp_path, fab.parts(), ["part"], **facts))
    seconds = {p.name: p.step_s for p in two.phases}
    expected = {"forward": 3e-3, "backward": 6e-3, "update": 1e-3, "communication": 2e-3}
    for name, value in expected.items():
        assert seconds[name].value == pytest.approx(value, abs=2.5e-4)
        assert seconds[name].lo <= seconds[name].value <= seconds[name].hi
    assert sum(p.step_s.value for p in two.phases) == pytest.approx(two.whole.value)
    assert sum(p.share.value for p in two.phases) == pytest.approx(1)
    assert "They add up" in two.sentence
    assert not one.phases[3].above_zero
    assert "Inconclusive, because the interval contains 0: communication." in one.sentence


def test_phases_of_parts_that_were_not_measured_or_are_negative(tmp_path: Path) -> None:
    made = [arm for arm in fab.parts() if arm.levers["part"] != "local"]
    (found,) = lever_results.find_phases(places(tmp_path, made, ["part"], noise=0, drift=0))
    assert [p.name for p in found.phases] == ["forward", "backward", "update + communication"]
    assert found.phases[2].step_s.value == pytest.approx(1e-3)
    made = [fab.arm(4e-3, part="forward"), fab.arm(9e-3, part="gradient"), fab.arm(7e-3, part="step")]
    (found,) = lever_results.find_phases(places(tmp_path, made, ["part"], noise=0.001))
    assert "They do not add up: update + communication has a negative time" in found.sentence
    assert lever_results.find_phases(places(tmp_path / "ladder", fab.ladder(), ["ladder"])) == []
    made = [fab.parts()[0], fab.arm(0.01, part="step", failed="no")]
    assert lever_results.find_phases(places(tmp_path / "one", made, ["part"])) == []


def test_the_knee_is_the_smallest_batch_near_the_best(tmp_path: Path) -> None:
    (place,) = places(tmp_path, fab.batch(), ["batch"], noise=0.001)
    knee = lever_results.knee(place)
    assert knee is not None and knee.arm.point.global_batch == 512 and knee.best.point.global_batch == 1024
    assert knee.certain and not knee.rising and knee.below is not None
    rate = {n: n / (1e-3 + 2e-5 * n) for n in (256, 512, 1024)}
    assert knee.share.value == pytest.approx(rate[512] / rate[1024], rel=0.01)
    assert knee.below_share.value == pytest.approx(rate[256] / rate[1024], rel=0.01) and rate[256] / rate[1024] < 0.9


def test_a_throughput_that_still_grows_or_only_falls_has_no_knee(tmp_path: Path) -> None:
    (place,) = places(tmp_path, fab.batch()[:4], ["batch"])
    knee = lever_results.knee(place)
    assert knee is not None and knee.rising
    assert lever_results.knee(places(tmp_path / "two", fab.batch()[:2], ["batch"])[0]) is None
    made = [fab.arm(1e-3 * (n / 256) ** 1.5, batch=n) for n in (256, 512, 1024)]
    found = places(tmp_path, made, ["batch"], noise=0.001)
    (text,) = lever_results.headlines("batch", found)
    assert text.startswith("Throughput is best at batch 256 (") and text.endswith("; no smaller batch was measured.")


def batches(*step_s: float) -> list[fab.Made]:
    return [fab.arm(each, batch=256 * 2**i) for i, each in enumerate(step_s)]


def test_a_larger_batch_that_may_be_as_fast_is_not_called_slower(tmp_path: Path) -> None:
    equal = places(tmp_path / "equal", batches(1e-3, 2.01e-3, 4.4e-3), ["batch"], noise=0.02)
    (text,) = lever_results.headlines("batch", equal)
    assert text.startswith("Throughput is best at batch 256 (")
    assert text.endswith("cannot tell whether batch 512 is slower: the interval of the ratio contains 1.")
    (text,) = lever_results.headlines("batch", places(tmp_path / "slower", batches(1e-3, 2.2e-3, 4.4e-3), ["batch"]))
    assert "cannot tell" not in text


def test_a_throughput_that_grows_by_about_a_tenth_is_inconclusive(tmp_path: Path) -> None:
    grows = "Throughput still grows at the largest batch, 1024: no knee."
    doubt = " Inconclusive: an interval contains 90 %, so the knee may be a neighbouring batch."
    for step_s, words in ((2 * 0.89, grows + doubt), (2 * 0.6, grows)):
        found = places(tmp_path / str(step_s), batches(1e-3, 1.4e-3, 1.4e-3 * step_s), ["batch"], noise=0.02)
        assert lever_results.headlines("batch", found) == [words]


def test_percentiles_are_of_single_calls(tmp_path: Path) -> None:
    made = [fab.arm(1e-3, batch=1, part="inference", steps=1, blocks=40, slowest=4.0)]
    (place,) = places(tmp_path, made, ["batch"], noise=0.01, drift=0)
    (one,) = place.arms
    samples = np.concatenate([r.block_s for r in one.point.rounds])
    assert len(samples) == 240 and one.why_no_p99 == ""
    assert one.p50.value == pytest.approx(np.median(samples), rel=1e-3)
    assert one.p99.value == np.quantile(samples, 0.99, method="inverted_cdf")
    assert one.p50.lo <= one.p50.value <= one.p50.hi < one.p99.hi
    few = fab.arm(1e-3, batch=1, part="inference", steps=1, blocks=10)
    long = fab.arm(1e-3, batch=2, part="inference", steps=20, blocks=40)
    (place,) = places(tmp_path, [few, long], ["batch"])
    first, second = place.arms
    assert first.p50.known and not first.p99.known and "60 single calls" in first.why_no_p99
    assert not second.p50.known and "more than one call" in second.why_no_p99


def test_the_weighted_quantile_is_that_of_the_repeated_samples() -> None:
    random = np.random.default_rng(1)
    owners = np.repeat(np.arange(5), 7)
    samples, draws = random.exponential(size=35), BootstrapSamples(range(5), draws=300)
    for q in (0.5, 0.99):
        found = bootstrap.quantile(samples, owners, draws.weights, q)
        for weights, value in zip(draws.weights[:40], found, strict=False):
            repeated = np.repeat(samples, weights.astype(int)[owners])
            assert value == np.quantile(repeated, q, method="inverted_cdf")
    assert math.isnan(bootstrap.quantile(np.ones(2), np.zeros(2, int), np.zeros((1, 1)), 0.5)[0])


def test_the_search_is_read_and_said(tmp_path: Path) -> None:
    assert studies.read_search(tmp_path) is None
    store.write_json(tmp_path / "search.json", fab.SEARCH)
    search = studies.read_search(tmp_path)
    assert search is not None and search.largest == 1781 and search.proven[1].peak_bytes is None
    assert "is 1781, as predicted. 1782 was run too and did not fit" in studies.search_sentence(search)
    assert "3.6 % more memory than was measured" in studies.search_sentence(search)
    none = {**fab.SEARCH, "proven": [fab.SEARCH["proven"][1]], "largest": 0, "error": None}  # type: ignore[index]
    store.write_json(tmp_path / "search.json", none)
    assert "No batch was proven to fit" in studies.search_sentence(studies.read_search(tmp_path))  # type: ignore[arg-type]


def test_the_law_of_depth_is_fitted_in_logarithms(tmp_path: Path) -> None:
    assert studies.read_remat_law(tmp_path) == []
    store.write_json(tmp_path / "remat_law.json", fab.LAW)
    laws = {law.remat: law for law in studies.read_remat_law(tmp_path)}
    assert laws["none"].slope.value == pytest.approx(1, abs=1e-3)
    assert laws["sqrt"].slope.value == pytest.approx(0.5, abs=1e-3)
    x, y = np.log(np.array(laws["block"].sizes)).T
    (slope, _), covariance = np.polyfit(x, y, 1, cov=True)
    assert laws["block"].slope.value == pytest.approx(slope)
    assert laws["block"].slope.hi - slope == pytest.approx(3.182 * math.sqrt(covariance[0, 0]), rel=1e-3), "t, 3 df"
    rows = [{"remat": "none", "blocks": 4, "temp_bytes": 9}, {"remat": "eager", "blocks": 4, "temp_bytes": None}]
    store.write_json(tmp_path / "remat_law.json", {"rows": rows})
    (single,) = studies.read_remat_law(tmp_path)
    assert not single.slope.known and "no exponent" in single.sentence


@pytest.mark.parametrize("text", ["", "{", "[]", '{"rows": [{"remat": 1}]}', json.dumps({"tried": 3})])
def test_damaged_files_end_in_one_sentence(tmp_path: Path, text: str) -> None:
    readers = {"search.json": studies.read_search, "remat_law.json": studies.read_remat_law}
    for name, read in {**readers, studies.LONGEST: studies.read_longest}.items():
        (tmp_path / name).write_text(text)
        with pytest.raises(UserError, match=f"{name} is damaged"):
            read(tmp_path)


def test_jains_index() -> None:
    rates = np.array([[1.0, 1.0, 3.0], [1.0, 0.0, 1.0]])
    assert lever_results.jain(rates).tolist() == pytest.approx([1, 0.5, 16 / 20])


def test_sharing_has_the_throughput_of_all_and_the_time_of_the_slowest(tmp_path: Path) -> None:
    found = run_report.find(RunFolder(fab.folder(tmp_path, "sharing")))
    alone, both, four = found.rows
    assert both.ratio.value == pytest.approx(1.6, rel=0.02)
    assert both.gain.value == pytest.approx(2 / 1.6, rel=0.02) and both.verdict == "faster"
    rate = both.timing.examples_per_s.value / alone.timing.examples_per_s.value
    assert rate == pytest.approx(2 / 1.6, rel=0.02)
    assert both.use.flop_per_s / alone.use.flop_per_s == pytest.approx(rate)
    shared = lever_results.sharing_of(both)
    assert lever_results.sharing_of(alone) is None and shared is not None
    assert shared.relative == pytest.approx((1, 0.75))
    assert shared.fairness.value == pytest.approx((1 + 4 / 3) ** 2 / (2 * (1 + 16 / 9)))
    assert four.gain.value == pytest.approx(1, rel=0.02) and lever_results.sharing_of(four).fairness.value == 1  # type: ignore[union-attr]
    assert stragglers.of(both) is None, "each waits for nobody"
    said, _ = found.headlines
    assert said.startswith("2 trainings at once: 1.2") and said.endswith("index of their rates is 0.980.")
    figure = drawn(build.figures()["sharing"], found)
    assert [axes.get_xlabel() for axes in figure.axes] == 3 * ["trainings at once"]
    dots = [line for line in figure.axes[1].lines if line.get_marker() == "."]
    assert [len(line.get_ydata()) for line in dots] == [2, 4]
    assert list(dots[0].get_ydata()) == pytest.approx([1.6, 1.2], rel=0.02)


def test_trainings_with_and_without_mps_are_two_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(fab.RUNS, "sharing", (fab.sharing_mps, ["trainings"]))
    run = run_report.find(RunFolder(fab.folder(tmp_path / "run", "sharing")))
    figure = drawn(build.figures()["sharing"], run)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()][:2] == ["without MPS", "with MPS"]
    # Of the times over alone: 1, 1.6 and 4 without, 1.2 and 2 with.
    joined = [line for line in figure.axes[1].lines if line.get_linestyle() == "-" and len(line.get_ydata()) > 1]
    times = [[round(float(y), 1) for y in line.get_ydata()] for line in joined]
    assert [1.0, 1.6, 4.0] in times and [1.2, 2.0] in times
