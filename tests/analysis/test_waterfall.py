# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A known loss is found in its own factor and in no other; the product of all factors is the efficiency."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fabricate
import fabricate_cases
import fabricate_losses as fab
import numpy as np
import pytest
from fabricate_losses import Loss

from jaxbench.analysis import alpha_beta, loss_sentences, machine_profile, points, run_rows, waterfall
from jaxbench.analysis.waterfall import NAMES, Waterfall
from jaxbench.core import schema, store
from jaxbench.core.store import RunFolder
from jaxbench.statistics.bootstrap import Estimate

USUAL = Loss(share=0.97, machine=0.91, communication=0.92)
LINK = {"op": "all_reduce", "dtype": "float32", "devices": 2, "mesh": "2", "axis": "x", "oversubscribed": False}
LINK |= {"alpha_s": 2e-5, "beta_bytes_per_s": 2e9, "bus_bytes_per_s": 2e9}


def rows_of(path: Path) -> list[run_rows.Row]:
    run = RunFolder(path)
    return run_rows.analyse(points.load(run), config=run.config())


def made(path: Path, losses: dict[int, Loss] | None = None, **facts: Any) -> dict[str, Waterfall]:
    rows = rows_of(fab.folder(path, losses or {2: USUAL}, **facts))
    return {one.point.point: one for one in waterfall.find(rows, facts.get("machine"))}


def only(path: Path, loss: Loss, **facts: Any) -> Waterfall:
    (one,) = made(path, {2: loss}, **facts).values()
    return one


def whole(one: Waterfall) -> float:
    return float(np.prod([factor.value.value for factor in one.factors]))


ALONE = {
    "extra work": (Loss(extra=0.8), 0.8),
    "smaller share": (Loss(share=0.9), 0.9),
    "shared machine": (Loss(machine=0.85), 0.85),
    "unequal devices": (Loss(unequal=0.75), 0.75),
    "shared runtime": (Loss(runtime=0.8), 0.8),
    "slowest process": (Loss(slowest=0.9), 0.9),
    "waiting for input": (Loss(fed=0.88), 0.88),
    "communication": (Loss(communication=0.9), 0.9),
    "not explained": (Loss(communication=1 / 1.1, collectives=0.1, rest=0.93), 0.93),
}


@pytest.mark.parametrize("name", ALONE)
def test_a_known_loss_is_found_in_its_factor_and_in_no_other(tmp_path: Path, name: str) -> None:
    loss, value = ALONE[name]
    one = only(tmp_path, loss, noise=0.01)
    found = one.factor(name)
    assert found is not None and found.resolved and found.value.value == pytest.approx(value, abs=0.01)
    if name not in ("extra work", "slowest process", "unequal devices"):  # counted, or without noise: no interval
        assert found.value.lo <= value <= found.value.hi
    others = {factor.name for factor in one.factors if factor.resolved} - {name}
    assert others == ({"communication"} if name == "not explained" else set())
    assert whole(one) == pytest.approx(one.row.efficiency.value, rel=1e-12)
    assert sum(factor.lost.value for factor in one.factors) == pytest.approx(100 * (1 - one.efficiency.value))


def test_a_slow_core_is_named_and_is_no_contention(tmp_path: Path) -> None:
    one = only(tmp_path, Loss(unequal=0.75, machine=0.95), noise=0.01)
    assert one.factor("shared machine").value.value == pytest.approx(0.95, abs=0.01)  # type: ignore[union-attr]
    said = " ".join(loss_sentences.advice([one]))
    assert "CPU 1 was 2.0 times slower than the fastest CPU" in said and "another tenant" in said


def test_a_busy_machine_is_named_and_there_is_no_advice_about_the_program(tmp_path: Path) -> None:
    one = only(tmp_path, Loss(machine=0.6), noise=0.01)
    (quiet,) = loss_sentences.advice([one])
    assert "contention between the devices costs" in quiet
    taken = [
        dataclasses.replace(
            each, cpu_s=each.block_s + each.double_block_s, cpus=2, others_s=each.block_s + each.double_block_s
        )
        for each in one.point.rounds
    ]
    busy = dataclasses.replace(
        one, row=dataclasses.replace(one.row, point=dataclasses.replace(one.point, rounds=tuple(taken)))
    )
    (said,) = loss_sentences.advice([busy])
    assert "this machine was busy: other processes took 50 % of its CPUs in 10 of 10 rounds" in said
    assert "overlap" not in said and "bytes" not in said


