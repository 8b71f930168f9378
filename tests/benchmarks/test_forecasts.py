# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Forecasts compared with published runs: the arithmetic of errors and bands, and the committed results."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from benchmarks import forecasts
from benchmarks.forecasts import Judged
from jaxbench.catalog import hardware, targets
from jaxbench.features.forecast import network

RESULTS = Path(__file__).parents[2] / forecasts.RESULTS / forecasts.FILE
TPU = Judged(
    id="a", family="one", platform="tpu", where="4 chips", published_s=1.0, hidden_s=0.9, scheduled_s=1.0, bare_s=1.2,
    bound=False,
)  # fmt: skip


def row(**changes: object) -> Judged:
    return dataclasses.replace(TPU, **changes)


def test_a_band_is_widened_by_what_other_families_missed_and_never_by_its_own():
    high, low = row(id="b", family="two", published_s=1.8), row(id="c", family="three", published_s=0.45)
    assert [forecasts.miss(each) for each in (TPU, high, low)] == pytest.approx([0.0, 0.5, 0.5])
    rows = [TPU, row(id="d", family="two", published_s=1.32)]
    assert forecasts.others(rows, rows[0]) == pytest.approx(forecasts.widening([0.1]))  # 1.32 over 1.2
    assert rows[0].band(0.1) == pytest.approx((0.81, 1.32))
    assert forecasts.others(rows, rows[1]) == 0.0 and not forecasts.held(rows, rows[1])
    assert forecasts.others([TPU, row(platform="gpu", family="two", published_s=9.0)], TPU) == 0.0


def test_few_misses_widen_a_band_as_students_and_many_by_the_largest():
    """Student's of 95 % on each side, from a table: 6.314 for one degree of freedom, 2.353 for three."""
    assert forecasts.widening([]) == 0.0
    assert forecasts.widening([0.1]) == pytest.approx(0.6314, rel=1e-3)
    assert forecasts.widening([0.1, 0.1, 0.1]) == pytest.approx(0.2353, rel=1e-3)
    assert forecasts.widening([0.0, 0.0, 0.0, 0.0, 0.5]) == pytest.approx(0.5), "never less than the largest"
    assert forecasts.widening([0.1] * 8) > 0.1 == forecasts.widening([0.1] * 9)


def test_a_bound_has_no_lower_end_to_widen():
    best = row(platform="gpu", bound=True, published_s=0.8)
    assert forecasts.miss(best) == 0.0 and not forecasts.held([best], best)  # faster than the lower bound
    slower = row(platform="gpu", bound=True, published_s=1.35)
    assert forecasts.miss(slower) == pytest.approx(0.5) and slower.band(0.5) == pytest.approx((0.9, 1.35))
    assert slower.band(0.1) == pytest.approx((0.9, 1.2)), "nothing hidden is in the band, however little it is widened"


def test_the_forecast_is_the_compilers_order_on_a_gpu_and_everything_hidden_on_a_tpu():
    assert (TPU.forecast_s, TPU.error) == pytest.approx((0.9, 0.1))
    gpu = row(bound=True, published_s=1.25)
    assert (gpu.forecast_s, gpu.over, gpu.error) == pytest.approx((1.0, 0.8, 0.2))


def test_a_row_may_name_a_mesh_and_a_link():
    rows = {each["id"]: forecasts.words(each) for each in forecasts.configurations() if not each["left_out"]}
    assert "--config.strategy=fsdp" in rows["mpt-7b-h100-8"]
    assert not any("lever.mesh" in word for word in rows["mpt-7b-h100-8"])
    hybrid = rows["fms-7b-a100-128"]
    assert {"--config.strategy=hybrid", "--config.lever.mesh=data=16,fsdp=8"} <= set(hybrid)
    for each in forecasts.configurations():
        assert not each["link"] or network.parse(each["link"]).bytes_per_s > 0


def test_a_published_step_in_seconds():
    base = {"batch": "4", "micro_batches": "2", "context": "100", "seconds": "", "tokens_per_s": "", "tflops": ""}
    assert forecasts.published_s({**base, "seconds": "2.5"}, 1e12) == 2.5
    assert forecasts.published_s({**base, "tokens_per_s": "400"}, 1e12) == 2.0
    assert forecasts.published_s({**base, "tflops": "16"}, 1e12) == 0.5


def test_every_configuration_names_its_source_and_what_is_left_out_is_not_forecast():
    rows = forecasts.configurations()
    assert len({row["id"] for row in rows}) == len(rows)
    known = {row.id for row in forecasts.read(RESULTS)}
    assert known and known <= {row["id"] for row in rows}
    for each in rows:
        assert each["source"] and targets.parse(each["target"])
        assert not (each["left_out"] and each["id"] in known), each["id"]
        stated = [each[name] for name in ("seconds", "tokens_per_s", "tflops") if each[name]]
        assert len(stated) == (0 if each["left_out"] else 1)


def test_results_are_read_as_they_were_written(tmp_path):
    rows = forecasts.read(RESULTS)
    forecasts.write(rows, tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_text() == RESULTS.read_text()


def test_the_catalogues_errors_are_what_the_results_show():
    """Each platform's band is widened by the misses of all of its runs, so these runs lie in the band of a forecast."""
    rows = forecasts.read(RESULTS)
    for platform in forecasts.GOALS:
        some = [row for row in rows if row.platform == platform]
        error = hardware.forecast_error(platform).error
        assert error == pytest.approx(forecasts.widening([forecasts.miss(row) for row in some]), abs=0.005)
        shortest = min((row.kernel_s for row in some if row.kernel_s), default=0.0)
        assert hardware.forecast_error(platform).kernel_s == pytest.approx(shortest, rel=0.01)
        inside = [low <= row.published_s <= high for row in some for low, high in [row.band(error + 0.005)]]
        assert sum(inside) >= forecasts.IN_BAND * len(inside)
