# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Which rounds had exclusive use of their CPUs."""

import dataclasses
import math

import fabricate
import pytest

from jaxbench.analysis import gates, points
from jaxbench.core import schema
from jaxbench.core.store import RunFolder

# A round of one block of 1 s and one of 2 s on one CPU, which nothing disturbs.
QUIET = schema.RoundRecord(
    point="p", round=0, steps=4, block_s=(1.0,), double_block_s=(2.0,), warmup_block_s=(), settled=True,
    compilations=0, worker="session0/w0", cpu_s=(1.0, 2.0), switches=(3, 6), others_s=(0.0, -0.01),
    steal_s=(0.0, 0.0), cpus=1,
)  # fmt: skip


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    run = RunFolder(fabricate.run_folder(tmp_path_factory.mktemp("run"), law=fabricate.amdahl(0.1)))
    return {point.point: point for point in points.load(run)}["shard_map/strong/1"]


def of(point, **changes):
    return gates.load_of(dataclasses.replace(point, rounds=(QUIET, dataclasses.replace(QUIET, round=1, **changes))))


def test_a_quiet_round_is_not_contended(one):
    found = of(one)
    assert (found.cpu_share, found.contended, found.others, found.steal) == (1.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"cpu_s": (0.5, 1.0)}, "its process ran for only 50 % of the time"),
        ({"others_s": (1.0, 0.5)}, "other processes took 50 % of its CPUs"),
        ({"steal_s": (0.0, 0.3)}, "the hypervisor took 10 % of its CPUs"),
        ({"others_s": (0.1, 0.0)}, ""),  # 3 %
        ({"cpu_s": (0.96, 1.92)}, ""),
        ({"block_s": (0.1,), "double_block_s": (0.2,), "cpu_s": (0.1, 0.2), "others_s": (0.02, 0.0)}, ""),  # two ticks
        ({"cpus": 2, "cpu_s": (0.5, 1.0)}, ""),  # it may wait, so only the time of others counts
        ({"cpus": 2, "others_s": (0.2, 0.2)}, "other processes took 7 % of its CPUs"),
    ],
)
def test_a_contended_round(one, changes, why):
    assert gates.why_contended(one, dataclasses.replace(QUIET, **changes)) == why
    assert of(one, **changes).contended == (0.5 if why else 0.0)


def test_a_device_that_waits_by_nature_is_judged_by_others_alone(one):
    idle = dataclasses.replace(QUIET, cpu_s=(0.5, 1.0))
    for changes in ({"platform": "gpu"}, {"devices": 2}, {"levers": {"input": "pipeline"}}):
        assert gates.why_contended(dataclasses.replace(one, **changes), idle) == ""
    busy = dataclasses.replace(idle, others_s=(1.0, 0.5))
    assert gates.why_contended(dataclasses.replace(one, devices=2), busy)
    assert gates.why_contended(dataclasses.replace(one, platform="gpu"), busy) == ""


def test_old_records_and_a_system_that_names_only_processor_time_say_nothing(one):
    old = dataclasses.replace(QUIET, cpu_s=(), switches=(), others_s=(), steal_s=(), cpus=0)
    for rounds in ((old,), ()):
        assert math.isnan(gates.load_of(dataclasses.replace(one, rounds=rounds)).contended)
    assert gates.why_contended(one, old) == ""
    half = dataclasses.replace(QUIET, others_s=(), steal_s=())
    found = gates.load_of(dataclasses.replace(one, rounds=(half,)))
    assert found.contended == 0.0 and math.isnan(found.others) and math.isnan(found.steal)


def test_impossible_loads_are_damage():
    line = schema.to_json(QUIET)
    assert schema.from_json(line) == QUIET
    for wrong in ({"cpu_s": [1.0]}, {"cpu_s": [1.0, -1.0]}, {"steal_s": [0.0, math.nan]}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            schema.from_json({**line, **wrong})
    newer = ("cpu_s", "switches", "others_s", "steal_s", "cpus")
    older = {name: value for name, value in line.items() if name not in newer}
    assert schema.from_json(older).cpu_s == ()