def test_processes_of_one_device_tell_one_runtime_from_the_machine(tmp_path: Path) -> None:
    one = only(tmp_path, Loss(runtime=0.7), noise=0.01)
    said = " ".join(loss_sentences.advice([one]))
    assert "2 processes of one device each would take" in said and "not the machine" in said
    assert "contention" not in said
    assert "to one runtime for all devices" in loss_sentences.sentence(one)


def test_records_of_before_resident_input_have_what_one_block_waited(tmp_path: Path) -> None:
    one = only(tmp_path, Loss(waited=0.12), noise=0.01)
    assert [factor.name for factor in one.factors if factor.resolved] == ["waiting for input"]
    assert one.factor("waiting for input").value == Estimate(value=pytest.approx(0.88))  # type: ignore[union-attr]
    assert whole(one) == pytest.approx(one.row.efficiency.value, rel=1e-12)


def test_resident_input_that_failed_is_named(tmp_path: Path) -> None:
    for place in ("shard_map/strong/1/resident", "shard_map/strong/2/resident"):
        one = only(tmp_path / place, Loss(fed=0.8), without=(place,))
        assert [factor.name for factor in one.factors] == ["not explained"]
        assert len(one.missing) == 1 and one.missing[0].startswith(f"{place} (")


def test_the_work_of_a_stage_is_no_smaller_share_and_no_extra_work(tmp_path: Path) -> None:
    """In a pipeline's loop the count of products uses the most expensive work of each tick, also for idle ticks."""
    loss = Loss(extra=0.8, share=0.9, idle=1 / 5)
    one = only(tmp_path, loss, strategies=("pipeline",), levers={"accumulate": "4"})
    assert [factor.name for factor in one.factors if factor.resolved] == ["work of a stage", "pipeline bubble"]
    assert one.factor("work of a stage").value.value == pytest.approx(0.72, abs=0.01)  # type: ignore[union-attr]
    (said,) = loss_sentences.sentences([one])
    assert "28 to stages that do more than a K-th of the work" in said


def test_a_smaller_batch_that_is_not_a_share_of_the_work_explains_nothing(tmp_path: Path) -> None:
    """As with a contrastive loss: half of the batch has a quarter of the similarity matrix."""
    base, row = rows_of(fab.folder(tmp_path, {2: Loss(machine=0.9)}))
    alone = row.ablations["alone"]
    record = alone.point.record
    compile_report = dataclasses.replace(record.compile_report, product_flops_per_step=0.35 * fab.FLOPS)
    point = dataclasses.replace(alone.point, record=dataclasses.replace(record, compile_report=compile_report))
    parts = {**row.ablations, "alone": dataclasses.replace(alone, point=point)}
    (one,) = waterfall.find([base, dataclasses.replace(row, ablations=parts)])
    assert [factor.name for factor in one.factors if factor.resolved] == ["not explained"]
    assert one.missing == (
        "shard_map/strong/2/alone (a smaller batch has 0.70x the products of a device's part of the step)",
    )


def with_products(row: run_rows.Row, flops: float) -> run_rows.Row:
    record = row.point.record
    assert record is not None
    compile_report = dataclasses.replace(record.compile_report, product_flops_per_step=flops)
    return dataclasses.replace(
        row, point=dataclasses.replace(row.point, record=dataclasses.replace(record, compile_report=compile_report))
    )


