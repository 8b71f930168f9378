# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Forecasts extrapolated from compiled points, from a measured step, and from a compiler's refusal."""

from __future__ import annotations

import dataclasses
import io

import pytest
from experiment_cases import composed
from fabricate import run_folder
from fabricate_forecasts import FULL, at, compiled, compiled_tpu, in_kernels
from rich.console import Console

from jaxbench.analysis import points, run_rows
from jaxbench.catalog import hardware, targets
from jaxbench.core.schema import Collective
from jaxbench.core.store import RunFolder
from jaxbench.errors import UserError
from jaxbench.features.forecast import estimate, forecasts, memory, network, schedule, work
from jaxbench.features.forecast.estimate import SAVES_MEMORY, CompiledForecast
from jaxbench.features.forecast.forecasts import ForecastRecord
from jaxbench.features.forecast.network import AlphaBetaLink, Hosts, MeasuredLinks
from jaxbench.machine import start as start_lib
from jaxbench.processes.client import WorkerError
from jaxbench.sweep import compile_only

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


@pytest.mark.parametrize("family", ["xla", "xla_remat", "torch_eager"])
def test_a_gpus_band_is_that_of_its_family_of_programs_around_the_compilers_order(family):
    times = schedule.Times(work_s=1.0, communication_s=0.5, scheduled_s=1.2)
    record = dataclasses.replace(at(64), family=family)
    made, known = estimate.banded(record, times, work.chip(record.device_kind)), hardware.forecast_band(family)
    assert (made.grade, made.family, made.runs) == ("estimated", family, known.runs)
    assert (made.low_s, made.high_s) == pytest.approx((1.2 * known.low, 1.2 * known.high))
    crossed = dataclasses.replace(times, scheduled_s=2.0)  # as extrapolation may leave it
    assert estimate.banded(record, crossed, work.chip(record.device_kind)).scheduled_s == 1.5


@pytest.mark.parametrize(
    ("remat", "recomputes"),
    [("block", True), ("full", True), ("save_qkv_proj", True), ("names:out_proj", True), ("none", False),
     ("dots_saveable", False), ("minimal_flash", False)],
)  # fmt: skip
def test_a_gpus_family_is_whether_products_are_recomputed(remat, recomputes):
    assert estimate.family("gpu", {"remat": remat}) == ("xla_remat" if recomputes else "xla")
    assert estimate.family("gpu", {}) == "xla"
    assert estimate.family("tpu", {"remat": "block"}) == "tpu"


def test_kernels_shorter_than_published_ones_leave_a_bound():
    """Time between kernels is not counted, so a step of short kernels may be far slower than its work."""
    whole, shortest = at(64), hardware.forecast_band("xla").kernel_s
    longer, shorter = (in_kernels(whole, share * whole.work_s / shortest) for share in (0.9, 1.1))
    assert (longer.grade, longer.high_s, longer.notes) == ("estimated", whole.high_s, whole.notes)
    assert (shorter.grade, shorter.high_s) == ("at best", None)
    assert shorter.low_s <= max(whole.work_s, whole.communication_s), "never above what nothing could be faster than"
    assert any("shorter than in any published run" in note for note in shorter.notes)
    assert in_kernels(shorter, 2).notes == whole.notes, "said of the forecast it is true of"


def test_a_tpus_band_is_around_all_communication_hidden():
    target = targets.parse("v5e:4x4")
    band = estimate.at_count(compiled_tpu(4), compiled_tpu(8), 16, target, network.of(target))
    known, hidden_s = hardware.forecast_band("tpu"), max(band.work_s, band.communication_s)
    assert (band.grade, band.runs) == ("estimated", known.runs)
    assert (band.low_s, band.high_s) == pytest.approx((known.low * hidden_s, known.high * hidden_s))


