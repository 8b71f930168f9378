# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Requests for forecasts: refused in one sentence if impossible, and shown without a measured time."""

from __future__ import annotations

import csv
import dataclasses
import datetime
import gzip
import io

import pytest
from experiment_cases import composed
from fabricate_forecasts import at, compiled_tpu, in_kernels
from ml_collections import ConfigDict
from rich.console import Console

from jaxbench.analysis.compiled import CompiledRow
from jaxbench.catalog import hardware, targets
from jaxbench.core.schema import CompiledRecord
from jaxbench.errors import UserError
from jaxbench.features.forecast import advice, advise_command, estimate, forecast_command, forecasts, network, page
from jaxbench.machine import start as start_lib
from jaxbench.processes.client import WorkerError
from jaxbench.processes.messages import Recorded
from jaxbench.sweep import compile_only

NONE = dict.fromkeys(("targets", "counts", "depths", "from", "link", "card"))


@pytest.fixture
def installed(monkeypatch):
    monkeypatch.setattr(start_lib, "require_target", lambda target: None)


def test_it_reads_what_is_asked(installed):
    asked = forecast_command.request({**NONE, "targets": "v5e:16x16, h100:8", "counts": "1..1024", "depths": "4,2"})
    assert [target.text for target in asked.targets] == ["v5e:16x16", "h100:8"]
    assert asked.counts == tuple(2**power for power in range(11))
    assert asked.depths == (2, 4)


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        ({}, "needs --targets=v5e:16x16,h100:8, or --from=DIR"),
        ({"targets": "h101:8"}, "--target=h101:8 is unknown"),
        ({"targets": "h100"}, "does not say how many devices"),
        ({"targets": "v5e:32x16"}, "larger than a slice of v5e can be: use at most 256"),
        ({"targets": "h100:8", "counts": "some"}, "--counts=some is not a list of numbers: use 1,2,4,8"),
        ({"targets": "h100:8", "depths": "2"}, "--depths=2 is not two numbers of blocks"),
        ({"targets": "h100:1", "counts": "8"}, "--counts needs a target of two devices or more"),
        ({"targets": "h100:8", "link": "1gbit,10gbit"}, "names several links"),
        ({"targets": "h100:8", "link": "fast"}, "--link=fast is not a rate"),
        ({"targets": "h100:8", "card": "nowhere.json"}, "there is no machine profile 'nowhere.json'"),
        ({"from": "results/x"}, "--from=DIR takes --counts=2, and --link=1gbit or --card=machine.json"),
    ],
)
def test_bad_input_is_one_sentence(installed, texts, sentence):
    with pytest.raises(UserError, match=sentence):
        forecast_command.request({**NONE, **texts})


def test_a_missing_plug_in_is_named(monkeypatch):
    monkeypatch.setattr(start_lib, "_installed", lambda module: False)
    with pytest.raises(UserError, match=r"\[target-tpu\]"):
        forecast_command.request({**NONE, "targets": "v5e:2x4"})


def test_the_smallest_need_is_said_where_nothing_fits():
    small = dataclasses.replace(at(64), peak_bytes=90 * 10**9)
    large = dataclasses.replace(at(16), peak_bytes=190 * 10**9)
    said = forecast_command.smallest_need([large, small])
    assert "The smallest need is 90 GB per device (fsdp/weak/64 on" in said
    assert forecast_command.smallest_need([large, dataclasses.replace(small, peak_bytes=10**9)]) == ""
    refused = dataclasses.replace(large, status="too large", peak_bytes=None)
    assert "no compiler reported the need" in forecast_command.smallest_need([refused])