@pytest.mark.parametrize(
    ("share", "products", "extra"),
    [
        (1.0, 1.47e7, 1.0),  # boosted trees: the same products for any number of rows, in almost no time
        (0.5, 1.47e7, 1.0),  # a step that takes as long for half of the rows, but not because of its few products
        (1.0, fab.FLOPS, 1.0),  # products could fill the time, yet half of the rows take half of the time
        (0.5, fab.FLOPS, 0.5),  # an optimizer with products of its own, which dominate the time
        (0.45, fab.FLOPS, 0.5),  # the same, and small products are slower
    ],
)
def test_flops_count_only_where_products_dominate_the_time(
    tmp_path: Path, share: float, products: float, extra: float
) -> None:
    """These products do not shrink with the batch, so their FLOPs suggest that half of the work is extra."""
    base, row = rows_of(fab.folder(tmp_path, {2: Loss(share=share, machine=0.95)}, peak=True))
    parts = {**row.ablations, "alone": with_products(row.ablations["alone"], products)}
    row = dataclasses.replace(with_products(row, 2 * products), ablations=parts)
    (one,) = waterfall.find([with_products(base, products), row])
    assert not one.missing
    found = {factor.name: factor.value.value for factor in one.factors if factor.resolved}
    assert found.get("extra work", 1.0) == extra
    assert found.get("smaller share", 1.0) == pytest.approx(share / extra, abs=0.01)
    assert whole(one) == pytest.approx(one.row.efficiency.value, rel=1e-12)


def test_a_bubble_is_measured_and_compared_with_its_formula(tmp_path: Path) -> None:
    loss = Loss(idle=1 / 4, machine=0.9)
    settings = {"strategies": ("pipeline",), "levers": {"accumulate": "4", "schedule": "1f1b"}}
    one = only(tmp_path, loss, **settings)  # type: ignore[arg-type]
    bubble, communication = one.factor("pipeline bubble"), one.factor("communication")
    assert bubble is not None and bubble.value.has_interval and bubble.value.value == pytest.approx(0.75, abs=0.005)
    assert communication is None or not communication.resolved
    (said,) = loss_sentences.sentences([one])
    assert (
        "23 to the pipeline's bubble (25 % of the time, 20 % of the schedule)" in said
    )  # two stages, four micro-batches
    mixed = dataclasses.replace(one.point, strategy="hybrid", levers={**one.point.levers, "mesh": "data=2,stage=4"})
    assert waterfall.bubble_share(mixed) == pytest.approx(3 / 7)


def test_a_bubble_that_was_not_measured_is_named_and_not_explained(tmp_path: Path) -> None:
    place = "pipeline/strong/2/schedule"
    one = only(tmp_path, Loss(idle=1 / 4, collectives=0.1), strategies=("pipeline",), without=(place,))
    assert one.factor("pipeline bubble") is None and one.missing == (f"{place} (build: no such part)",)
    assert one.factor("not explained").resolved  # type: ignore[union-attr]


def test_all_at_once_have_the_efficiency_as_their_product(tmp_path: Path) -> None:
    loss = Loss(
        extra=0.9, share=0.95, machine=0.8, slowest=0.95, fed=0.9, communication=0.8, collectives=0.25, rest=0.97
    )
    for one in made(tmp_path, {2: loss, 4: loss}, scalings=("strong", "weak"), noise=0.01).values():
        assert whole(one) == pytest.approx(one.row.efficiency.value, rel=1e-12)
        if one.point.scaling == "strong":
            others = ("work of a stage", "pipeline bubble", "unequal devices", "shared runtime", "clock")
            assert [factor.name for factor in one.factors] == [name for name in NAMES if name not in others]
            assert one.efficiency.value == pytest.approx(loss.efficiency, rel=0.01)


def test_weak_scaling_of_the_batch_has_no_smaller_share(tmp_path: Path) -> None:
    one = made(tmp_path, scalings=("strong", "weak"))["shard_map/weak/2"]
    assert [factor.name for factor in one.factors if factor.resolved] == ["shared machine", "communication"]
    assert one.lost("smaller share") == Estimate(value=0.0) and not one.missing


