# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A cause outside of the program is named alike by the headline, the waterfall, its figure and the advice."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import fabricate_losses
import pytest
from fabricate_losses import Loss

from jaxbench.analysis import busy, loss_sentences, points, run_rows, waterfall
from jaxbench.analysis.headline import headlines
from jaxbench.analysis.run_rows import Row
from jaxbench.core.store import RunFolder
from jaxbench.features.ablations import figures
from jaxbench.report import run_report, sentences
from jaxbench.report.run_report import RunReport

TWO = "shard_map/strong/2"
ROUNDS = 12
# What the rounds of two devices record, as shares of the wall time of each of their blocks
QUIET = {"cpu_s": 1.8, "others_s": 0.0, "steal_s": 0.0}
NEIGHBOUR = {**QUIET, "cpu_s": 1.0, "others_s": 0.88}
STOLEN = {**QUIET, "steal_s": 0.5}
QUOTA = {**QUIET, "cpu_s": 1.0, "throttled_s": 0.96}


def recorded(
    path: Path,
    disturbed: int,
    shares: Mapping[str, float],
    *,
    slow: float = 1.0,
    part: str = "",
    also: Mapping[str, float] | None = None,
) -> RunReport:
    """A run of 1 and 2 devices. Its first `disturbed` rounds on two devices record `shares`, the others quiet.

    slow: how many times as slow CPU 1 is in them. part: an ablation that has `shares` in all rounds. also: the shares
    of every third of the disturbed rounds, which have another cause.
    """
    loss = Loss(machine=0.7, runtime=0.9, communication=0.95)
    run = run_report.find(RunFolder(fabricate_losses.folder(path, {2: loss}, rounds=ROUNDS)))

    def loaded(each: Any, shares: Mapping[str, float], slow: float) -> Any:
        walls = [*each.block_s, *each.double_block_s]
        load = {name: tuple(share * s for s in walls) for name, share in shares.items()}
        product = ((1e-4, slow * 1e-4),) * len(walls)
        return dataclasses.replace(
            each, cpus=2, quota=1.0 if "throttled_s" in shares else 0.0, cores=(0, 1), core_product_s=product, **load
        )

    def changed(row: Row) -> Row:
        point = row.point
        if point.point == f"{TWO}/{part}":
            rounds = [loaded(each, shares, 1.0) for each in point.rounds]
        elif point.point == TWO:
            rounds = []
            for each in point.rounds:
                other = also if also and each.round % 3 == 0 else shares
                busy_round = each.round < disturbed
                rounds.append(loaded(each, other if busy_round else QUIET, slow if busy_round else 1.0))
        else:
            return row
        return dataclasses.replace(row, point=dataclasses.replace(point, rounds=tuple(rounds)))

    rows = [
        dataclasses.replace(changed(row), ablations={name: changed(each) for name, each in row.ablations.items()})
        for row in run.rows
    ]
    return dataclasses.replace(run, rows=rows, waterfalls=waterfall.find(rows))


CAUSES = [
    ({"shares": NEIGHBOUR}, "other processes took 44 % of its CPUs"),
    ({"shares": STOLEN}, "the hypervisor took 25 % of its CPUs"),
    ({"shares": QUIET, "slow": 2.0}, "CPU 1 was 2.0 times slower than at its best"),
    ({"shares": QUOTA}, "a CPU quota of 1.0 cores stopped it for 48 % of its CPUs' time"),
]


@pytest.mark.parametrize(("facts", "cause"), CAUSES)
def test_a_busy_machine_has_no_headline_and_no_waterfall_but_a_cause(tmp_path, facts, cause):
    """With fewer than a third of the rounds free. A quarter of the readings of a core are its best ones."""
    run = recorded(tmp_path, 9, **facts)
    said = f"this machine was busy: {cause}"
    (headline,) = run.headlines
    assert headline.startswith(f"No headline: {said}") and f"in 9 of {ROUNDS} rounds of {TWO}" in headline
    page = run.sentences()
    assert run.waterfalls == [] and page["What would help"] == []
    (why,) = page["Why not 100 %"]
    assert why.startswith(f"shard_map strong, 2 devices: no waterfall, because {said}")
    assert page["Load"][0].startswith(f"This machine was busy: {cause}")
    assert figures.draw_waterfall.draw(run) is None
    assert figures.withheld_remarks(run.withheld)[0].startswith(f"no waterfall of {TWO}: {said}")


