# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How often to gather parameters under fsdp: what `advise` says of the ways, and when it compiles all of them."""

from __future__ import annotations

import dataclasses

import pytest
from fabricate_forecasts import at
from ml_collections import ConfigDict

from jaxbench.features.forecast import advice
from jaxbench.features.forecast.advise_command import _with_gathers


def way(arm, seconds, size, **changes):
    made = dataclasses.replace(at(8), arm=arm, scheduled_s=seconds, peak_bytes=size, memory_bytes=80 * 10**9)
    return dataclasses.replace(made, **changes)


def test_the_fastest_that_fits_is_named_with_the_others():
    records = [way("gather=each", 2.0, 30 * 10**9), way("gather=once", 1.5, 50 * 10**9)]
    records.append(way("gather=once_summed", 1.0, 90 * 10**9))
    (line,) = advice.gathers(records)
    assert "gather=once is the fastest that fits, with 1500 ms a step, 50 GB a device" in line
    assert "gather=once_summed: 1000 ms a step, 90 GB a device, too large" in line
    assert advice.gathers(records[:1]) == [] and advice.gathers([way("", 1.0, 1)]) == []


def test_arms_of_another_lever_are_compared_apart():
    records = [
        way(f"accumulate={many}, gather={gather}", seconds, 10**9)
        for many, gather, seconds in ((2, "each", 1.0), (2, "once", 2.0), (8, "each", 4.0), (8, "once", 3.0))
    ]
    assert [line.split(": ")[1].split(" is")[0] for line in advice.gathers(records)] == ["gather=each", "gather=once"]


@pytest.mark.parametrize(
    ("strategy", "accumulate", "gather", "expected"),
    [
        ("fsdp", "4", "each", "each,once,once_summed"),
        ("fsdp", "1", "each", "each"),
        ("fsdp", "4", "once", "once"),
        ("tensor", "4", "each", "each"),
    ],
)
def test_all_ways_are_compiled_if_there_are_micro_batches_and_none_was_chosen(strategy, accumulate, gather, expected):
    lever = {"accumulate": accumulate, "gather": gather, "mesh": "strategy"}
    assert _with_gathers(ConfigDict({"strategy": strategy, "lever": lever})).lever.gather == expected
