# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Advice: prices, ranges of time and cost, what fits, and the page."""

from __future__ import annotations

import dataclasses
import datetime
import json
from typing import Any

import pytest
from fabricate_forecasts import at, compiled, compiled_tpu, in_kernels
from ml_collections import ConfigDict
from rich.console import Console

from jaxbench import verbs
from jaxbench.analysis.compiled import CompiledRow
from jaxbench.catalog import hardware, targets
from jaxbench.core.store import write_json
from jaxbench.errors import UserError
from jaxbench.features.forecast import advice, advise_command, estimate, forecast_command, network, page, schedule, work
from jaxbench.features.forecast.advice import Candidate, Price, TrainingBudget
from jaxbench.features.forecast.figures import draw_advice
from jaxbench.records.documents import plain

TODAY = datetime.date(2026, 11, 24)
PRICE = Price(
    device="NVIDIA H100 SXM", provider="Mine", per_device_hour=2.0, currency="USD", date=datetime.date(2026, 11, 1),
    watts=700.0, source="an invoice", kind="on demand",
)  # fmt: skip
JOB = TrainingBudget(examples=3200, unit="sequences", deadline_s=200.0)
NONE = dict.fromkeys(("tokens", "examples", "deadline", "prices", "targets", "counts"))


def banded(devices: int, low_s: float, high_s: float | None, **fields):
    """A forecast with 4 examples per device and this band; without a high end, a bound."""
    grade = "at best" if high_s is None else "estimated"
    made = dataclasses.replace(at(devices), low_s=low_s, high_s=high_s, grade=grade, scheduled_s=low_s)
    return dataclasses.replace(made, **{"peak_bytes": 10**9, **fields})


def candidate(devices: int, low_s: float, high_s: float | None, price: Price = PRICE, job: Any = JOB) -> Candidate:
    return Candidate(forecast=banded(devices, low_s, high_s), price=price, job=job)


def test_a_case_worked_by_hand():
    each = candidate(8, 1.8, 3.6)  # a global batch of 32: 100 steps
    assert each.steps == 100
    assert each.seconds == pytest.approx((180.0, 360.0))
    assert each.cost == pytest.approx((0.8, 1.6))  # 8 devices, 180 and 360 s, 2 USD in 3600 s
    assert each.joules == pytest.approx((0.76 * 1_008_000, 0.76 * 2_016_000))
    assert each.examples_per_money == pytest.approx((4000, 2000))
    assert each.meets == "perhaps"
    assert each.at == pytest.approx((360.0, 1.6))
    assert candidate(8, 1.0, 2.0, job=TrainingBudget(examples=33)).steps == 2
    assert candidate(8, 1.0, 2.0, price=dataclasses.replace(PRICE, watts=None)).joules is None


@pytest.mark.parametrize(
    ("low_s", "high_s", "meets"), [(1.0, 2.0, "yes"), (1.0, 2.1, "perhaps"), (2.1, 2.2, "no"), (1.0, None, "perhaps")]
)
def test_a_band_meets_a_deadline_as_a_whole_and_a_bound_never_surely(low_s, high_s, meets):
    assert candidate(8, low_s, high_s).meets == meets


def test_the_order_is_deadline_then_grade_then_cost():
    cheap_late, dear, cheap = candidate(8, 9.0, 9.0), candidate(8, 1.0, 2.0), candidate(8, 0.5, 1.0)
    bound = candidate(8, 0.1, None)
    assert advice.ranked([cheap_late, bound, dear, cheap]) == [cheap, dear, bound, cheap_late]
    fast = candidate(16, 1.0, 1.8)
    slow = candidate(8, 1.0, 3.4)  # 340 s, 1.51 USD against 90 s, 0.8 USD
    cheap = candidate(8, 1.0, 3.0, price=dataclasses.replace(PRICE, per_device_hour=0.5))
    assert advice.frontier([slow, cheap, bound, fast], "estimated") == [fast, cheap]
    assert advice.frontier([slow, cheap, bound, fast], "at best") == [bound]


def test_a_target_that_does_not_fit_or_has_no_time_is_no_candidate():
    large, unknown = banded(8, 1.0, 2.0, peak_bytes=10**12), banded(8, 1.0, 2.0, peak_bytes=None)
    timeless = dataclasses.replace(banded(8, 1.0, 2.0), low_s=None, high_s=None)
    assert advice.candidates([large, unknown, timeless], [PRICE], JOB) == []
    target = targets.parse("h100:8")
    said = " ".join(advise_command._unusable(target, [large, unknown]))
    assert "does not fit (at least 1000 GB of 84.9 GB)" in said
    assert "its time or its memory is unknown" in said