def test_communication_that_is_hidden(tmp_path: Path) -> None:
    one = only(tmp_path, Loss(communication=1 / 1.1, collectives=0.4))
    assert one.hidden.lo < 0.75 < one.hidden.hi and one.hidden.value == pytest.approx(0.75, abs=0.02)
    local = fab.BASE_S / 2
    assert one.communication_s.value == pytest.approx(0.4 * local, rel=0.05)
    assert one.local_s.value == pytest.approx(local, rel=0.05)


def test_a_missing_part_takes_away_its_factors_and_nothing_else(tmp_path: Path) -> None:
    place = "shard_map/strong/2"
    lost = {
        "alone": {"smaller share", "shared machine"},
        "local": {"shared machine", "communication"},
        "communication": set(),
    }
    for part, gone in lost.items():
        for which in ({"without": (f"{place}/{part}",)}, {"wrong": (f"{place}/{part}",)}):
            one = only(tmp_path / part / next(iter(which)), USUAL, **which)
            names = {factor.name for factor in one.factors if factor.resolved}
            assert names == {"smaller share", "shared machine", "communication"} - gone | (
                {"not explained"} if gone else set()
            )
            assert whole(one) == pytest.approx(one.row.efficiency.value, rel=1e-12)
            (why,) = one.missing
            assert why.startswith(f"{place}/{part} (") and ("no such part" in why or "differ from those" in why)
            assert f"Not measured: {why}." in loss_sentences.sentence(one)
            assert one.lost("extra work") == waterfall.UNKNOWN


def test_points_that_explain_are_in_no_table_and_make_no_run_red(tmp_path: Path) -> None:
    path = fab.folder(tmp_path, {2: USUAL}, without=("shard_map/strong/2/alone",), wrong=("shard_map/strong/2/local",))
    loaded, rows = points.load(RunFolder(path)), rows_of(path)
    assert len(loaded) == 5 and [row.point_id for row in rows] == ["shard_map/strong/1", "shard_map/strong/2"]
    assert {name: run_rows.fault(part) for name, part in rows[1].ablations.items()} == {
        "alone": "build: no such part", "local": "parameters: differ from those of one device", "communication": "",
    }  # fmt: skip


def test_the_shared_thread_pool_is_named_only_where_no_factor_has_it(tmp_path: Path) -> None:
    local = "shard_map/strong/2/local"
    for which, said in (({}, False), ({"without": (local,)}, True), ({"wrong": (local,)}, True)):
        row = rows_of(fab.folder(tmp_path / str(which), {2: USUAL}, **which))[1]
        assert any("shared CPU thread pool" in note for note in row.notes) == said


def test_rows_without_a_waterfall(tmp_path: Path) -> None:
    rows = {row.point_id: row for row in rows_of(fab.folder(tmp_path, {2: USUAL}))}
    base, row = rows["shard_map/strong/1"], rows["shard_map/strong/2"]
    crowded = dataclasses.replace(row.point, oversubscribed=True)
    larger = dataclasses.replace(base, point=dataclasses.replace(base.point, devices=2))
    assert len(waterfall.find([base, row])) == 1
    assert not waterfall.find([base, dataclasses.replace(row, gate="refused")])
    assert not waterfall.find([base, dataclasses.replace(row, point=crowded)])
    assert not waterfall.find([base, dataclasses.replace(row, point=dataclasses.replace(row.point, check_ok=False))])
    assert not waterfall.find([larger, row])
    assert not waterfall.find([base, dataclasses.replace(row, ablations={})])


@pytest.mark.parametrize(("rounds", "explained"), [(4, 0), (5, 1)])
def test_few_rounds_explain_nothing(tmp_path: Path, rounds: int, explained: int) -> None:
    assert len(made(tmp_path, rounds=rounds)) == explained


def test_few_rounds_of_the_parts_are_the_reason_that_the_page_gives(tmp_path: Path) -> None:
    run = RunFolder(fab.folder(tmp_path, {2: USUAL}, rounds=12, scalings=("strong", "weak")))
    few = [
        dataclasses.replace(point, rounds=point.rounds[::4]) if point.explains else point for point in points.load(run)
    ]
    rows = run_rows.analyse(few, config=run.config())
    assert waterfall.find(rows) == []
    (said,) = loss_sentences.withheld(waterfall.withheld(rows))  # the reason is common, so it is said once
    assert said == (
        "shard_map strong, 2 devices; shard_map weak, 2 devices: no waterfall, because 3 rounds have the point, its "
        "base and all of its parts, and an interval needs 5. More rounds need a larger --config.measure.rounds, or a "
        "larger --config.measure.budget_s."
    )


