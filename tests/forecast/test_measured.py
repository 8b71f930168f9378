# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""From a measured step to more devices: local work does not change, communication follows from the link."""

from __future__ import annotations

import dataclasses

import pytest
from fabricate import run_folder

from jaxbench.analysis import points, scaling
from jaxbench.errors import UserError
from jaxbench.forecast import measured, network
from jaxbench.forecast.network import AlphaBetaLink, Carded, Hosts
from jaxbench.records.schema import Collective
from jaxbench.records.store import RunFolder

SLOW = Hosts(host=1, inside={}, between=AlphaBetaLink(alpha_s=1e-4, bytes_per_s=1e6))
SCALINGS, BYTES = ("strong", "weak"), 246_824  # 4 bytes of each of 61,706 parameters


def rows_of(path, scaling_name, **facts):
    run = RunFolder(run_folder(path, scalings=(scaling_name,), **facts))
    return scaling.analyse(points.load(run), config=run.config())


def test_weak_scaling_adds_the_gradients_sum_to_the_measured_step(tmp_path):
    rows = rows_of(tmp_path, "weak", devices=(1,))
    step = rows[0].timing.step_s
    made = measured.forecast(rows, 2, "1gbit", SLOW)
    assert made.basis == "measured"
    assert made.communication_s == pytest.approx(1e-4 + BYTES / 1e6)  # 2 (n - 1) / n = 1
    assert made.work_s == pytest.approx(step.value)
    assert made.scheduled_s == pytest.approx(step.value + made.communication_s)
    assert made.low_s == pytest.approx(max(step.lo, made.communication_s))
    assert made.high_s == pytest.approx(step.hi + made.communication_s)
    assert made.global_batch == 2 * rows[0].point.global_batch


def test_strong_scaling_shares_the_examples_and_says_so(tmp_path):
    rows = rows_of(tmp_path, "strong", devices=(1,))
    made = measured.forecast(rows, 4, "1gbit", SLOW)
    assert made.work_s == pytest.approx(rows[0].timing.step_s.value / 4)
    assert made.communication_s == pytest.approx(1e-4 + 1.5 * BYTES / 1e6)
    assert any("small batches are slower" in note for note in made.notes)


def test_the_messages_of_a_compiled_step_are_taken_where_there_are_some(tmp_path):
    rows = rows_of(tmp_path, "weak", devices=(1, 2))
    made = measured.forecast(rows, 2, "1gbit", SLOW)
    assert made.communication_s == pytest.approx(12 * 1e-4 + (BYTES + 8) / 1e6, rel=1e-4)  # 12 arrays, each a message
    assert made.work_s == pytest.approx(rows[0].timing.step_s.value)


def test_a_slower_link_is_never_a_shorter_step(tmp_path):
    rows = rows_of(tmp_path, "weak", devices=(1,))
    rates = [1e9, 1e8, 1e7, 1e6]
    every = [
        measured.forecast(rows, 2, "", Hosts(host=1, inside={}, between=AlphaBetaLink(alpha_s=1e-4, bytes_per_s=rate)))
        for rate in rates
    ]
    assert [made.scheduled_s for made in every] == sorted(made.scheduled_s for made in every)


def test_an_impossible_forecast_is_reported(tmp_path):
    with pytest.raises(UserError, match="the run's smallest point has 2 devices"):
        measured.forecast(rows_of(tmp_path / "a", "weak", devices=(2, 4)), 8, "1gbit", SLOW)
    sharded = rows_of(tmp_path / "b", "weak", devices=(1,), strategies=("fsdp",))
    with pytest.raises(UserError, match="fsdp was measured on one device only"):
        measured.forecast(sharded, 2, "1gbit", SLOW)
    wrong = rows_of(tmp_path / "c", "weak", devices=(1,), wrong=("shard_map/weak/1",))
    with pytest.raises(UserError, match="no measured point of this strategy in the run passed its checks"):
        measured.forecast(wrong, 2, "1gbit", SLOW)


def test_one_devices_text_says_how_many_messages_there_will_be(tmp_path):
    rows = rows_of(tmp_path, "weak", devices=(1,))
    record = rows[0].point.record
    alone = Collective(kind="all-reduce", count=12, bytes=BYTES, group=1)  # within one device: nothing is sent
    passport = dataclasses.replace(record.passport, collectives=(alone,))
    point = dataclasses.replace(rows[0].point, record=dataclasses.replace(record, passport=passport))
    made = measured.forecast([dataclasses.replace(rows[0], point=point)], 2, "1gbit", SLOW)
    assert made.communication_s == pytest.approx(12 * 1e-4 + BYTES / 1e6, rel=1e-4)


def test_an_assumed_cost_of_a_message_widens_the_band_and_a_given_one_does_not(tmp_path):
    rows = rows_of(tmp_path, "weak", devices=(1, 2))
    assumed, given = (
        measured.forecast(rows, 2, text, Hosts(host=1, inside={}, between=network.parse(text)))
        for text in ("1gbit", "1gbit:200us")
    )
    assert (assumed.low_s, assumed.scheduled_s) == (given.low_s, given.scheduled_s)
    assert assumed.high_s == pytest.approx(given.high_s + 12 * (2.7e-3 - 2e-4))  # 12 arrays, each a message
    assert any("give --card" in note for note in assumed.notes)
    assert not any("give --card" in note for note in given.notes)


def test_a_card_gives_alpha_and_beta_and_each_message_counts_once(tmp_path):
    rows = rows_of(tmp_path, "weak", devices=(1, 2))
    link = {"op": "all_reduce", "dtype": "float32", "devices": 2, "mesh": "2", "alpha_s": 1e-3, "bus_bytes_per_s": 1e6}
    made = measured.forecast(rows, 2, "machine.json", Carded(card={"links": [link]}))
    assert made.communication_s == pytest.approx(12 * 1e-3 + (BYTES + 8) / 1e6, rel=1e-4)
    assert made.high_s == pytest.approx(rows[0].timing.step_s.hi + made.communication_s)