def test_the_page_keeps_the_grades_apart_and_marks_old_prices(tmp_path):
    tpu = compiled_tpu(8)
    target = targets.parse("v5e:2x4")
    forecast = estimate.timed(tpu.forecast, tpu.events, target, network.of(target))
    forecast = dataclasses.replace(forecast, peak_bytes=10**9, target=target.text)
    old = dataclasses.replace(
        PRICE, device=hardware.find("TPU v5 lite").name, date=datetime.date(2025, 1, 1), watts=None, provider="Theirs"
    )
    bounds = [in_kernels(at(count), 1e6) for count in (16, 64)]
    found = advice.candidates([forecast], [old], JOB) + advice.candidates(bounds, [PRICE], JOB)
    shown = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        document = {
            "schema": 1, "experiment": "gpt", "job": dataclasses.asdict(JOB), "today": str(TODAY), "assumed": ["Weak."],
            "missing": ["v9: no compiler."], "candidates": advice.lines(advice.ranked(found), TODAY),
        }  # fmt: skip
        write_json(folder / advise_command.FILE, plain(document))
        console = Console(record=True, width=160)
        page.write_advice(folder, console)
        shown.append(console.export_text().replace(str(folder), ""))
    assert shown[0] == shown[1]
    assert (tmp_path / "a" / page.ADVICE_CSV).read_bytes() == (tmp_path / "b" / page.ADVICE_CSV).read_bytes()
    cheapest = "Cheapest by an estimate: v5e x 8 from Theirs, on demand", "Cheapest by a lower bound on the time"
    for words in (*cheapest, "(old)", "more than a year ago", "unknown", "v9: no compiler."):
        assert words in shown[0]
    lines = json.loads((tmp_path / "a" / advise_command.FILE).read_text())["candidates"]
    assert [line["grade"] for line in lines] == ["estimated", "at best", "at best"]
    assert (tmp_path / "a" / "figures" / "advise.svg").exists()


def test_one_hardware_may_have_estimates_and_bounds():
    """More devices have shorter kernels: the figure draws the two grades as two lines."""
    found = advice.candidates([at(16), in_kernels(at(64), 1e6)], [PRICE], JOB)
    drawn = draw_advice(advice.lines(found, TODAY), JOB, title="t")
    assert drawn is not None
    (legend,) = drawn.legends
    assert [text.get_text().endswith(", at best") for text in legend.get_texts()] == [False, True]


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        ({}, "needs the size of the training: either --tokens=1e12 or --examples=1.2e8"),
        ({"tokens": "1e12", "examples": "1e6"}, "either --tokens"),
        ({"tokens": "many"}, "--tokens=many is not a number of 1 or more: use 1e12"),
        ({"examples": "0"}, "--examples=0 is not a number of 1 or more"),
        ({"tokens": "1e12", "deadline": "14"}, "--deadline=14 is not a time with its unit: use 36h, 14d or 2w"),
        ({"tokens": "1e12", "deadline": "0d"}, "is not a time with its unit"),
        ({"tokens": "1e12", "targets": "h101"}, "--targets=h101 is unknown: did you mean 'h100'"),
        ({"tokens": "1e12", "counts": "some"}, "--counts=some is not a list of numbers"),
    ],
)
def test_bad_input_is_one_sentence(texts, sentence):
    with pytest.raises(UserError, match=sentence):
        advise_command.request({**NONE, **texts}, today=TODAY)


def test_a_text_compiled_for_another_gpu_uses_the_memory_of_this_one(tmp_path):
    point = {"point": "fsdp/weak/8", "strategy": "fsdp", "scaling": "weak", "arm": "", "devices": 8, "global_batch": 8}
    row = CompiledRow(point=point, target="h100:8", record=None, reason="refused", memory_bytes=1)
    asked = forecast_command.ForecastRequest()
    other = forecast_command._read(row, tmp_path, "gpt", targets.parse("b200:8"), asked).forecast
    assert (other.basis, other.sources) == ("reckoned", ("the text compiled for h100:8",))
    assert other.memory_bytes == targets.parse("b200:8").memory_bytes
    same = forecast_command._read(row, tmp_path, "gpt", targets.parse("h100:8"), asked).forecast
    assert (same.basis, same.sources, same.memory_bytes) == ("compiled", (), 1)


def test_a_missing_plug_in_is_named(monkeypatch, tmp_path):
    def require(target):
        raise UserError(f"{target.text} needs XLA's compiler for it")

    workload = type("Workload", (), {"tokens": 0, "unit": "images", "blocks": 0})
    monkeypatch.setattr(advise_command.start, "require_target", require)
    monkeypatch.setattr("jaxbench.measure.arm.inspected", lambda config, experiment: workload)
    asked = advise_command.request({**NONE, "examples": "1e6"}, today=TODAY)
    with pytest.raises(UserError, match="a100: h100:8 needs XLA's compiler for it"):
        advise_command.advise("cnn", ConfigDict({"experiment": "cnn"}), asked, tmp_path, Console(quiet=True))
    asked = advise_command.request({**NONE, "tokens": "1e6"}, today=TODAY)
    with pytest.raises(UserError, match=r"an example of cnn has no tokens: give --examples"):
        advise_command.advise("cnn", ConfigDict({"experiment": "cnn"}), asked, tmp_path, Console(quiet=True))


def test_a_deadline_has_its_unit():
    asked = advise_command.request({**NONE, "tokens": "1e12", "deadline": "2w", "targets": "h100:8,v5p"}, today=TODAY)
    assert asked.deadline_s == 14 * 86400
    assert [target.text for target, _ in advise_command._offers(asked)] == ["h100:8", "v5p:2x2x2"]
    assert len({kind.kind for _, offers in advise_command._offers(asked)[:1] for kind in offers}) == 2


