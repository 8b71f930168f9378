# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Extrapolation from compiled points: formulas in the number of devices, monotony, and refusals."""

from __future__ import annotations

import dataclasses

import pytest
from fabricate_forecasts import FULL, at, compiled, compiled_tpu, in_kernels

from jaxbench.catalog import links, targets
from jaxbench.errors import UserError
from jaxbench.forecast import estimate, network, reckon, schedule, work
from jaxbench.forecast.reckon import CompiledForecast
from jaxbench.records import forecasts
from jaxbench.records.forecasts import ForecastRecord

COUNTS = [2**power for power in range(11)]


@pytest.mark.parametrize("count", [1, 2, 16, 64, 1024])
def test_another_count_is_what_its_own_compilation_says(count):
    own, reckoned = compiled(count).forecast, at(count)
    assert reckoned.basis == "reckoned"
    assert reckoned.sources == ("4 devices", "8 devices")
    assert reckoned.peak_bytes == pytest.approx(own.peak_bytes, rel=1e-6)
    assert reckoned.collectives[0].wire_bytes == pytest.approx(own.collectives[0].wire_bytes)
    assert (reckoned.global_batch, reckoned.flops) == (own.global_batch, own.flops)
    assert reckoned.work_s == pytest.approx(0.1 + 0.08 / count)
    assert reckoned.point == f"fsdp/weak/{count}"


def test_more_devices_never_hold_or_compute_more_each():
    every = [at(count) for count in COUNTS]
    for less, more in zip(every, every[1:], strict=False):
        assert more.peak_bytes <= less.peak_bytes
        assert more.work_s <= less.work_s
        assert more.wire_bytes >= less.wire_bytes
    grown = compiled(8, state=0, kept=9 * 10**9)  # the compiler used more on more devices
    flat = [at(count, compiled(4, state=0), grown).peak_bytes for count in COUNTS]
    assert flat == [9 * 10**9] * len(COUNTS)


def test_a_strategy_without_a_formula_in_the_devices_is_refused():
    other, many = compiled(4, gathered=FULL // 2), compiled(8)
    assert any("other messages for fewer devices" in note for note in at(16, other).notes)  # fsdp: the same arrays
    tensor = CompiledForecast(dataclasses.replace(many.forecast, strategy="tensor"), many.events)
    with pytest.raises(UserError, match="cannot be extrapolated in the number of devices"):
        at(16, other, tensor)


def test_a_gpus_band_begins_where_everything_is_hidden():
    band = at(64)
    assert (band.grade, band.kernels) == ("estimated", 2)
    assert band.low_s == pytest.approx(max(band.work_s, band.communication_s))
    assert band.high_s == pytest.approx((1 + band.error) * band.low_s)
    assert band.low_s <= band.scheduled_s <= band.high_s
    times = schedule.Times(work_s=1.0, communication_s=0.95, scheduled_s=1.95)
    even = estimate.banded(at(8), times, "gpu", work.chip(band.device_kind))
    assert even.high_s == 1.95, "nothing hidden is in the band, however much is sent"


def test_kernels_shorter_than_published_ones_leave_a_bound():
    """Time between kernels is not counted, so a step of short kernels may be far slower than its work."""
    whole, shortest = at(64), links.error("gpu").kernel_s
    longer, shorter = (in_kernels(whole, share * whole.work_s / shortest) for share in (0.9, 1.1))
    assert (longer.grade, longer.high_s, longer.notes) == ("estimated", whole.high_s, whole.notes)
    assert (shorter.grade, shorter.high_s, shorter.low_s) == ("at best", None, whole.low_s)
    assert any("shorter than in any published run" in note for note in shorter.notes)
    assert in_kernels(shorter, 2).notes == whole.notes, "said of the forecast it is true of"


def test_a_tpus_band_is_widened_at_both_ends():
    target = targets.parse("v5e:4x4")
    band = reckon.at_count(compiled_tpu(4), compiled_tpu(8), 16, target, network.of(target))
    assert band.grade == "estimated"
    assert band.low_s == pytest.approx((1 - band.error) * max(band.work_s, band.communication_s))
    assert band.high_s == pytest.approx((1 + band.error) * (band.work_s + band.communication_s))
    assert band.low_s < band.scheduled_s < band.high_s


def test_a_deeper_model_is_a_line_through_two_depths():
    shallow = dataclasses.replace(at(16), peak_bytes=3 * 10**9, flops=2e12, parameters=100)
    deep = dataclasses.replace(
        shallow, peak_bytes=5 * 10**9, flops=3e12, parameters=150, work_s=shallow.work_s + 0.1,
        communication_s=shallow.communication_s + 0.01, scheduled_s=shallow.scheduled_s + 0.1,
    )  # fmt: skip
    whole = reckon.at_depth(shallow, deep, (2, 4), 32, "gpu")
    assert whole.peak_bytes == 33 * 10**9
    assert (whole.flops, whole.parameters) == (17e12, 850)
    assert whole.work_s == pytest.approx(shallow.work_s + 1.5)
    assert whole.low_s == pytest.approx(whole.work_s)
    assert whole.sources == ("4 devices", "8 devices", "2 blocks", "4 blocks")


def test_the_same_inputs_make_the_same_bytes_and_a_damaged_line_is_named(tmp_path):
    records = [at(count) for count in COUNTS]
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        forecasts.write(tmp_path / name, [at(count) for count in COUNTS])
    assert (tmp_path / "a" / forecasts.FILE).read_bytes() == (tmp_path / "b" / forecasts.FILE).read_bytes()
    assert forecasts.read(tmp_path / "a") == records
    with open(tmp_path / "a" / forecasts.FILE, "a") as file:
        file.write('{"point": 1}\n')
    with pytest.raises(UserError, match="line 12 is damaged"):
        forecasts.read(tmp_path / "a")
    with pytest.raises(UserError, match="has no forecast.jsonl"):
        forecasts.read(tmp_path)


def test_no_field_is_called_like_a_measured_time():
    assert "step_s" not in {field.name for field in dataclasses.fields(ForecastRecord)}