def test_a_compiler_that_takes_too_long_is_an_answer_and_a_refusal_says_how_much_it_needs():
    point = {"point": "fsdp/weak/8", "strategy": "fsdp", "scaling": "weak", "arm": "", "devices": 8, "global_batch": 8}
    about = dict(point=point, target="h100:8", record=None, memory_bytes=10**9)
    slow = CompiledRow(reason="no answer within 900 s: worker stopped", **about)
    large = CompiledRow(reason="RESOURCE_EXHAUSTED: total memory (27.96T)", **about)
    target = targets.parse("h100:8")
    assert [estimate.exact(row, "gpt", target).status for row in (slow, large)] == ["slow", "too large"]
    assert estimate.exact(large, "gpt", target).fits is False
    says = "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 20.00G of 15.75G hbm."
    for text, hint in (("v5e:2x4", True), ("h100:8", False)):
        row = CompiledRow(point=point, target=text, record=None, reason=says, memory_bytes=10**9)
        made = estimate.exact(row, "gpt", targets.parse(text))
        assert (made.fits, made.peak_bytes) == (False, 20 * 2**30)
        assert (estimate.SAVES_MEMORY in made.reason) is hint
        assert "The smallest need is 21.5 GB" in forecast_command.smallest_need([made])


def test_table_file_and_page_show_three_grades(tmp_path):
    tpu = compiled_tpu(8)
    target = targets.parse("v5e:2x4")
    estimated = estimate.timed(tpu.forecast, tpu.events, target, network.of(target))
    refused = dataclasses.replace(at(2), status="failed", reason="the compiler ended", low_s=None)
    forecasts.write(tmp_path, [estimated, in_kernels(at(16), 1e6), at(64), refused])
    console = Console(record=True, width=140)
    page.write(tmp_path, console)
    shown = console.export_text()
    for words in ("at least", " .. ", "the compiler ended", "No number here is a measured time"):
        assert words in shown
    with open(tmp_path / page.CSV) as file:
        rows = list(csv.DictReader(file))
    assert [row["basis"] for row in rows] == ["compiled", "reckoned", "reckoned", "reckoned"]
    assert "step_s" not in rows[0]
    assert (tmp_path / "figures" / "forecast.svg").exists()
    assert "Forecasts, not measurements" in (tmp_path / page.PAGE).read_text()
    assert [(row["grade"], bool(row["high_s"])) for row in rows[:2]] == [("estimated", True), ("at best", False)]


def test_a_model_without_layers_has_no_depths(tmp_path):
    config, asked = ConfigDict({"model": {}, "mesh": {"devices": "auto"}}), forecast_command.ForecastRequest()
    with pytest.raises(UserError, match=r"no config\.model\.layers"):
        forecast_command._compile("mlp", config, asked, targets.parse("h100:8"), 2, tmp_path, Console())


TEXT = """\
HloModule block
ENTRY %main (p: f32[250000000]) -> f32[250000000] {
  %p = f32[250000000]{0} parameter(0)
  ROOT %sum = f32[250000000]{0} add(%p, %p)
}
"""


class Compiler:
    """Stands in for XLA: 40 GB for each block of a shallow model, and `whole` for the model with all blocks."""

    whole: int | str = "no answer within 300 s"

    def __init__(self, setup, log):
        self.blocks, self.kind = setup.config["model"]["layers"], setup.platform

    def ask(self, request, limit_s):
        memory = self.blocks * 40 * 10**9 if self.blocks <= 2 else self.whole
        if isinstance(memory, str):
            raise WorkerError(memory, stage="compile")
        if request.text:
            with gzip.open(request.text, "wt") as file:
                file.write(TEXT)
        about = {name: request.point[name] for name in ("point", "devices", "strategy", "scaling", "global_batch")}
        record = CompiledRecord(
            **about, experiment="gpt", platform=self.kind, device_kind="", mesh={"fsdp": about["devices"]},
            compile_s=1.0, collectives=(), checks=(), peak_bytes=memory, compiler_peak_bytes=memory, temp_bytes=0,
            flops=1e12, product_flops=1e12,
        )  # fmt: skip
        return Recorded(record=record)

    def close(self):
        pass


