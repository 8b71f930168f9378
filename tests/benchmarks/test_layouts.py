# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What a block costs in a pipeline and in a split sequence: the arithmetic, and the committed results."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from benchmarks import layouts
from benchmarks.layouts import Cost

RESULTS = Path(__file__).parents[2] / layouts.RESULTS
PLAIN = Cost(
    group="pipeline", name="plain, block", target="h100:4", work_s=1.0, products_s=0.8, attention_s=0.1, memory_s=0.1,
    messages_s=0.0, idle=0.0, idle_by_formula=0.0,
)  # fmt: skip


def test_a_pipeline_is_judged_by_its_work_and_a_ring_by_its_attention():
    pipeline = dataclasses.replace(PLAIN, name="1f1b, block", work_s=1.08, idle=0.27, idle_by_formula=3 / 11)
    assert layouts.plain_of(pipeline, [PLAIN, pipeline]) == PLAIN
    assert layouts.ratio(pipeline, PLAIN) == pytest.approx(1.08)
    assert layouts.missed([PLAIN, pipeline]) == []
    plain = dataclasses.replace(PLAIN, group="context", name="plain")
    ring = dataclasses.replace(plain, name="ring", work_s=1.01)
    assert layouts.ratio(ring, plain) == pytest.approx(1.1), "0.01 s more than 0.1 s of attention"
    assert layouts.missed([plain, ring]) == []


def test_missed_goals_are_sentences():
    slow = dataclasses.replace(PLAIN, name="gpipe, block", work_s=1.2, idle=0.4, idle_by_formula=3 / 11)
    assert layouts.missed([PLAIN, slow]) == [
        "h100:4 gpipe, block: work is 1.200 of the plain layout's, the goal 1.10",
        "h100:4 gpipe, block: idle is 40.0 %, by formula 27.3 %",
    ]
    other = dataclasses.replace(slow, name="gpipe, none")
    assert layouts.missed([PLAIN, other]) == [], "compared only with the same recomputation"


def test_every_layout_has_a_plain_one_of_as_many_tokens():
    every = layouts.every()
    assert len({(each.target, each.group, each.name) for each in every}) == len(every)
    for each in every:
        _, comma, remat = each.name.partition(", ")
        assert any(
            (other.target, other.group, other.name) == (each.target, each.group, f"{layouts.PLAIN}{comma}{remat}")
            for other in every
        )
        batches = {word for other in every if other.group == each.group and other.target == each.target
                   for word in other.words if "config.batch" in word}  # fmt: skip
        assert len(batches) == 1


def test_the_committed_results_are_of_known_layouts():
    rows = layouts.read(RESULTS)
    known = {(each.target, each.group, each.name) for each in layouts.every()}
    assert rows and {(row.target, row.group, row.name) for row in rows} <= known
    for row in rows:
        if row.idle_by_formula:
            assert row.idle == pytest.approx(row.idle_by_formula, rel=layouts.IDLE_WITHIN)
