# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Forecasts compared with published runs: the arithmetic of errors and bands, and the committed results."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest

from benchmarks import forecasts, forecasts_figure
from benchmarks.forecasts import Judged
from jaxbench.catalog import hardware, published, targets
from jaxbench.features.forecast import network

RESULTS = Path(__file__).parents[2] / forecasts.RESULTS / forecasts.FILE
RUN = Judged(
    id="a", family="one", program="xla", where="4 GPUs", year=2024, published_s=1.0, hidden_s=0.9, scheduled_s=1.0,
    bare_s=1.2, kernel_s=1e-3,
)  # fmt: skip


def row(**changes: object) -> Judged:
    return dataclasses.replace(RUN, **changes)


def test_a_band_is_students_prediction_interval_of_the_other_runs_of_the_family():
    """t(0.95, 2) = 2.920; the logarithms of 1, 1.1 and 1.21 have the standard deviation log(1.1)."""
    rows = [row(id=str(over), published_s=over) for over in (1.0, 1.1, 1.21)]
    low, high = forecasts.band(rows)
    assert low * high == pytest.approx(1.21), "around the geometric mean, not around the forecast"
    assert math.log(high / 1.1) == pytest.approx(2.920 * math.log(1.1) * math.sqrt(4 / 3), rel=1e-3)
    assert forecasts.band_s(rows, rows[0]) == pytest.approx(forecasts.band(rows[1:])), "never from its own error"
    other, old = row(id="x", program="torch_eager", published_s=9.0), row(id="y", year=2022, published_s=9.0)
    assert forecasts.band([*rows, old]) == (low, high)
    assert forecasts.band_s([*rows, other], rows[0]) == forecasts.band_s(rows, rows[0])
    assert forecasts.band([RUN]) == (0.0, math.inf)
    assert not forecasts.held(rows + [row(id="far", published_s=9.0)], row(id="far", published_s=9.0))


def test_the_forecast_is_the_compilers_order_on_a_gpu_and_everything_hidden_on_a_tpu():
    tpu = row(program="tpu")
    assert (tpu.forecast_s, tpu.error) == pytest.approx((0.9, 0.1))
    gpu = row(published_s=1.25)
    assert (gpu.forecast_s, gpu.over, gpu.error) == pytest.approx((1.0, 0.8, 0.2))


def test_a_run_of_short_kernels_has_a_bound_and_sets_no_band():
    """The time between kernels is not counted, so such a run may take any longer, but never less."""
    others = [row(id=str(over), published_s=over) for over in (1.0, 1.1, 1.2)]
    slow = row(id="slow", kernel_s=4e-5, published_s=5.0)
    beaten = dataclasses.replace(slow, id="beaten", published_s=0.5)
    assert forecasts.band([*others, slow]) == forecasts.band(others)
    low, _ = forecasts.band(others)
    assert forecasts.band_s([*others, slow], slow) == (min(1.0, low) * slow.hidden_s, math.inf)
    (family,) = forecasts.families([*others, slow, beaten])
    assert family.held >= {"slow"} and "beaten" not in family.held
    assert [name for name, count, *_ in forecasts.summary([*others, slow]) if count == 3] == ["one", "all XLA, GPU"]
    assert "XLA, GPU: beaten is faster than its bound" in forecasts.missed([*others, slow, beaten])
    assert not row(program="tpu", kernel_s=0.0).bound


def test_a_small_model_has_a_wider_band_and_sets_none():
    """Its large products take 30 % of its forecast, and those of the others 70 %."""
    others = [row(id=str(over), published_s=over, large_s=0.7) for over in (1.0, 1.1, 1.2)]
    small = row(id="small", published_s=1.6, large_s=0.3, fastest=0.8, slowest=2.0)
    low, high = forecasts.band(others)
    assert forecasts.band([*others, small]) == (low, high)
    assert forecasts.usual_rest([*others, small]) == pytest.approx(0.3)
    assert forecasts.band_s([*others, small], small) == pytest.approx((low - 0.4 * 0.2, high + 0.4 * 1.0))
    assert forecasts.held([*others, small], small)
    assert not forecasts.held([*others, small], dataclasses.replace(small, slowest=1.0))