@pytest.fixture
def blocks(installed, monkeypatch):
    monkeypatch.setattr(compile_only, "Worker", Compiler)
    return composed("gpt", **{"model.layers": 4, "mesh.devices": "8", "scaling": "weak", "strategy": "fsdp"})


UNKNOWN = [("h100:8", "no answer within 300 s"), ("h100:8", 98 * 10**9), ("v5e:2x4", "no answer within 300 s")]


@pytest.mark.parametrize(("target", "whole"), UNKNOWN)
def test_memory_that_cannot_be_known_is_not_known_from_the_flags_to_the_page(
    blocks, monkeypatch, tmp_path, target, whole
):
    """The line through two depths says 160 GB, twice what an H100 has."""
    monkeypatch.setattr(Compiler, "whole", whole)
    asked = forecast_command.request({**NONE, "targets": target, "depths": "1,2"})
    records = forecast_command.forecast("gpt", blocks, asked, tmp_path, Console(file=io.StringIO()))
    assert [(each.status, each.fits) for each in records] == [("ok", None)] and records[0].low_s
    assert forecast_command.smallest_need(records) == ""
    console = Console(record=True, width=200, file=io.StringIO())
    page.write(tmp_path, console)
    written = (tmp_path / page.PAGE).read_text().replace("never &quot;does not fit&quot;", "")  # of the definition
    for shown in (console.export_text(), written):
        assert "not known" in shown and "nknown" in shown
        assert not any(wrong in shown for wrong in ("not fit", "too large", "NO<", "NO ", "enough memory"))
    with open(tmp_path / page.CSV) as file:
        assert [row["fits"] for row in csv.DictReader(file)] == [""]


def test_advice_says_which_device_counts_are_possible(blocks, tmp_path):
    """A chip of TPU7x is two devices, so one is too few and not too many."""
    texts, prices = dict.fromkeys(("tokens", "examples", "deadline")), tmp_path / "prices.csv"
    device = targets.parse("tpu7x:2x2x1").device_kind
    prices.write_text(f"{','.join(advice.COLUMNS)}\n{hardware.find(device).name},us,9,USD/device-hour,2026-11-01,,us\n")
    asked = {**texts, "tokens": "1e12", "prices": str(prices), "targets": "tpu7x", "counts": "1"}
    with pytest.raises(UserError, match="tpu7x: --counts=1 is not possible there: use 2 to 18432."):
        request = advise_command.request(asked, today=datetime.date(2026, 11, 20))
        advise_command.advise("gpt", blocks, request, tmp_path, Console(quiet=True))


def test_memory_above_the_device_is_a_no_where_the_compiler_refused_the_whole_model(blocks, monkeypatch, tmp_path):
    monkeypatch.setattr(Compiler, "whole", "RESOURCE_EXHAUSTED: Used 60.00G of 15.75G hbm.")
    asked = forecast_command.request({**NONE, "targets": "v5e:2x4", "depths": "1,2"})
    (record,) = forecast_command.forecast("gpt", blocks, asked, tmp_path, Console(file=io.StringIO()))
    assert record.fits is False


def test_advice_on_memory_that_is_not_known_never_says_that_it_does_not_fit(blocks, tmp_path):
    texts = dict.fromkeys(("tokens", "examples", "deadline", "prices", "targets", "counts"))
    asked = advise_command.request({**texts, "tokens": "1e12"}, today=datetime.date(2026, 11, 20))
    assert not advise_command.advise("gpt", blocks, asked, tmp_path, Console(file=io.StringIO()))
    console = Console(record=True, width=200, file=io.StringIO())
    page.write_advice(tmp_path, console)
    for shown in (console.export_text(), (tmp_path / page.ADVICE_PAGE).read_text()):
        assert "No device is known to fit." in shown and "its time or its memory is unknown" in shown
        assert not any(wrong in shown for wrong in ("does not fit", "too large", "candidate fits", "enough memory"))