def test_every_priced_device_is_a_candidate_or_named():
    asked = advise_command.request({**NONE, "tokens": "1e12"}, today=TODAY)
    offered = {price.device for _, offers in advise_command._offers(asked) for price in offers}
    named = {sentence.partition(":")[0] for sentence in advise_command._without_target(asked)}
    assert offered | named == {price.device for price in asked.prices} and not offered & named
    price = dataclasses.replace(PRICE, device=hardware.find("TPU7x").name, per_device_hour=8.0, watts=600.0)
    one = advise_command._of_a_device(price, targets.parse("tpu7x:2x2x1"))
    assert (one.per_device_hour, one.watts) == (4.0, 300.0)


def test_one_compiled_count_is_enough_for_a_sharded_state():
    """Only the update of the state differs: 28 bytes of each parameter, divided among the devices."""
    few, target = compiled(4), targets.parse("h100:64")
    made = estimate.from_one_count(few, 64, target, network.of(target))
    chip = work.chip(target.device_kind)
    assert chip is not None and made.work_s is not None
    saved = 28 * few.forecast.parameters / chip.memory_bytes_per_s * (1 / 4 - 1 / 64)
    assert made.work_s == pytest.approx(schedule.work_s(few.events) - saved)
    both = at(64)
    assert (made.global_batch, made.flops, made.wire_bytes) == (both.global_batch, both.flops, both.wire_bytes)
    assert (made.peak_bytes, made.basis, made.sources) == (None, "reckoned", ("4 devices",))


def test_a_model_of_blocks_is_sharded_unless_asked_otherwise():
    model = {"model": {"layers": 0}, "accelerator_batch": 9, "lever": {"remat": "none"}}
    config = ConfigDict({"scaling": "weak,strong", "strategy": "jit_auto", **model})
    verbs.load("advise").prepare(config)
    assert (config.scaling, config.strategy, config.lever.remat) == ("weak", "fsdp", "block")
    assert config.accelerator_batch == 1


HEAD = ",".join(advice.COLUMNS)
GOOD = "NVIDIA H100 SXM,Mine,2.00,USD/device-hour,2026-11-01,700,an invoice"


def test_the_catalogue_names_its_sources_and_has_prices_of_three_kinds():
    found = advice.read_prices()
    assert {price.device for price in found} <= set(hardware.names())
    assert all(price.source and 0 < price.per_device_hour < 100 for price in found)
    assert [price.watts for price in found if price.device == "Google TPU v5p"] == [None]  # not published
    assert {price.kind for price in found} == {"on demand", "spot", "community"}
    assert {"NVIDIA RTX 4090", "NVIDIA RTX 5090", "NVIDIA L40S", "NVIDIA A10G"} <= {price.device for price in found}
    small = dataclasses.replace(PRICE, most=8)
    assert [each.forecast.devices for each in advice.candidates([at(8), at(16)], [small], JOB)] == [8]


def test_a_price_is_old_after_a_year(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(f"{HEAD}\n{GOOD}\n")
    (mine,) = advice.read_prices(path)
    assert (mine.per_device_hour, mine.currency, mine.watts, mine.kind) == (2.0, "USD", 700.0, "own")
    assert not mine.old(datetime.date(2027, 11, 1))
    assert mine.old(datetime.date(2027, 11, 2))
    with pytest.raises(UserError, match="cannot be read"):
        advice.read_prices(tmp_path / "nowhere.csv")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (f"{HEAD}\n{GOOD.replace('USD/device-hour', '')}\n", "line 2: unit '' is not the unit of a price: write USD"),
        (f"{HEAD}\n{GOOD.replace('/device-hour', '')}\n", "unit 'USD' is not the unit of a price"),
        (f"{HEAD.replace('unit,', '')}\n", "has no column 'unit'"),
        (f"{HEAD}\n", "has no prices"),
        (f"{HEAD},kind\n{GOOD},free\n", "kind 'free' is none of on demand, spot, community, own"),
        (f"{HEAD}\n{GOOD.replace('2.00', 'two')}\n", "price 'two' is not a number above 0"),
        (f"{HEAD}\n{GOOD.replace('2.00', '-2')}\n", "price '-2' is not a number above 0"),
        (f"{HEAD}\n{GOOD.replace('H100 SXM', 'H100 SXN')}\n", "did you mean 'NVIDIA H100 SXM'"),
        (f"{HEAD}\n{GOOD.replace('2026-11-01', 'today')}\n", "date 'today' is not a day"),
        (f"{HEAD}\n{GOOD.replace('an invoice', '')}\n", "line 2 has no source"),
        (f"{HEAD}\n{GOOD}\n{GOOD.replace('USD', 'EUR')}\n", "has prices in EUR and USD"),
    ],
)
def test_a_wrong_file_is_one_sentence(tmp_path, text, sentence):
    path = tmp_path / "mine.csv"
    path.write_text(text)
    with pytest.raises(UserError, match=sentence):
        advice.read_prices(path)