def test_the_efficiency_is_that_of_the_row_although_its_parts_have_fewer_rounds(tmp_path: Path) -> None:
    """Parts of a run get as many rounds as their factors need; the page once showed two different efficiencies."""
    run = RunFolder(fab.folder(tmp_path, {2: USUAL}, rounds=20, noise=0.1))
    few = [
        dataclasses.replace(point, rounds=point.rounds[::3]) if point.explains else point for point in points.load(run)
    ]
    rows = run_rows.analyse(few, config=run.config())
    (one,) = waterfall.find(rows)
    assert (one.efficiency, one.row.timing.rounds) == (one.row.efficiency, 20) and one.efficiency.has_interval
    assert whole(one) == pytest.approx(one.efficiency.value)


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (
            USUAL,
            "Lost: 3 to a smaller per-device batch, 9 to contention, 7 to communication that is not hidden.",
        ),
        (Loss(share=1.04, machine=0.9), "Lost: 10 to contention. Gained: 4 from a smaller per-device batch."),
    ],
)
def test_the_sentence(tmp_path: Path, loss: Loss, said: str) -> None:
    text = loss_sentences.sentence(only(tmp_path, loss, noise=0.0005))
    assert text.startswith(f"2 devices: {int(100 * loss.efficiency)}") and text.partition("]. ")[2] == said


def test_a_loss_within_the_noise_is_said_to_be(tmp_path: Path) -> None:
    one = only(tmp_path, Loss(machine=0.8, share=0.999), noise=0.05, drift=0.0)
    assert (text := loss_sentences.sentence(one)) and "to a smaller per-device batch" not in text
    assert "Not clear from 0: smaller per-device batch -" in text


def test_strategies_are_named_where_there_are_several(tmp_path: Path) -> None:
    every = list(made(tmp_path, strategies=("shard_map", "fsdp")).values())
    assert [text.split(",")[0] for text in loss_sentences.sentences(every)] == ["shard_map strong", "fsdp strong"]


def test_the_prediction_of_alpha_and_beta(tmp_path: Path) -> None:
    card = fabricate_cases.card(links=[{**LINK, "dtype": "bfloat16", "alpha_s": 1.0}, LINK])
    store.write_json(tmp_path / "card.json", card)
    assert machine_profile.read(tmp_path / "card.json") == card
    one = only(tmp_path / "run", USUAL, sent=(400_000,))
    assert alpha_beta.communication_s(one.point, card) == pytest.approx(12 * 2e-5 + 4e5 / 2e9)
    (told,) = loss_sentences.communication([dataclasses.replace(one, predicted_s=0.00044)])
    assert "the collectives alone take" in told and told.endswith("of the machine profile predict 440 µs.")
    wide = {**LINK, "devices": 2, "bus_bytes_per_s": 1.0}
    others = [{**wide, "group_processes": 2}, {**wide, "group_processes": 2, "group_hosts": 2}, LINK]
    with_others = fabricate_cases.card(links=others)
    assert alpha_beta.communication_s(one.point, with_others) == alpha_beta.communication_s(one.point, card)
    elsewhere = fabricate_cases.card(links=[{**LINK, "devices": 4}])
    assert not np.isfinite([alpha_beta.communication_s(one.point, each) for each in (None, elsewhere)]).any()