def test_the_products_of_a_step_follow_from_its_shapes():
    about = {each["id"]: each for each in forecasts.configurations()}["maxtext-llama2-7b-h100-8"]
    flops = 3 * 2 * 4096 * (32 * (4 * 4096 + 3 * 11008) + 32000) * 4 * 4096
    assert forecasts.large_s(about) == pytest.approx(flops / (0.753 * 989e12))
    again = forecasts.large_s({**about, "remat": "block"}) / forecasts.large_s(about)
    assert 1.2 < again < 4 / 3, "without the last product of a block"


def test_the_figure_has_a_mark_for_each_run(tmp_path):
    rows = [row(id=str(over), published_s=over) for over in (1.0, 1.1, 1.2)]
    rows += [row(id="alone", program="torch_compiled", family="two"), row(id="short", kernel_s=4e-5, family="three")]
    forecasts_figure.save(forecasts.families(rows), tmp_path)
    text = (tmp_path / "accountability.svg").read_text()
    assert text.count("three (1)") and text.count("one (3)") and "only a bound" in text


def test_missed_goals_are_sentences():
    near = [row(id=str(place), published_s=1 + place / 100) for place in range(4)]
    assert forecasts.missed(near) == []
    (sentence,) = forecasts.missed([dataclasses.replace(each, scheduled_s=0.9) for each in near])
    assert "the median error is" in sentence and "the goal 7 %" in sentence
    wide = [row(id=str(place), published_s=1 + place / 5) for place in range(4)]
    assert any("wide, the goal 35 %" in each for each in forecasts.missed(wide))


def test_pythias_published_time_would_be_faster_than_the_fastest_product():
    """Pythia-1B: 16 blocks of width 2048, 50,304 words; 143,000 steps of 1,024 sequences of 2,048 tokens. The paper
    prints 18 days on 4 A100 (and 8 on 4 H100)."""
    products = 6 * (16 * 12 * 2048**2 + 50304 * 2048) + 16 * 6 * 2048 * 2048  # FLOPs of a token; half is masked
    needed = products * 143_000 * 1024 * 2048 / (4 * 18 * 86400)
    table = published.read("mamf_bf16").frame.set_index("device")
    assert needed / 1e12 == pytest.approx(282, abs=1)
    assert needed / 1e12 > table.loc["A100 SXM", "measured"]
    (about,) = (each for each in forecasts.configurations() if each["id"] == "pythia-1b-a100-4")
    assert "282 TFLOP/s" in about["left_out"] and "271" in about["left_out"]


def test_a_row_may_name_a_mesh_a_link_and_settings():
    rows = {each["id"]: forecasts.words(each) for each in forecasts.configurations() if not each["left_out"]}
    assert "--config.strategy=fsdp" in rows["mpt-7b-h100-8"]
    assert not any("lever.mesh" in word for word in rows["mpt-7b-h100-8"])
    stages = rows["nemo-gpt3-175b-h100-128"]
    assert {"--config.lever.mesh=fsdp=4,stage=8,tensor=4", "--config.lever.accumulate=64"} <= set(stages)
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


def test_the_catalogues_bands_are_what_the_results_show():
    """Each family's band is from all of its recent runs, and most of these runs lie in it."""
    rows = forecasts.read(RESULTS)
    assert forecasts.bands(rows) == (RESULTS.parents[3] / forecasts.BANDS).read_text()
    for program in forecasts.PROGRAMS:
        some = [row for row in rows if row.program == program and row.sets_band]
        if len(some) < 2:
            continue  # no band
        known = hardware.forecast_band(program)
        assert (known.low, known.high) == pytest.approx(forecasts.band(some), abs=0.005)
        assert known.runs == len(some) and known.rest == pytest.approx(forecasts.usual_rest(some), abs=0.005)
        banded = {family.program for family in forecasts.families(rows) if family.band[1] < math.inf}
        alike = [row for row in rows if (row.program == "tpu") == (program == "tpu") and not row.bound]
        alike = [row for row in alike if row.program in banded]
        shortest = min(row.kernel_s for row in alike)
        assert known.kernel_s == pytest.approx(shortest, rel=0.01)
        inside = [known.low <= row.published_s / row.forecast_s <= known.high for row in some]
        assert sum(inside) >= forecasts.IN_BAND * len(inside)