def test_a_deeper_model_is_a_line_through_two_depths():
    shallow = dataclasses.replace(at(16), peak_bytes=3 * 10**9, flops=2e12, parameters=100)
    deep = dataclasses.replace(
        shallow, peak_bytes=5 * 10**9, flops=3e12, parameters=150, work_s=shallow.work_s + 0.1,
        communication_s=shallow.communication_s + 0.01, scheduled_s=shallow.scheduled_s + 0.1,
    )  # fmt: skip
    whole = estimate.at_depth(shallow, deep, (2, 4), 32)
    assert whole.peak_bytes == 33 * 10**9
    assert (whole.flops, whole.parameters) == (17e12, 850)
    assert whole.work_s == pytest.approx(shallow.work_s + 1.5)
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
    assert "step_s" not in {field.name for field in dataclasses.fields(ForecastRecord)}


SLOW = Hosts(host=1, inside={}, between=AlphaBetaLink(alpha_s=1e-4, bytes_per_s=1e6))
SCALINGS, BYTES = ("strong", "weak"), 246_824  # 4 bytes of each of 61,706 parameters


def rows_of(path, scaling_name, **facts):
    run = RunFolder(run_folder(path, scalings=(scaling_name,), **facts))
    return run_rows.analyse(points.load(run), config=run.config())


def test_weak_scaling_adds_the_gradients_sum_and_its_messages_to_the_measured_step(tmp_path):
    rows = rows_of(tmp_path, "weak", devices=(1,))
    step = rows[0].timing.step_s
    made = estimate.from_measured(rows, 2, "1gbit", SLOW)
    assert made.basis == "measured"
    assert made.communication_s == pytest.approx(1e-4 + BYTES / 1e6)  # 2 (n - 1) / n = 1
    assert made.work_s == pytest.approx(step.value)
    assert made.scheduled_s == pytest.approx(step.value + made.communication_s)
    assert made.low_s == pytest.approx(max(step.lo, made.communication_s))
    assert made.high_s == pytest.approx(step.hi + made.communication_s)
    assert made.global_batch == 2 * rows[0].point.global_batch
    record = rows[0].point.record
    alone = Collective(kind="all-reduce", count=12, bytes=BYTES, group=1)  # within one device: nothing is sent
    compile_report = dataclasses.replace(record.compile_report, collectives=(alone,))
    point = dataclasses.replace(rows[0].point, record=dataclasses.replace(record, compile_report=compile_report))
    made = estimate.from_measured([dataclasses.replace(rows[0], point=point)], 2, "1gbit", SLOW)
    assert made.communication_s == pytest.approx(12 * 1e-4 + BYTES / 1e6, rel=1e-4)
    record = dataclasses.replace(rows[0].point.record, levers={"precision": "mixed"})
    point = dataclasses.replace(rows[0].point, record=record)
    made = estimate.from_measured([dataclasses.replace(rows[0], point=point)], 2, "1gbit", SLOW)
    assert made.communication_s == pytest.approx(1e-4 + BYTES / 2 / 1e6)
    rates = [1e9, 1e8, 1e7, 1e6]
    links = [AlphaBetaLink(alpha_s=1e-4, bytes_per_s=rate) for rate in rates]
    every = [estimate.from_measured(rows, 2, "", Hosts(host=1, inside={}, between=link)) for link in links]
    assert [made.scheduled_s for made in every] == sorted(made.scheduled_s for made in every)


def test_strong_scaling_shares_the_examples_and_says_so(tmp_path):
    rows = rows_of(tmp_path, "strong", devices=(1,))
    made = estimate.from_measured(rows, 4, "1gbit", SLOW)
    assert made.work_s == pytest.approx(rows[0].timing.step_s.value / 4)
    assert made.communication_s == pytest.approx(1e-4 + 1.5 * BYTES / 1e6)
    assert any("small batches are slower" in note for note in made.notes)


@pytest.mark.parametrize("rounds", [3, 5])
def test_a_step_of_few_rounds_says_that_its_band_lacks_its_variation(tmp_path, rounds):
    made = estimate.from_measured(rows_of(tmp_path, "weak", devices=(1,), rounds=rounds), 2, "1gbit", SLOW)
    said = "was measured in 3 rounds, too few for a confidence interval, so the band does not include its variation."
    assert any(note.endswith(said) for note in made.notes) == (rounds == 3)