@pytest.mark.parametrize(("hosts", "bandwidth"), [(("a", "a"), 1e9), (("a", "b"), 1e8), ((), 1e9)])
def test_two_hosts_are_predicted_by_the_link_between_hosts(
    tmp_path: Path, hosts: tuple[str, ...], bandwidth: float
) -> None:
    of_processes = {**LINK, "group_processes": 2, "bus_bytes_per_s": 1e9}
    card = fabricate_cases.card(links=[LINK, of_processes, {**of_processes, "group_hosts": 2, "bus_bytes_per_s": 1e8}])
    one = only(tmp_path, USUAL, sent=(400_000,)).point
    assert one.record is not None
    record = dataclasses.replace(one.record, processes=2)
    workers = {record.worker: {"hosts": list(hosts)} if hosts else {}}
    found = alpha_beta.communication_s(dataclasses.replace(one, record=record), card, workers)
    assert found == pytest.approx(12 * 2e-5 + 4e5 / bandwidth)
    compile_report = dataclasses.replace(
        record.compile_report, collectives=(dataclasses.replace(record.compile_report.collectives[0], group=2),)
    )
    of_four = dataclasses.replace(record, devices=4, compile_report=compile_report)
    assert np.isnan(alpha_beta.communication_s(dataclasses.replace(one, record=of_four), card, workers))


def test_a_point_that_explains_is_read_back() -> None:
    record = fabricate.point_record(
        point="shard_map/strong/2/local", devices=2, explains="shard_map/strong/2", levers={"part": "local"}
    )
    again = schema.from_json(schema.to_json(record))
    assert again == record and "explains" in schema.to_json(record)
    old = {name: value for name, value in schema.to_json(record).items() if name != "explains"}
    assert schema.from_json(old).explains == ""  # type: ignore[union-attr]


def test_advice_names_the_batch_at_which_a_smaller_share_stops_costing(tmp_path: Path) -> None:
    losses = {2: Loss(), 4: Loss(share=0.9), 8: Loss(share=0.7)}
    (said,) = loss_sentences.advice(list(made(tmp_path, losses).values()))
    assert said == (
        "shard_map strong: a per-device batch of 32 images costs 30 points on 8 devices; 128 images cost less than 1 "
        "point (on 2 devices). Use a global batch of 1024 instead of 256 on 8 devices."
    )
    (said,) = loss_sentences.advice(list(made(tmp_path / "more", {2: Loss(share=0.8)}).values()))
    assert "(128) still loses time: run with --config.explain=more" in said
    (said,) = loss_sentences.advice(
        list(made(tmp_path / "most", {2: Loss(share=0.8)}, more=1.1, noise=0.0002).values())
    )
    assert "(128) still loses time: one device is 1.10 x [1." in said
    assert said.endswith("] as fast with a batch of 512 as with 256.")


def test_advice_on_communication(tmp_path: Path) -> None:
    none_hidden = Loss(communication=1 / 1.5, collectives=0.5)
    (said,) = loss_sentences.advice(list(made(tmp_path / "a", {2: none_hidden}).values()))
    assert "of the communication is hidden on 2 devices: improve the overlap" in said
    assert "would regain at most 33 points" in said
    hidden = Loss(communication=1 / 1.2, collectives=1.5)
    two = made(tmp_path / "b", {2: hidden}, strategies=("shard_map", "zero1"), sent=(2_000_000, 1_500_000))
    lossless = dataclasses.replace(two["zero1/strong/2"], factors=())
    (said,) = loss_sentences.advice([two["shard_map/strong/2"], lossless])
    assert said.startswith("shard_map strong: its collectives alone take")
    assert said.endswith("a device sends 2.00 MB per step, and 1.50 MB with zero1.")
    (said,) = loss_sentences.advice([two["zero1/strong/2"]])
    assert said.endswith("a device sends 1.50 MB per step, and no other strategy of this run sends less.")