@pytest.mark.parametrize(("facts", "cause"), CAUSES)
def test_with_half_of_the_rounds_free_the_cause_replaces_the_advice(tmp_path, facts, cause):
    run = recorded(tmp_path, 6, **facts)
    page = run.sentences()
    assert "busy" not in run.headlines[0] and len(run.waterfalls) == 1 and run.withheld == []
    (instead,) = page["What would help"]
    assert f"this machine was busy: {cause}" in instead and "contention" not in instead
    assert cause in page["Load"][0]


@pytest.mark.parametrize("disturbed", [0, 2])
@pytest.mark.parametrize("facts", [facts for facts, _ in CAUSES])
def test_a_quiet_machine_is_blamed_for_nothing(tmp_path, facts, disturbed):
    run = recorded(tmp_path, disturbed, **facts)
    page = run.sentences()
    assert run.headlines[0].startswith("shard_map: strong efficiency") and page["Load"] == []
    assert "contention between the devices costs" in " ".join(page["What would help"])
    assert busy.of(run.rows[-1]) is None


def test_causes_are_named_by_how_many_rounds_they_have(tmp_path):
    run = recorded(tmp_path, 9, NEIGHBOUR, also=STOLEN)
    (headline,) = run.headlines
    assert "other processes took 44 % of its CPUs in 6 of 12" in headline
    assert headline.endswith("and the hypervisor took 25 % of its CPUs in 3.")


def test_a_quota_is_named_before_what_else_took_time(tmp_path):
    (headline,) = recorded(tmp_path, 12, {**QUOTA, "others_s": 0.4}).headlines
    assert "a CPU quota of 1.0 cores stopped it" in headline and "other processes" not in headline


@pytest.mark.parametrize(
    ("shares", "seen"),
    [
        ({"cpu_s": 1.02, "others_s": 0.0}, True),
        ({"cpu_s": 1.9, "others_s": 0.0}, False),
        ({"cpu_s": 1.5, "others_s": 0.0}, False),  # of unequal cores the faster one waits for the other
        ({"cpu_s": 1.0, "others_s": 0.9}, False),  # others took it
    ],
)
def test_a_limit_that_the_kernel_does_not_show_is_seen_by_processes_of_one_device(tmp_path, shares, seen):
    """They wait for nothing, so all of them together need a core each."""
    run = recorded(tmp_path, 0, shares, part="processes")
    assert (run.waterfalls == []) == seen == run.headlines[0].startswith("No headline")
    if seen:
        assert "2 processes of one device each got the CPU time of 1.0 cores" in run.headlines[0]


MACHINE = {"cpu_quota": None, "allowed_cpus": 2, "cpus": 2}


@pytest.mark.parametrize(
    ("machine", "why"),
    [
        ({"cpu_quota": 1.0}, "a CPU quota of 1.0 cores leaves less than one for each of 2 devices, and stopped"),
        ({"allowed_cpus": 1}, "2 devices take turns, because this process may use only 1 of the machine's 2 CPUs"),
        ({"cpus": 1, "allowed_cpus": 1}, "only one valid device count"),  # a small machine is not limited
        ({}, "only one valid device count"),
    ],
)
def test_fewer_cores_than_devices_is_a_cause_of_its_own(tmp_path, machine, why):
    rows = [
        dataclasses.replace(row, point=dataclasses.replace(row.point, oversubscribed=True))
        if row.point.devices > 1
        else row
        for row in recorded(tmp_path, ROUNDS, QUOTA).rows
    ]
    (sentence,) = headlines(rows, None, {**MACHINE, **machine})
    assert sentence.startswith(f"No headline: {why}")


def test_old_run_folders_have_no_cause(tmp_path):
    run = RunFolder(fabricate_losses.folder(tmp_path, {2: Loss(machine=0.7)}))
    rows = run_rows.analyse(points.load(run), config=run.config())
    assert [busy.of(row) for row in rows] == [None, None]
    assert headlines(rows, None, {})[0].startswith("shard_map: strong efficiency")
    assert (
        loss_sentences.advice(waterfall.find(rows)) and sentences.load_warnings({}, [row.point for row in rows]) == []
    )