def test_the_messages_of_a_compiled_step_cost_what_is_assumed_given_or_in_the_card(tmp_path):
    rows = rows_of(tmp_path, "weak", devices=(1, 2))
    made = estimate.from_measured(rows, 2, "1gbit", SLOW)
    assert made.communication_s == pytest.approx(12 * 1e-4 + (BYTES + 8) / 1e6, rel=1e-4)  # 12 arrays, each a message
    assert made.work_s == pytest.approx(rows[0].timing.step_s.value)
    assumed, given = (
        estimate.from_measured(rows, 2, text, Hosts(host=1, inside={}, between=network.parse(text)))
        for text in ("1gbit", "1gbit:200us")
    )
    assert (assumed.low_s, assumed.scheduled_s) == (given.low_s, given.scheduled_s)
    assert assumed.high_s == pytest.approx(given.high_s + 12 * (2.7e-3 - 2e-4))  # 12 arrays, each a message
    assert any("give --card" in note for note in assumed.notes)
    assert not any("give --card" in note for note in given.notes)
    link = {"op": "all_reduce", "dtype": "float32", "devices": 2, "mesh": "2", "alpha_s": 1e-3, "bus_bytes_per_s": 1e6}
    made = estimate.from_measured(rows, 2, "machine.json", MeasuredLinks(profile={"links": [link]}))
    assert made.communication_s == pytest.approx(12 * 1e-3 + (BYTES + 8) / 1e6, rel=1e-4)
    assert made.high_s == pytest.approx(rows[0].timing.step_s.hi + made.communication_s)


def test_an_impossible_forecast_is_reported(tmp_path):
    with pytest.raises(UserError, match="the run's smallest point has 2 devices"):
        estimate.from_measured(rows_of(tmp_path / "a", "weak", devices=(2, 4)), 8, "1gbit", SLOW)
    sharded = rows_of(tmp_path / "b", "weak", devices=(1,), strategies=("fsdp",))
    with pytest.raises(UserError, match="fsdp was measured on one device only"):
        estimate.from_measured(sharded, 2, "1gbit", SLOW)
    wrong = rows_of(tmp_path / "c", "weak", devices=(1,), wrong=("shard_map/weak/1",))
    with pytest.raises(UserError, match="no measured point of this strategy in the run passed its checks"):
        estimate.from_measured(wrong, 2, "1gbit", SLOW)


GIB = 2**30


class Refusing:
    """A TPU compiler that always reports out of memory: 0.5 GiB a block, and 204 GiB shared among the devices."""

    options: dict[str, str] = {}
    compiled: list[int] = []
    says = "RESOURCE_EXHAUSTED: the total memory required for HLO temporaries ({}G) exceeds available HBM (1.00M)."

    def __init__(self, setup, log):
        self.blocks = setup.config["model"]["layers"]

    def ask(self, request, limit_s):
        Refusing.options = request.options
        Refusing.compiled.append(self.blocks)
        raise WorkerError(self.says.format(0.5 * self.blocks + 204 / request.point["devices"]), stage="compile")

    def close(self):
        pass


@pytest.fixture
def needs(monkeypatch, tmp_path):
    monkeypatch.setattr(compile_only, "Worker", Refusing)
    monkeypatch.setattr(start_lib, "require_target", lambda target: None)
    config = composed("gpt", **{"mesh.devices": "4,8", "scaling": "weak", "strategy": "fsdp"})
    console, target = Console(file=io.StringIO()), targets.parse("v5e:16x16")
    monkeypatch.setattr(Refusing, "compiled", [])
    return lambda blocks=16, **how: memory.needs("gpt", config, target, tmp_path / "memory", console, blocks, **how)