@pytest.mark.parametrize(
    ("processes", "arrays", "said"), [(2, 10, "each of its 10 gradient arrays"), (1, 10, ""), (2, 2, "")]
)
def test_gradients_between_processes_on_cpus_are_to_be_sent_as_one(
    tmp_path: Path, processes: int, arrays: int, said: str
) -> None:
    one = only(tmp_path, Loss(communication=0.8))
    record = one.row.point.record
    assert record is not None
    sums = dataclasses.replace(record.compile_report.collectives[0], count=arrays + 2, scalars=2)
    compile_report = dataclasses.replace(record.compile_report, collectives=(sums,))
    point = dataclasses.replace(
        one.row.point, record=dataclasses.replace(record, processes=processes, compile_report=compile_report)
    )
    found = " ".join(loss_sentences.advice([dataclasses.replace(one, row=dataclasses.replace(one.row, point=point))]))
    assert ("--config.lever.reduction=fused" in found) == bool(said) and said in found


def test_other_advice_has_its_number_too(tmp_path: Path) -> None:
    loss = Loss(idle=1 / 5, machine=0.8, waited=0.2)
    every = made(tmp_path, {2: loss}, strategies=("pipeline",), levers={"accumulate": "4"})
    machine, bubble, waiting = loss_sentences.advice(list(every.values()))
    assert "Each step takes 1.25x as long when all devices run" in machine
    assert "with 4 micro-batches 20 % of the schedule of 2 stages is idle. With 16 it would be 6 %" in bubble
    assert "waiting for input costs" in waiting and "on 2 devices (the step waits 20 % of its time)" in waiting


def test_no_advice_within_the_noise(tmp_path: Path) -> None:
    assert not loss_sentences.advice(list(made(tmp_path, {2: Loss(machine=0.995)}, noise=0.05).values()))


def test_the_peak_is_that_of_a_large_product_in_the_same_rounds(tmp_path: Path) -> None:
    rows = rows_of(fab.folder(tmp_path, {2: USUAL}, scalings=("strong", "weak"), peak=True))
    share = fab.FLOPS / fab.BASE_S / fab.PEAK
    for row in rows:
        expected = share * (USUAL.efficiency if row.point.devices == 2 else 1)
        assert row.use.product_share.lo < expected < row.use.product_share.hi
        assert row.use.measured_peak_share == row.use.product_share.value and row.gate == "passed"
    assert rows[0].use.measured_note == rows[0].use.product_note and "in the same rounds" in rows[0].use.full_note


def slowed(times: Callable[[int], float], **facts: Any) -> Callable[[dict[str, Any]], None]:
    """Slows the large product by a factor of each round."""

    def edit(line: dict[str, Any]) -> None:
        if line["kind"] == "round" and line["point"].endswith("/peak"):
            for name in ("block_s", "double_block_s"):
                line[name] = [times(line["round"]) * each for each in line[name]]
            for name, value in facts.items():
                line[name] = [value * wall for wall in (*line["block_s"], *line["double_block_s"])]
            line["cpus"] = 1

    return edit


# The step is half as fast as a quiet product. A neighbour disturbs all rounds but one, most, or all of them.
DISTURBED = {
    "all but one": (slowed(lambda r: 1.0 if r == 0 else 9.5), "not faster than the product's best block: 3"),
    "most": (slowed(lambda r: 1.0 if r in (2, 7) else 9.5 + r), "of its best block, 5"),
    "all": (slowed(lambda r: 9.5, cpu_s=0.3, others_s=0.7), "because the product was disturbed ("),
}


@pytest.mark.parametrize("how", DISTURBED)
def test_a_product_that_was_disturbed_makes_no_step_impossible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """476 % [176, 1240] of a rate of 24 GFLOP/s, which is 230 in a quiet moment, was "impossible"."""
    monkeypatch.setattr(fab, "PEAK", fab.FLOPS / fab.BASE_S / 0.5)
    edit, said = DISTURBED[how]
    run = fab.folder(tmp_path, {2: Loss()}, peak=True)
    fabricate.edit(run, edit)
    row = rows_of(run)[0]
    assert row.use.product_share.value > 1.1
    assert row.gate == "passed" and said in row.gate_reason, row.gate_reason


def test_more_than_the_product_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fab, "PEAK", fab.FLOPS / fab.BASE_S / 1.5)
    row = rows_of(fab.folder(tmp_path, {2: Loss()}, peak=True))[0]
    assert row.gate == "refused" and row.gate_reason.endswith("one of the two is wrong")