def test_memory_is_compiled_at_two_counts_and_extrapolated_to_others(needs):
    found, unknown = needs()
    one_count = {("fsdp", "weak", ""): {8: 10**9}}
    assert memory.replaced(at(8), one_count, ()).peak_bytes == 10**9
    assert memory.replaced(at(16), one_count, ()).peak_bytes is None
    assert not unknown
    assert Refusing.options["xla_tpu_max_hbm_size_mib"] == "1"
    assert Refusing.options["xla_tpu_enable_async_collective_fusion_fuse_all_gather"] is True
    for count in (4, 8, 16, 256):
        made = memory.replaced(at(count), found, unknown)
        assert made.peak_bytes == pytest.approx((8 + 204 / count) * GIB, rel=1e-6)
        assert made.low_s == at(count).low_s
        assert SAVES_MEMORY in made.notes[-1]


def test_memory_of_a_deep_model_is_a_line_through_two_depths_that_save_memory(needs):
    found, _ = needs(96)
    assert found["fsdp", "weak", ""][8] == pytest.approx((48 + 204 / 8) * GIB)
    assert Refusing.compiled == [8, 8, 16, 16]
    whole, _ = needs(96, whole=True)
    assert whole["fsdp", "weak", ""] == pytest.approx(found["fsdp", "weak", ""]) and Refusing.compiled[4:] == [96, 96]


def test_memory_is_unknown_where_the_compiler_does_not_say(needs, monkeypatch):
    monkeypatch.setattr(Refusing, "says", "no answer within 900 s")
    made = memory.replaced(at(16), *needs())
    assert made.peak_bytes is None and made.fits is None
    assert "The memory of fsdp/weak/4 is unknown: no answer within 900 s" in " ".join(made.notes)


@pytest.mark.parametrize(
    ("target", "devices", "gib", "fits"),
    [("v5p:4x4x4", 64, 200, None), ("v6e:2x4", 8, 200, None), ("v5p:4x4x4", 64, 3, True),
     ("v6e:4x4", 16, 200, False), ("v5e:2x4", 8, 200, False)],
)  # fmt: skip
def test_an_upper_bound_can_say_that_it_fits_but_never_that_it_does_not(target, devices, gib, fits):
    record = dataclasses.replace(at(devices), target=target, memory_bytes=16 * GIB)
    made = memory.replaced(record, {("fsdp", "weak", ""): {devices: gib * GIB}}, ())
    assert made.fits is fits
    assert ("is at most" in made.notes[-1]) is (fits is None)


def test_a_need_just_above_a_tpus_memory_leaves_it_unknown():
    """MaxText's Llama 2 70B ran on v6e, 0.4 % above the memory of a chip by this method."""
    record = dataclasses.replace(at(16), target="v6e:4x4", memory_bytes=32 * GIB)
    for gib, fits in ((31, True), (32.1, None), (40, False)):
        made = memory.replaced(record, {("fsdp", "weak", ""): {16: round(gib * GIB)}}, ())
        assert made.fits is fits
        assert ("unknown whether" in made.notes[-1]) is (fits is None)


@pytest.mark.parametrize(
    ("line", "whole", "peak", "fits"),
    [(60, None, 60, True), (80, None, None, None), (98, None, None, None), (80, 70, 70, True), (198, 84, 84, True),
     (80, 98, None, None)],
)  # fmt: skip
def test_memory_of_a_gpu_is_that_of_all_blocks_or_a_certain_line_and_never_too_much(line, whole, peak, fits):
    """A published hybrid layout on 8 x 128 H100 ran, and the line through its depths was at 98 of 85 GB. A 7B needed 49
    GB with all blocks, and the line said 42."""
    asked = {("fsdp", "weak", ""): {64: whole * 10**9}} if whole else {}
    made = memory.on_a_gpu(dataclasses.replace(at(64), peak_bytes=line * 10**9), asked, ["No answer."])
    assert (made.peak_bytes, made.fits) == (peak and peak * 10**9, fits)
    assert any("unknown whether the step fits" in note for note in made.notes) is (fits is None)
    assert ("No answer." in made.notes) is (fits is None)
